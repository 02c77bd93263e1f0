"""A policy with the model's decoder and no latents: what the observation alone says about the action."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from data_gen.trajectory import Episodes, TrajectoryBatch, to_device
from marl_vae.batching import epoch_rows, in_pieces, rows_on_device
from marl_vae.model import Dims, Model, agent_index, make_decoder
from marl_vae.normalise import Normaliser, for_each_step, scaled_actions, scaled_obs
from marl_vae.policy import action_log_likelihood
from marl_vae.stream import Steps, drawn_from, read_ahead

BATCH, ROUND, ROUNDS, PATIENCE, LEARNING_RATE = 64, 100, 40, 4, 2e-3


class LatentFree(NamedTuple):
    """π(a | o): Σ_it log π of each episode in nats, and residuals in the actions' own deviations (or of one-hots)."""

    log_likelihood: Callable[[PyTree, TrajectoryBatch], Float[Array, " B"]]
    residuals: Callable[[PyTree, TrajectoryBatch], Float[Array, "B T N A"]]
    params: PyTree


def fit_without_latents(
    config: Model,
    dims: Dims,
    scale: Normaliser,
    training: TrajectoryBatch | Episodes,
    validation: TrajectoryBatch | Episodes,
    *,
    seed: int,
    report: Callable[[float], None],
) -> LatentFree:
    """The model's kind of decoder without latents, trained until validation episodes stop gaining likelihood."""
    policy = latent_free_policy(config, dims, scale, seed)
    likelihood, params = policy.log_likelihood, policy.params
    optimiser = optax.adam(LEARNING_RATE)
    carry = (params, optimiser.init(params), jnp.zeros((), jnp.int32))
    best, best_value, stale = params, -np.inf, 0
    with _rounds(partial(_step, likelihood, optimiser), training, jax.random.key(seed)) as advance:
        for number in range(ROUNDS):
            carry = advance(carry)
            now = carry[0]
            value = float(in_pieces(partial(likelihood, now), validation).sum())
            if value > best_value:
                best, best_value, stale = now, value, 0
            else:
                stale += 1
            report((number + 1) / ROUNDS)
            if stale == PATIENCE:
                break
    return policy._replace(params=best)


def latent_free_policy(config: Model, dims: Dims, scale: Normaliser, seed: int) -> LatentFree:
    """The policy before any training."""
    decoder = make_decoder(config, dims, 0 if config.agent_index else 1, rngs=nnx.Rngs(seed))
    graph, params = nnx.split(decoder)

    def decode(params: PyTree, batch: TrajectoryBatch) -> Float[Array, "B T N _"]:
        size = len(batch.mask)
        context = agent_index(size, dims.agents) if config.agent_index else jnp.zeros((size, dims.agents, 1))
        return nnx.merge(graph, params)(scaled_obs(scale, batch), context, batch.mask)

    def likelihood(params: PyTree, batch: TrajectoryBatch) -> Float[Array, " B"]:
        return action_log_likelihood(decode(params, batch), batch, dims.action, scale, config.min_std).sum((1, 2))

    def residuals(params: PyTree, batch: TrajectoryBatch) -> Float[Array, "B T N A"]:
        out = decode(params, batch)
        if dims.action.kind == "continuous":
            expected, real = jnp.split(out, 2, axis=-1)[0], for_each_step(scale.action_real)
        else:
            expected, real = jax.nn.softmax(out), 1.0
        found = scaled_actions(scale, batch) - expected
        return jnp.where(batch.mask[..., None], found * real, 0.0)

    return LatentFree(jax.jit(likelihood), jax.jit(residuals), params)


def _step(likelihood: Callable, optimiser: optax.GradientTransformation, carry: Any, batch: TrajectoryBatch) -> Any:
    params, opt_state, number = carry
    grads = jax.grad(lambda p: -likelihood(p, batch).sum() / batch.mask.sum())(params)
    updates, opt_state = optimiser.update(grads, opt_state, params)
    return (optax.apply_updates(params, updates), opt_state, number + 1), None


@contextmanager
def _rounds(
    step: Callable, training: TrajectoryBatch | Episodes, key: PRNGKeyArray
) -> Iterator[Callable[[PyTree], PyTree]]:
    """What takes the carry ROUND steps on: over episodes on the device, or over those that are read ahead."""
    if isinstance(training, TrajectoryBatch):
        data, size = to_device(training), min(BATCH, len(training.mask))

        def drawn(carry: Any, _: None) -> Any:
            return step(carry, rows_on_device(data, epoch_rows(key, carry[2], len(data.mask), size)))

        yield jax.jit(lambda carry: jax.lax.scan(drawn, carry, length=ROUND)[0])
        return
    follow = jax.jit(lambda carry, batches: jax.lax.scan(step, carry, batches)[0])
    with closing(read_ahead(Steps(drawn_from(training, BATCH, [key]), ROUND * ROUNDS), 0, ROUND)) as given:
        yield lambda carry: follow(carry, next(given).episodes)
