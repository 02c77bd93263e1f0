"""Running mean and variance of each agent's observations, by which its networks' inputs are scaled.

N agents, Do observation.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LIMIT = 10.0  # scaled observations are clipped here, so that a fall cannot upset a network
LEAST_STD = 1e-4


class Moments(NamedTuple):
    """`m2` is the sum of squared deviations from the mean."""

    count: Float[Array, ""]
    mean: Float[Array, "N Do"]
    m2: Float[Array, "N Do"]


class ObsScale(NamedTuple):
    """What a snapshot keeps: frozen while its episodes are recorded."""

    mean: Float[Array, "N Do"]
    std: Float[Array, "N Do"]


def no_moments(n_agents: int, n_obs: int) -> Moments:
    """Before anything was seen."""
    zeros = jnp.zeros((n_agents, n_obs))
    return Moments(count=jnp.zeros(()), mean=zeros, m2=zeros)


def merge(moments: Moments, obs: Float[Array, "*S N Do"]) -> Moments:
    """The moments of all that was seen, with more of it (Chan, Golub and LeVeque 1979)."""
    axes = tuple(range(obs.ndim - 2))
    here = obs.size // (obs.shape[-1] * obs.shape[-2])
    mean = jnp.mean(obs, axis=axes)
    m2 = jnp.sum((obs - mean.reshape((1,) * len(axes) + mean.shape)) ** 2, axis=axes)
    count = moments.count + here
    gap = mean - moments.mean
    return Moments(
        count=count,
        mean=moments.mean + gap * (here / count),
        m2=moments.m2 + m2 + gap**2 * (moments.count * here / count),
    )


def scale_of(moments: Moments) -> ObsScale:
    """Mean and standard deviation; 0 and 1 where nothing was seen yet."""
    std = jnp.sqrt(moments.m2 / jnp.maximum(moments.count, 1.0))
    return ObsScale(mean=moments.mean, std=jnp.where(moments.count > 0, jnp.maximum(std, LEAST_STD), 1.0))


def scaled(scale: ObsScale, obs: Float[Array, "*S N Do"], real: Bool[Array, "N Do"]) -> Float[Array, "*S N Do"]:
    """Observations at zero mean and unit scale within ±LIMIT; 0 where a feature is padding."""
    wide = (None,) * (obs.ndim - 2)
    values = jnp.clip((obs - scale.mean[wide]) / scale.std[wide], -LIMIT, LIMIT)
    return jnp.where(real[wide], values, 0.0)
