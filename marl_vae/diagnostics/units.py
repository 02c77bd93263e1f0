"""How much a level of latents says about an episode: active units and mutual information. Z is a level's width."""

from typing import NamedTuple

import numpy as np
import scipy.special
from jaxtyping import Bool, Float, Int

from data_gen.trajectory import AnyArray
from marl_vae.latents import Embeddings, Posteriors

ACTIVE = 0.01
PIECE = 256  # episodes compared with all others at once


class ActiveUnits(NamedTuple):
    """Which dimensions of each level vary over episodes."""

    omega: Bool[np.ndarray, " Zw"]
    alpha: Bool[np.ndarray, " Za"]


def active_units(latents: Embeddings, mask: Bool[AnyArray, "B T N"]) -> ActiveUnits:
    """Dimensions whose posterior mean has a variance above 0.01 over episodes (Burda et al. 2016, §5.3).

    For z_α the variance is taken within each agent and then averaged, so that who an agent is does not count.
    """
    present = np.any(mask, axis=1)
    within = [latents.alpha_mean[present[:, n], n].var(0) for n in range(present.shape[1]) if present[:, n].any()]
    return ActiveUnits(omega=latents.omega_mean.var(0) > ACTIVE, alpha=np.mean(within, axis=0) > ACTIVE)


def mutual_information(mean: Float[np.ndarray, "M Z"], std: Float[np.ndarray, "M Z"], seed: int) -> float:
    """I(episode; z) = E log q(z|episode) − E log q(z) in nats, with the M episodes' mixture as q(z).

    Hoffman and Johnson (2016), at one draw of z an episode. It cannot be more than log M.
    """
    mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    z = mean + std * np.random.default_rng(seed).normal(size=mean.shape)
    own, whole = log_normal(z, mean, std), []
    for start in range(0, len(z), PIECE):
        each = log_normal(z[start : start + PIECE, None], mean[None], std[None])
        whole.append(scipy.special.logsumexp(each, axis=1) - np.log(len(mean)))
    return float(np.mean(own - np.concatenate(whole)))


def log_normal(z: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """log N(z; mean, std²), summed over the last axis."""
    return (-0.5 * ((z - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(-1)


def information_of_agents(latents: Embeddings, mask: Bool[AnyArray, "B T N"], seed: int) -> float:
    """Mutual information of z_α (at the mean of z_ω), the mean over agents."""
    present = np.any(mask, axis=1)
    found = []
    for agent in np.flatnonzero(present.any(0)):
        here = present[:, agent]
        found.append(mutual_information(latents.alpha_mean[here, agent], latents.alpha_std[here, agent], seed))
    return float(np.mean(found))


def constant_prior_gain(found: Posteriors, mask: Bool[AnyArray, "B T N"]) -> float:
    """Nats an episode that p(z_α | z_ω) saves over the best constant prior of each agent: KL(q‖constant) − KL(q‖p).

    Both at one draw of z_ω an episode. The constant has the moments of the agent's q(z_α) over these very episodes,
    which is the Gaussian of least mean KL; so the gain is about 0 or below where z_ω says nothing about z_α.
    """
    present, gain = np.any(mask, axis=1), 0.0
    for agent in np.flatnonzero(present.any(0)):
        here = present[:, agent]
        (mean, std), prior = (
            (np.asarray(one.mean[here, agent], np.float64), np.exp(np.asarray(one.log_std[here, agent], np.float64)))
            for one in (found.local, found.local_prior)
        )
        middle, spread = mean.mean(0), np.sqrt((std**2).mean(0) + mean.var(0))
        gain += float((kl_normal(mean, std, middle, spread) - kl_normal(mean, std, *prior)).sum()) / len(present)
    return gain


def kl_normal(mean: np.ndarray, std: np.ndarray, of_mean: np.ndarray, of_std: np.ndarray) -> np.ndarray:
    """KL(N(mean, std²) ‖ N(of_mean, of_std²)), summed over the last axis."""
    return (np.log(of_std / std) + (std**2 + (mean - of_mean) ** 2) / (2 * of_std**2) - 0.5).sum(-1)


class Offsets(NamedTuple):
    """Of each episode and agent: its real steps, the sums of its residuals, and their squares about their own mean."""

    steps: Int[np.ndarray, "B N"]
    sums: Float[np.ndarray, "B N A"]
    inside: Float[np.ndarray, "B N"]


def offsets(residuals: Float[AnyArray, "B T N A"], mask: Bool[AnyArray, "B T N"]) -> Offsets:
    """What `same_over_an_episode` needs of each episode, which is little beside its steps."""
    values, kept = np.asarray(residuals, np.float64), np.asarray(mask)[..., None]
    steps, sums = kept.sum(1)[..., 0], (values * kept).sum(1)
    means = sums / np.maximum(steps, 1)[..., None]
    inside = (((values - means[:, None]) * kept) ** 2).sum((1, 3))
    return Offsets(steps=steps, sums=sums, inside=inside)


def same_over_an_episode(found: Offsets) -> float:
    """Share of the residuals' variance that is a constant offset over an episode of an agent; 0 where there is none.

    The intraclass correlation ICC(1) of a one-way analysis of variance (Donner 1986), within each agent, groups being
    episodes of unequal length; dimensions and agents are pooled by their sums of squares. It does not see a style that
    only changes how an agent answers to its observation, and residuals that follow one another raise it.
    """
    between = within = 0.0
    for agent in range(found.steps.shape[1]):
        here = found.steps[:, agent] > 1
        steps, sums = found.steps[here, agent], found.sums[here, agent]
        if len(steps) < 2:
            continue
        means, middle = sums / steps[:, None], sums.sum(0) / steps.sum()
        inside = found.inside[here, agent].sum() / (steps.sum() - len(steps))
        across = (steps[:, None] * (means - middle) ** 2).sum() / (len(steps) - 1)
        typical = (steps.sum() - (steps**2).sum() / steps.sum()) / (len(steps) - 1)
        between, within = between + (across - inside) / typical, within + inside
    return float(max(between, 0.0) / (max(between, 0.0) + within)) if within > 0 else 0.0
