"""The action likelihood that a decoder's output stands for."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from data_gen.trajectory import ActionSpec, TrajectoryBatch
from marl_vae.latents import Gaussian, log_density
from marl_vae.normalise import Normaliser, for_each_step


def gaussian_policy(out: Float[Array, "*s A2"], scale: Normaliser, min_std: float) -> Gaussian:
    """The Gaussian over actions in their own units; the standard deviation stays above min_std of the data's."""
    mean, log_std = floored(out, min_std)
    wide = (None,) * (out.ndim - 1)
    mean_of, std_of = jnp.asarray(scale.action_mean)[wide], jnp.asarray(scale.action_std)[wide]
    return Gaussian(mean=mean_of + std_of * mean, log_std=log_std + jnp.log(std_of))


def floored(out: Float[Array, "*s A2"], min_std: float) -> Gaussian:
    """The Gaussian that a decoder's output stands for, in scaled units; its deviation stays above min_std."""
    mean, raw = jnp.split(out, 2, axis=-1)
    floor = jnp.log(min_std)
    return Gaussian(mean=mean, log_std=floor + jax.nn.softplus(raw - floor))


def action_log_likelihood(
    out: Float[Array, "B T N _"], batch: TrajectoryBatch, action: ActionSpec, scale: Normaliser, min_std: float
) -> Float[Array, "B T N"]:
    """log π(a_t^i | ·) in nats over the agent's real actions, zero where the agent is absent."""
    if action.kind == "continuous":
        density = log_density(gaussian_policy(out, scale, min_std), batch.actions)
        # Chosen, not multiplied: the decoder's output under padding is free, and 0 times an infinite density is NaN.
        value = jnp.where(for_each_step(scale.action_real) > 0, density, 0.0).sum(-1)
    else:
        value = jnp.take_along_axis(jax.nn.log_softmax(out), batch.actions[..., None], axis=-1)[..., 0]
    return jnp.where(batch.mask, value, 0.0)
