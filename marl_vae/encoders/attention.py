"""An encoder that attends over time and pools by attention."""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from marl_vae.encoders.encoder import Encoder

BLOCKS, HEADS, LONGEST = 2, 4, 10_000.0


class Attention(Encoder):
    """Pre-norm transformer blocks (Vaswani et al. 2017). Features: an attention-pooled and a mean vector.

    Time is the number of real steps before, in sines and cosines, so padding at either end changes nothing.
    """

    width = 2

    def __init__(self, inputs: int, hidden: int, *, rngs: nnx.Rngs):
        self.first = nnx.Linear(inputs, hidden, rngs=rngs)
        self.blocks = nnx.List([Block(hidden, rngs=rngs) for _ in range(BLOCKS)])
        self.norm = nnx.LayerNorm(hidden, rngs=rngs)
        self.query = nnx.Param(nnx.initializers.lecun_normal()(rngs.params(), (hidden, 1)))

    def __call__(self, x: Float[Array, "R S D"], mask: Bool[Array, "R S"]) -> Float[Array, "R F"]:
        x = self.first(x)
        x = jnp.where(mask[..., None], x + positions(mask, x.shape[-1]), 0.0)
        for block in self.blocks:
            x = block(x, mask)
        x = jnp.where(mask[..., None], self.norm(x), 0.0)
        weight = softmax_over(x @ self.query[...], mask[..., None], axis=1)
        mean = x.sum(1) / jnp.maximum(mask.sum(1), 1)[:, None]
        return jnp.concatenate([(weight * x).sum(1), mean], axis=-1)


class Block(nnx.Module):
    """Attention of each real step over all real steps, then a small network, both residual."""

    def __init__(self, hidden: int, *, rngs: nnx.Rngs):
        self.heads = max(heads for heads in range(1, HEADS + 1) if hidden % heads == 0)
        self.norms = nnx.List([nnx.LayerNorm(hidden, rngs=rngs) for _ in range(2)])
        self.qkv = nnx.Linear(hidden, 3 * hidden, rngs=rngs)
        self.joined = nnx.Linear(hidden, hidden, rngs=rngs)
        self.wide = nnx.Linear(hidden, 2 * hidden, rngs=rngs)
        self.narrow = nnx.Linear(2 * hidden, hidden, rngs=rngs)

    def __call__(self, x: Float[Array, "R S H"], mask: Bool[Array, "R S"]) -> Float[Array, "R S H"]:
        r, s, h = x.shape
        q, k, v = jnp.split(self.qkv(self.norms[0](x)).reshape(r, s, self.heads, -1), 3, axis=-1)
        scores = jnp.einsum("rshd,rthd->rhst", q, k) / (h // self.heads) ** 0.5
        weight = softmax_over(scores, mask[:, None, None], axis=-1)
        x = x + self.joined(jnp.einsum("rhst,rthd->rshd", weight, v).reshape(r, s, h))
        return x + self.narrow(jax.nn.silu(self.wide(self.norms[1](x))))


def softmax_over(scores: Float[Array, "..."], real: Bool[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Softmax over what is real; zeros where nothing is."""
    return jax.nn.softmax(jnp.where(real, scores, -1e9), axis=axis) * real


def positions(mask: Bool[Array, "R S"], width: int) -> Float[Array, "R S _"]:
    """sin and cos of the number of real steps before, at wave lengths from 2π to 2π · 10,000 in equal ratios."""
    count = jnp.cumsum(mask, axis=1).astype(jnp.float32) - 1
    half = (width + 1) // 2
    rates = LONGEST ** (-jnp.arange(half) / max(half - 1, 1))
    angle = count[..., None] * rates[None, None]
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)[..., :width]
