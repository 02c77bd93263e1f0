"""Scales of observations and actions, taken from the training episodes alone and kept with the model."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from data_gen.trajectory import ActionSpec, AnyArray, TrajectoryBatch


class Normaliser(NamedTuple):
    """Mean and standard deviation a feature, over real steps of all agents."""

    obs_mean: Float[AnyArray, " Do"]
    obs_std: Float[AnyArray, " Do"]
    action_mean: Float[AnyArray, " A"]
    action_std: Float[AnyArray, " A"]


def fit_normaliser(batch: TrajectoryBatch, action: ActionSpec) -> Normaliser:
    """Statistics of a batch; a constant feature keeps unit scale, and discrete actions are left as they are."""
    obs_mean, obs_std = _moments(batch.obs, batch.mask)
    if action.kind == "continuous":
        action_mean, action_std = _moments(batch.actions, batch.mask)
    else:
        action_mean, action_std = np.zeros(action.size, np.float32), np.ones(action.size, np.float32)
    return Normaliser(obs_mean=obs_mean, obs_std=obs_std, action_mean=action_mean, action_std=action_std)


def _moments(values: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    real = np.asarray(values)[np.asarray(mask)].astype(np.float64)
    std = real.std(0)
    return real.mean(0).astype(np.float32), np.where(std > 1e-6, std, 1.0).astype(np.float32)


def scale_obs(scale: Normaliser, obs: Float[AnyArray, "B T N Do"]) -> Float[Array, "B T N Do"]:
    """Observations at zero mean and unit scale."""
    return (obs - _wide(scale.obs_mean)) / _wide(scale.obs_std)


def scaled_obs(scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B T N Do"]:
    """The batch's observations, scaled; zero where the agent is absent."""
    return jnp.where(batch.mask[..., None], scale_obs(scale, batch.obs), 0.0)


def scaled_actions(scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B T N A"]:
    """Actions at zero mean and unit scale, or one-hot; zero where the agent is absent."""
    values = batch.actions
    if values.ndim == 3:
        values = _one_hot(values, scale.action_mean.shape[0])
    return jnp.where(batch.mask[..., None], (values - _wide(scale.action_mean)) / _wide(scale.action_std), 0.0)


def _one_hot(index: Int[Array, "B T N"], size: int) -> Float[Array, "B T N A"]:
    return (index[..., None] == _wide(jnp.arange(size))).astype(jnp.float32)


def _wide(feature: AnyArray) -> Array:
    return jnp.asarray(feature)[None, None, None]
