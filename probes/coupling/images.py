"""A region of one agent's latent, seen in another agent's: where its episodes lie there, and how the team did in them.

Letters: B rows, N agents, Za local latent, D draws or orders, G groups, M places, F sums of an image.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from probes.pairings import p_of_first, paired_sums
from probes.scores import interval

LEAST_EPISODES, LEAST_GROUPS = 10, 2


class Region(NamedTuple):
    """Episodes chosen by where they lie in one agent's latent: a cluster, or what was brushed."""

    agent: int
    name: str
    rows: Bool[np.ndarray, " B"]


class Scene(NamedTuple):
    """What regions are looked at in: every episode's latents and team return, by group and place."""

    z_alpha: Float[np.ndarray, "G M N Za"]
    present: Bool[np.ndarray, "G M N"]
    returns: Float[np.ndarray, "G M"]
    orders: Int[np.ndarray, "D G"]
    weights: Float[np.ndarray, "W G"]


class Image(NamedTuple):
    """The spread of a region in one other agent's latent, of all groups and in bootstrap draws of them.

    `elsewhere` is its mean where the region's places are looked up in other groups, `p` that of a spread as small.
    """

    agent: int
    spread: float
    interval: tuple[float, float]
    elsewhere: float
    p: float
    draws: Float[np.ndarray, " W"]


class Outcome(NamedTuple):
    """The mean team return of a region's episodes, in bootstrap draws, and at the same places of other groups."""

    mean: float
    interval: tuple[float, float]
    elsewhere: float
    draws: Float[np.ndarray, " W"]


def spread(sums: Float[np.ndarray, "... F"], whole: Float[np.ndarray, "... F"]) -> Float[np.ndarray, "..."]:
    """Trace of the covariance of some episodes' latents over that of all: 1 is no tighter than all, 0 is one point.

    Both with n - 1, so that random episodes, few or many, have 1 on average. Sums are those of `image_sums`.
    """
    some, every = _scatter(sums), _scatter(whole)
    return np.divide(some, every, out=np.full(np.shape(some), np.nan), where=every > 0)


def _scatter(sums: Float[np.ndarray, "... F"]) -> Float[np.ndarray, "..."]:
    n, first, square = sums[..., 0], sums[..., 1:-1], sums[..., -1]
    around_mean = square - (first**2).sum(-1) / np.maximum(n, 1)
    return np.divide(around_mean, n - 1, out=np.full(n.shape, np.nan), where=n > 1)


def image_sums(z: Float[np.ndarray, "G M Za"], present: Bool[np.ndarray, "G M"]) -> Float[np.ndarray, "G M F"]:
    """What is to be summed over a region's episodes: 1, z and |z|^2, each 0 where the agent is absent.

    Latents are taken from their mean, so that no digits are lost in the difference of large sums.
    """
    centred = np.where(present[..., None], z - z[present].mean(axis=0), 0).astype(float)
    return np.concatenate([present[..., None], centred, (centred**2).sum(-1, keepdims=True)], axis=-1)


def image_of(region: Bool[np.ndarray, "G M"], agent: int, scene: Scene) -> Image:
    """A region's spread in `agent`'s latent."""
    sums = image_sums(scene.z_alpha[:, :, agent], scene.present[:, :, agent])
    own, every = np.einsum("gm,gmf->gf", region, sums), sums.sum(axis=1)
    draws = spread(scene.weights @ own, scene.weights @ every)
    paired = paired_sums(region[..., None], sums, scene.orders)[:, 0]
    values = spread(paired, every.sum(axis=0))
    return Image(
        agent=agent,
        spread=float(values[0]),
        interval=interval(draws, int((own[:, 0] > 0).sum())),
        elsewhere=_mean(values[1:]),
        p=p_of_first(-values),
        draws=draws,
    )


def outcome_of(region: Bool[np.ndarray, "G M"], scene: Scene) -> Outcome:
    """The mean return of a region's episodes."""
    sums = np.stack([np.ones_like(scene.returns), scene.returns], axis=-1)
    own = np.einsum("gm,gmf->gf", region, sums)
    draws = _ratio(scene.weights @ own)
    values = _ratio(paired_sums(region[..., None], sums, scene.orders)[:, 0])
    return Outcome(
        mean=float(values[0]),
        interval=interval(draws, int((own[:, 0] > 0).sum())),
        elsewhere=_mean(values[1:]),
        draws=draws,
    )


def _ratio(sums: Float[np.ndarray, "D 2"]) -> Float[np.ndarray, " D"]:
    return np.divide(sums[:, 1], sums[:, 0], out=np.full(len(sums), np.nan), where=sums[:, 0] > 0)


def _mean(values: Float[np.ndarray, " D"]) -> float:
    found = values[np.isfinite(values)]
    return float(found.mean()) if len(found) else math.nan


def too_few(region: Bool[np.ndarray, "G M"]) -> str:
    """Why a region is not evaluated; empty where it is."""
    episodes, groups = int(region.sum()), int(region.any(axis=1).sum())
    if episodes >= LEAST_EPISODES and groups >= LEAST_GROUPS:
        return ""
    return f"not evaluated: {episodes} episodes of {groups} groups; {LEAST_EPISODES} of {LEAST_GROUPS} are needed"
