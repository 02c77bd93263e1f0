"""Scales of observations and actions, taken from the training episodes alone and kept with the model."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from data_gen.trajectory import ActionSpec, AnyArray, FeatureMask, TrajectoryBatch, alike_columns

CONSTANT = 1e-6  # a deviation up to this is none


class Normaliser(NamedTuple):
    """Mean and standard deviation a feature, pooled over real steps of all agents for which it is real.

    `obs_real` and `action_real` are 1 where a feature is real for an agent, 0 where it is padding.
    """

    obs_mean: Float[AnyArray, " Do"]
    obs_std: Float[AnyArray, " Do"]
    action_mean: Float[AnyArray, " A"]
    action_std: Float[AnyArray, " A"]
    obs_real: Float[AnyArray, "N Do"]
    action_real: Float[AnyArray, "N A"]


def fit_normaliser(batch: TrajectoryBatch, action: ActionSpec, features: FeatureMask) -> Normaliser:
    """Statistics of a batch; a constant feature keeps unit scale, and discrete actions are left as they are."""
    obs_mean, obs_std = _moments(batch.obs, batch.mask, features.obs)
    if action.kind == "continuous":
        action_mean, action_std = _moments(batch.actions, batch.mask, features.actions)
    else:
        action_mean, action_std = np.zeros(action.size, np.float32), np.ones(action.size, np.float32)
    return Normaliser(
        obs_mean=obs_mean,
        obs_std=obs_std,
        action_mean=action_mean,
        action_std=action_std,
        obs_real=features.obs.astype(np.float32),
        action_real=features.actions.astype(np.float32),
    )


def _moments(
    values: Float[AnyArray, "B T N F"], mask: Bool[AnyArray, "B T N"], real: Bool[np.ndarray, "N F"]
) -> tuple[Float[np.ndarray, " F"], Float[np.ndarray, " F"]]:
    # A feature that no agent has (an engine may lack a sensor) keeps mean 0 and unit scale, and is 0 after scaling.
    mean, std = np.zeros(real.shape[1], np.float32), np.ones(real.shape[1], np.float32)
    for columns, seen in alike_columns(np.asarray(values), np.asarray(mask), real):
        wide = seen.astype(np.float64)
        spread = wide.std(0)
        mean[columns], std[columns] = wide.mean(0), np.where(spread > CONSTANT, spread, 1.0)
    return mean, std


def scale_obs(scale: Normaliser, obs: Float[AnyArray, "B T N Do"]) -> Float[Array, "B T N Do"]:
    """Observations at zero mean and unit scale; padding is 0."""
    return (obs - _wide(scale.obs_mean)) / _wide(scale.obs_std) * for_each_step(scale.obs_real)


def scaled_obs(scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B T N Do"]:
    """The batch's observations, scaled; zero in padding and where the agent is absent."""
    return jnp.where(batch.mask[..., None], scale_obs(scale, batch.obs), 0.0)


def scaled_actions(scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B T N A"]:
    """Actions at zero mean and unit scale, or one-hot; zero in padding and where the agent is absent."""
    values = batch.actions
    if values.ndim == 3:
        values = _one_hot(values, scale.action_mean.shape[0])
    scaled = (values - _wide(scale.action_mean)) / _wide(scale.action_std) * for_each_step(scale.action_real)
    return jnp.where(batch.mask[..., None], scaled, 0.0)


def _one_hot(index: Int[Array, "B T N"], size: int) -> Float[Array, "B T N A"]:
    return (index[..., None] == _wide(jnp.arange(size))).astype(jnp.float32)


def for_each_step(real: Float[AnyArray, "N F"]) -> Float[Array, "1 1 N F"]:
    """A feature mask beside values [B, T, N, F]."""
    return jnp.asarray(real)[None, None]


def _wide(feature: AnyArray) -> Array:
    return jnp.asarray(feature)[None, None, None]
