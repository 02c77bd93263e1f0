"""Heads and decoder: the networks above the encoders."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from marl_vae.latents import Gaussian


class GaussianHead(nnx.Module):
    """An MLP of one hidden layer that gives a diagonal Gaussian."""

    def __init__(self, width: int, hidden: int, latent: int, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(width, hidden, rngs=rngs)
        # A small last layer: both posteriors and the prior start near N(0, I), where every KL is near zero.
        self.out = nnx.Linear(hidden, 2 * latent, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, x: Float[Array, "... D"]) -> Gaussian:
        mean, log_std = jnp.split(self.out(jax.nn.silu(self.hidden(x))), 2, axis=-1)
        return Gaussian(mean=mean, log_std=jnp.clip(log_std, -6.0, 3.0))


class PolicyDecoder(nnx.Module):
    """π(a | o, context): two hidden layers over the observation and a context that is constant over the episode."""

    def __init__(self, obs: int, context: int, hidden: int, out: int, *, rngs: nnx.Rngs):
        self.from_obs = nnx.Linear(obs, hidden, rngs=rngs)
        self.from_context = nnx.Linear(context, hidden, use_bias=False, rngs=rngs)
        self.hidden = nnx.Linear(hidden, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, out, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, obs: Float[Array, "B T N Do"], context: Float[Array, "B N C"]) -> Float[Array, "B T N _"]:
        x = jax.nn.silu(self.from_obs(obs) + self.from_context(context)[:, None])
        return self.out(jax.nn.silu(self.hidden(x)))
