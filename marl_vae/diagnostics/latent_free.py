"""A policy with the model's decoder and no latents: what the observation alone says about the action."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, PyTree

from data_gen.trajectory import TrajectoryBatch, to_device
from marl_vae.batching import epoch_rows, in_pieces, rows_on_device
from marl_vae.embed import TrainedModel
from marl_vae.model import Dims, Model, agent_index, make_decoder
from marl_vae.normalise import Normaliser, scaled_obs
from marl_vae.policy import action_log_likelihood

ROUND, ROUNDS, PATIENCE, LEARNING_RATE = 100, 40, 4, 2e-3


def fit_without_latents(
    model: TrainedModel,
    training: TrajectoryBatch,
    validation: TrajectoryBatch,
    *,
    seed: int,
    report: Callable[[float], None],
) -> Callable[[TrajectoryBatch], Float[Array, " B"]]:
    """The decoder with no latent input, trained by maximum likelihood until the validation episodes stop gaining.

    The result gives Σ_it log π(a|o) of each episode in nats.
    """
    likelihood, params = latent_free_policy(model.config, model.dims, model.scale, seed)
    optimiser = optax.adam(LEARNING_RATE)
    data, rows = to_device(training), min(64, len(training.mask))
    advance = jax.jit(partial(_round, likelihood, optimiser, jax.random.key(seed), data, rows))
    judge = jax.jit(likelihood)
    carry = (params, optimiser.init(params), jnp.zeros((), jnp.int32))
    best, best_value, stale = params, -np.inf, 0
    for number in range(ROUNDS):
        carry = advance(carry)
        now = carry[0]
        value = float(in_pieces(partial(judge, now), validation).sum())
        if value > best_value:
            best, best_value, stale = now, value, 0
        else:
            stale += 1
        report((number + 1) / ROUNDS)
        if stale == PATIENCE:
            break
    return partial(judge, best)


def latent_free_policy(
    config: Model, dims: Dims, scale: Normaliser, seed: int
) -> tuple[Callable[[PyTree, TrajectoryBatch], Float[Array, " B"]], PyTree]:
    """Log-likelihood function and first parameters of π(a | o)."""
    decoder = make_decoder(config, dims, 0 if config.agent_index else 1, rngs=nnx.Rngs(seed))
    graph, params = nnx.split(decoder)

    def likelihood(params: PyTree, batch: TrajectoryBatch) -> Float[Array, " B"]:
        size = len(batch.mask)
        context = agent_index(size, dims.agents) if config.agent_index else jnp.zeros((size, dims.agents, 1))
        out = nnx.merge(graph, params)(scaled_obs(scale, batch), context)
        return action_log_likelihood(out, batch, dims.action, scale, config.min_std).sum((1, 2))

    return likelihood, params


def _round(likelihood, optimiser, key, data, rows, carry):
    def step(carry, _):
        params, opt_state, number = carry
        batch = rows_on_device(data, epoch_rows(key, number, len(data.mask), rows))
        grads = jax.grad(lambda p: -likelihood(p, batch).sum() / batch.mask.sum())(params)
        updates, opt_state = optimiser.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state, number + 1), None

    return jax.lax.scan(step, carry, length=ROUND)[0]
