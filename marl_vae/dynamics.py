"""The likelihood of what an agent observes next, as the model predicts it from observation, latent and action."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from marl_vae.latents import log_density
from marl_vae.normalise import Normaliser, for_each_step
from marl_vae.policy import floored


def change_log_likelihood(
    out: Float[Array, "B T N Do2"],
    obs: Float[Array, "B T N Do"],
    mask: Bool[Array, "B T N"],
    scale: Normaliser,
    min_std: float,
) -> Float[Array, "B T-1 N"]:
    """log N(o_{t+1}^i − o_t^i; ·) in nats over the agent's real features, for observations `obs` in scaled units.

    Zero unless the agent is present at both steps. `out` is the decoder's, whose last step predicts nothing.
    """
    density = log_density(floored(out[:, :-1], min_std), obs[:, 1:] - obs[:, :-1])
    value = jnp.where(for_each_step(scale.obs_real) > 0, density, 0.0).sum(-1)
    return jnp.where(mask[:, 1:] & mask[:, :-1], value, 0.0)
