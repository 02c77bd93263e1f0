"""Are the latents used, and if not, where does it stop? Figures on held-out episodes, and a verdict in plain words."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.special
from jaxtyping import Bool, PRNGKeyArray

from data_gen.trajectory import Episodes, TrajectoryBatch, n_episodes, take
from marl_vae.batching import in_pieces, presence
from marl_vae.bound import Drawn
from marl_vae.diagnostics.latent_free import LatentFree
from marl_vae.diagnostics.units import (
    active_units,
    constant_prior_gain,
    information_of_agents,
    mutual_information,
    offsets,
    same_over_an_episode,
)
from marl_vae.embed import TrainedModel
from marl_vae.latents import Embeddings
from marl_vae.model import AUTOENCODER, FLAT, HIERARCHICAL

EPISODES = 300  # for the importance-weighted bound, evenly over the test episodes
DRAWS, AT_ONCE = 100, 5
PER_ACTION = 0.01  # nats: less is no use of a latent
PER_EPISODE = 0.1
LEFT_OVER = 0.05  # of the variance

BOTH_COLLAPSED = "both levels collapsed: no latent says anything about the episode"
LOCAL_IGNORED = "local level ignored: the policy acts the same whatever z_alpha is"
JOINT_COLLAPSED = "joint level collapsed: z_omega says nothing about the episode"
NOT_PASSED_ON = "joint level not passed on: p(z_alpha | z_omega) is nearly constant"
NO_GAIN = "no gain from latents: a policy that sees the observation alone is as good"
HEALTHY = "healthy: both levels are used"
JOINT_IGNORED = "joint level ignored: the policy acts the same whatever z_omega is (there is no local level)"
HEALTHY_FLAT = "healthy: the joint level is used (there is no local level)"
POINTS_IGNORED = "latents ignored: the policy acts the same whatever they are"
POINTS_USED = "latents used: an autoencoder has no KL and no bound by which its levels could be judged"


class Usage(NamedTuple):
    """Figures on the test episodes. KL, information and bounds are nats an episode, NLLs nats an action of one agent.

    `kl_*_dims` are the KL by dimension (z_α: mean over present agents), `mi_alpha` a mean over agents. NLLs with:
    the episode's own latents; those of another episode; z_α drawn from p(z_α|z_ω) at the episode's own z_ω, at another
    episode's, and at one from N(0, I); no latents. `prior_gain` is what p(z_α|z_ω) saves over a constant prior;
    `left_over` the share of the latent-free policy's residuals that is a constant offset over an episode.
    None, or an empty list, is a figure that a model of this form does not have.
    """

    verdict: str
    decided_by: str
    active_omega: int
    active_alpha: int | None
    kl_omega: float | None
    kl_alpha: float | None
    kl_omega_dims: list[float]
    kl_alpha_dims: list[float]
    mi_omega: float | None
    mi_alpha: float | None
    mi_limit: float
    iwae_1: float | None
    iwae_10: float | None
    iwae_100: float | None
    prior_gain: float | None
    nll: float
    nll_shuffled: float
    nll_alpha_prior: float | None
    nll_omega_shuffled: float | None
    nll_omega_prior: float | None
    nll_without_latents: float
    left_over: float
    form: str = HIERARCHICAL


def usage(model: TrainedModel, free: LatentFree, test: TrajectoryBatch | Episodes, *, seed: int) -> Usage:
    """All figures and the verdict on the test episodes; `free` is the policy without latents."""
    key = jax.random.key(seed)
    drawn, latents = model.drawn(test, key=jax.random.fold_in(jax.random.fold_in(key, 0), 0)), model.embed(test)
    terms, form = drawn.terms, model.config.form
    left = in_pieces(lambda piece: offsets(free.residuals(free.params, piece), piece.mask), test)
    mask, count = presence(test), float(left.steps.sum())
    units, present = active_units(latents, mask), mask.any(1)
    chosen = take(test, np.unique(np.linspace(0, len(mask) - 1, EPISODES).astype(np.int32)))
    bounds = {} if form == AUTOENCODER else importance_bounds(model, chosen, key=jax.random.fold_in(key, 2))
    found = Usage(
        verdict="",
        decided_by="",
        active_omega=int(units.omega.sum()),
        active_alpha=None if form == FLAT else int(units.alpha.sum()),
        kl_omega_dims=terms.kl_joint.mean(0).round(4).tolist(),
        kl_alpha_dims=(terms.kl_local.sum((0, 1)) / present.sum()).round(4).tolist(),
        **of_random_levels(model.config.random_levels, drawn, latents, mask, seed),
        mi_limit=float(np.log(len(mask))),
        iwae_1=bounds.get(1),
        iwae_10=bounds.get(10),
        iwae_100=bounds.get(100),
        nll=-float(terms.recon.sum()) / count,
        **swapped(model, test, latents, count, seed=seed, key=key),
        nll_without_latents=-float(in_pieces(partial(free.log_likelihood, free.params), test).sum()) / count,
        left_over=same_over_an_episode(left),
        form=form,
    )
    verdict, why = verdict_of(found)
    return found._replace(verdict=verdict, decided_by=why)


def of_random_levels(
    levels: tuple[str, ...], drawn: Drawn, latents: Embeddings, mask: Bool[np.ndarray, "B T N"], seed: int
) -> dict[str, float | None]:
    """KL, information and gain of these levels; None for those of others."""
    found: dict[str, float | None] = dict.fromkeys(("kl_omega", "mi_omega", "kl_alpha", "mi_alpha", "prior_gain"))
    if "omega" in levels:
        found["kl_omega"] = float(drawn.terms.kl_joint.sum(-1).mean())
        found["mi_omega"] = mutual_information(np.asarray(latents.omega_mean), np.asarray(latents.omega_std), seed)
    if "alpha" in levels:
        found["kl_alpha"] = float(drawn.terms.kl_local.sum((1, 2)).mean())
        found["mi_alpha"] = information_of_agents(latents, mask, seed)
        found["prior_gain"] = constant_prior_gain(drawn.posteriors, mask)
    return found


def swapped(
    model: TrainedModel,
    test: TrajectoryBatch | Episodes,
    latents: Embeddings,
    count: float,
    *,
    seed: int,
    key: PRNGKeyArray,
) -> dict[str, Any]:
    """NLL an action, of `count` in all, with latents of other episodes or priors; None where the form has none."""
    rng, other = np.random.default_rng(seed), derangement(n_episodes(test), seed)

    def noise(like: np.ndarray) -> np.ndarray:
        return rng.normal(size=like.shape).astype(np.float32)

    def given(z_joint: np.ndarray) -> float:
        prior = model.local_prior(z_joint)
        mean = np.asarray(prior.mean)
        z_local = mean + np.exp(prior.log_std) * noise(mean)
        return -float(model.log_likelihood(test, z_local).sum()) / count

    shuffled = -float(model.cross_log_likelihood(test, other, key=jax.random.fold_in(key, 1)).sum()) / count
    if model.config.form == AUTOENCODER:
        drawn_from_priors = ("nll_alpha_prior", "nll_omega_shuffled", "nll_omega_prior")
        return {"nll_shuffled": shuffled, **dict.fromkeys(drawn_from_priors)}
    own = latents.omega_mean + latents.omega_std * noise(latents.omega_mean)
    return {
        "nll_shuffled": shuffled,
        "nll_alpha_prior": None if model.config.form == FLAT else given(own),
        "nll_omega_shuffled": given(own[other]),
        "nll_omega_prior": given(noise(own)),
    }


def derangement(size: int, seed: int) -> np.ndarray:
    """A random order in which no row keeps its place."""
    order = np.random.default_rng(seed).permutation(size)
    other = np.empty(size, np.int32)
    other[order] = np.roll(order, 1)
    return other


def importance_bounds(model: TrainedModel, batch: TrajectoryBatch, *, key: PRNGKeyArray) -> dict[int, float]:
    """log p(a|o) ≥ E log 1/K Σ_k w_k in nats an episode for K = 1, 10, 100, from the same 100 draws.

    Burda et al. (2016), eq. 8; the encoders run once for every AT_ONCE draws.
    """
    keys = jax.random.split(key, DRAWS // AT_ONCE)
    weights = np.concatenate([model.log_weights(batch, AT_ONCE, key=one) for one in keys], axis=1)
    return {
        k: float((scipy.special.logsumexp(weights.reshape(len(weights), -1, k), axis=-1) - np.log(k)).mean())
        for k in (1, 10, DRAWS)
    }


def verdict_of(found: Usage) -> tuple[str, str]:
    """A verdict and the figure that decided it, from the policy upwards: what it ignores cannot matter above."""
    gain, loss = found.nll_without_latents - found.nll, found.nll_shuffled - found.nll
    saved = f"the latents save {gain:.3f} nats an action"
    if loss < PER_ACTION:
        said = f"another episode's latents cost {loss:.3f} nats an action (a level in use costs at least {PER_ACTION})"
        return _ignored(found), f"{said}; {_left_over(found)}"
    if found.form == AUTOENCODER:
        return (NO_GAIN, f"{saved} (at least {PER_ACTION})") if gain < PER_ACTION else (POINTS_USED, saved)
    information = found.mi_omega or 0.0
    if found.active_omega == 0 or information < PER_EPISODE:
        return JOINT_COLLAPSED, f"mutual information {information:.2f} nats, {found.active_omega} active units"
    if found.prior_gain is not None and found.prior_gain < PER_EPISODE:
        return (
            NOT_PASSED_ON,
            f"it saves {found.prior_gain:.2f} nats an episode over a constant prior (at least {PER_EPISODE})",
        )
    if gain < PER_ACTION:
        return NO_GAIN, f"{saved} (at least {PER_ACTION})"
    if found.prior_gain is None:
        return HEALTHY_FLAT, f"{saved}, z_omega tells {information:.2f} nats about which episode it is"
    return HEALTHY, f"{saved}, z_omega {found.prior_gain:.2f} nats an episode of z_alpha's KL"


def _ignored(found: Usage) -> str:
    """The word for latents to which the policy does not listen."""
    if found.form == AUTOENCODER:
        return POINTS_IGNORED
    if found.form == FLAT:
        return JOINT_COLLAPSED if found.active_omega == 0 else JOINT_IGNORED
    return BOTH_COLLAPSED if found.active_omega == found.active_alpha == 0 else LOCAL_IGNORED


def _left_over(found: Usage) -> str:
    """What there was to say, and what that is often a sign of."""
    if found.left_over < LEFT_OVER:
        return f"only {found.left_over:.3f} of what the observation leaves is an offset: often it says all"
    often = "" if found.form == AUTOENCODER else ": often a KL weighs too much"
    return f"{found.left_over:.2f} of what the observation leaves is an offset{often}"
