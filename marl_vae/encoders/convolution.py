"""An encoder of dilated convolutions over time."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from marl_vae.encoders.encoder import Encoder

DILATIONS, TAPS = (1, 2, 4, 8), 3  # a step sees 31 steps, 15 on either side


class DilatedConvolution(Encoder):
    """Residual blocks of centred convolutions (Bai et al. 2018, but not causal). Features: mean and maximum over time.

    Absent steps are 0 before every convolution, as beyond both ends, so padding changes nothing.
    """

    width = 2

    def __init__(self, inputs: int, hidden: int, *, rngs: nnx.Rngs):
        self.first = nnx.Linear(inputs, hidden, rngs=rngs)
        self.blocks = nnx.List([Block(hidden, dilation, rngs=rngs) for dilation in DILATIONS])

    def __call__(self, x: Float[Array, "R S D"], mask: Bool[Array, "R S"]) -> Float[Array, "R F"]:
        real = mask[..., None]
        x = jnp.where(real, self.first(x), 0.0)
        for block in self.blocks:
            x = jnp.where(real, block(x), 0.0)
        mean = x.sum(1) / jnp.maximum(real.sum(1), 1)
        # From below the maximum's least value, so that it has a gradient on real steps alone; 0 where no step is real.
        top = jnp.where(real, x, -jnp.inf).max(1)
        return jnp.concatenate([mean, jnp.where(real.any(1), top, 0.0)], axis=-1)


class Block(nnx.Module):
    """x + W silu(x * k)."""

    def __init__(self, hidden: int, dilation: int, *, rngs: nnx.Rngs):
        self.conv = nnx.Conv(hidden, hidden, (TAPS,), kernel_dilation=(dilation,), padding="SAME", rngs=rngs)
        self.out = nnx.Linear(hidden, hidden, rngs=rngs)

    def __call__(self, x: Float[Array, "R S H"]) -> Float[Array, "R S H"]:
        return x + self.out(jax.nn.silu(self.conv(x)))
