"""Is a level of latents used at all? Active units, and the action likelihood with shuffled latents and with none."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Bool, Float, PyTree

from data_gen.trajectory import AnyArray, TrajectoryBatch, to_device
from marl_vae.batching import epoch_rows, in_pieces, rows_on_device
from marl_vae.embed import TrainedModel
from marl_vae.latents import Embeddings
from marl_vae.model import Dims, Model, agent_index, make_decoder
from marl_vae.normalise import Normaliser, scaled_obs
from marl_vae.policy import action_log_likelihood

ACTIVE = 0.01
ROUND, ROUNDS, PATIENCE, LEARNING_RATE = 100, 40, 4, 2e-3


class ActiveUnits(NamedTuple):
    """Which dimensions of each level vary over episodes."""

    omega: Bool[np.ndarray, " Zw"]
    alpha: Bool[np.ndarray, " Za"]


class Usage(NamedTuple):
    """Figures on held-out episodes, in nats: KL a trajectory, and negative log-likelihood of one agent's action."""

    active_omega: int
    active_alpha: int
    kl_omega: float
    kl_alpha: float
    nll: float
    nll_shuffled: float
    nll_without_latents: float


def active_units(latents: Embeddings, mask: Bool[AnyArray, "B T N"]) -> ActiveUnits:
    """Dimensions whose posterior mean has a variance above 0.01 over episodes (Burda et al. 2016, §5.3).

    For z_α the variance is taken within each agent and then averaged, so that who an agent is does not count.
    """
    present = np.any(mask, axis=1)
    within = [latents.alpha_mean[present[:, n], n].var(0) for n in range(present.shape[1]) if present[:, n].any()]
    return ActiveUnits(omega=latents.omega_mean.var(0) > ACTIVE, alpha=np.mean(within, axis=0) > ACTIVE)


def usage(
    model: TrainedModel,
    training: TrajectoryBatch,
    validation: TrajectoryBatch,
    test: TrajectoryBatch,
    *,
    seed: int,
    report: Callable[[float], None],
) -> Usage:
    """What the latents are worth on the test episodes, against a policy that sees none.

    Shuffled: every episode is decoded with the latents of another one, drawn at random.
    """
    key = jax.random.key(seed)
    terms = model.elbo(test, key=jax.random.fold_in(key, 0))
    units = active_units(model.embed(test), np.asarray(test.mask))
    other = derangement(len(test.mask), seed)
    shuffled = model.cross_log_likelihood(test, other, key=jax.random.fold_in(key, 1))
    free = fit_without_latents(model, training, validation, seed=seed, report=report)
    count = float(np.sum(test.mask))
    return Usage(
        active_omega=int(units.omega.sum()),
        active_alpha=int(units.alpha.sum()),
        kl_omega=float(terms.kl_joint.sum(-1).mean()),
        kl_alpha=float(terms.kl_local.sum((1, 2)).mean()),
        nll=-float(terms.recon.sum()) / count,
        nll_shuffled=-float(shuffled.sum()) / count,
        nll_without_latents=-float(in_pieces(free, test).sum()) / count,
    )


def derangement(size: int, seed: int) -> np.ndarray:
    """A random order in which no row keeps its place."""
    order = np.random.default_rng(seed).permutation(size)
    other = np.empty(size, np.int32)
    other[order] = np.roll(order, 1)
    return other


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


def key_figures(found: Usage) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each figure."""
    return [
        ("active units of z_omega", str(found.active_omega), "dimensions whose mean varies over test episodes"),
        ("active units of z_alpha", str(found.active_alpha), "the same, within each agent"),
        ("KL of z_omega", f"{found.kl_omega:.2f}", "nats an episode"),
        ("KL of z_alpha", f"{found.kl_alpha:.2f}", "nats an episode, all agents together"),
        ("action NLL", f"{found.nll:.3f}", "nats an action on test episodes; lower is better"),
        ("action NLL, no latents", f"{found.nll_without_latents:.3f}", "a policy that sees the observation alone"),
        ("action NLL, shuffled", f"{found.nll_shuffled:.3f}", "with the latents of another episode"),
    ]


def sentences(found: Usage) -> list[str]:
    """The figures in words, a line each."""
    gain, loss = found.nll_without_latents - found.nll, found.nll_shuffled - found.nll_without_latents
    return [
        f"z_omega: {found.active_omega} active units, KL {found.kl_omega:.2f} nats an episode",
        f"z_alpha: {found.active_alpha} active units, KL {found.kl_alpha:.2f} nats an episode over all agents",
        f"action NLL {found.nll:.3f} nats; without latents {found.nll_without_latents:.3f} "
        f"({'better' if gain > 0 else 'WORSE'} with latents by {abs(gain):.3f})",
        f"with the latents of another episode {found.nll_shuffled:.3f} "
        f"({'worse' if loss >= 0 else 'BETTER'} than without latents by {abs(loss):.3f})",
    ]
