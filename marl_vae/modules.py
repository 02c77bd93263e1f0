"""The heads above the encoders: a Gaussian, or a point."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from marl_vae.latents import Gaussian, point


class GaussianHead(nnx.Module):
    """An MLP of one hidden layer that gives a diagonal Gaussian."""

    def __init__(self, width: int, hidden: int, latent: int, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(width, hidden, rngs=rngs)
        # A small last layer: both posteriors and the prior start near N(0, I), where every KL is near zero.
        self.out = nnx.Linear(hidden, 2 * latent, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, x: Float[Array, "... D"]) -> Gaussian:
        mean, log_std = jnp.split(self.out(jax.nn.silu(self.hidden(x))), 2, axis=-1)
        return Gaussian(mean=mean, log_std=jnp.clip(log_std, -6.0, 3.0))


class PointHead(nnx.Module):
    """The same network for a point: a Gaussian whose standard deviation is 0, of which every draw is the mean."""

    def __init__(self, width: int, hidden: int, latent: int, *, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(width, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, latent, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, x: Float[Array, "... D"]) -> Gaussian:
        return point(self.out(jax.nn.silu(self.hidden(x))))
