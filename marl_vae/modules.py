"""The networks that the model is made of. R rows, S steps, D inputs, H hidden width."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from marl_vae.latents import Gaussian


class BiLSTM(nnx.Module):
    """Weights of a forward and a backward LSTM (Hochreiter & Schmidhuber 1997; gates i, f, g, o; forget bias 1)."""

    def __init__(self, width: int, hidden: int, *, rngs: nnx.Rngs):
        inputs = nnx.initializers.lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(0,))
        recurrent = nnx.initializers.orthogonal()
        self.inputs = nnx.Param(inputs(rngs.params(), (2, width, 4 * hidden)))
        blocks = [recurrent(rngs.params(), (hidden, hidden)) for _ in range(8)]
        self.recurrent = nnx.Param(jnp.concatenate(blocks, axis=-1).reshape(hidden, 2, 4 * hidden).swapaxes(0, 1))
        forget = jnp.zeros(4 * hidden).at[hidden : 2 * hidden].set(1.0)
        self.bias = nnx.Param(jnp.stack([forget, forget]))

    def gates(self, x: Float[Array, "R S D"]) -> Float[Array, "S 2 R H4"]:
        """Input part of the gates for both directions; the backward one reads time reversed."""
        both = jnp.stack([x, x[:, ::-1]])
        return jnp.einsum("drsi,dik->sdrk", both, self.inputs[...]) + self.bias[...][None, :, None]


def summarise(
    cells: Sequence[BiLSTM], inputs: Sequence[Float[Array, "_ S _"]], masks: Sequence[Bool[Array, "_ S"]]
) -> list[Float[Array, "_ H4"]]:
    """Last state and mean state of every cell in both directions, over real steps only.

    One scan carries all cells. A masked step leaves the state as it was, so padding at either end changes nothing.
    """
    gates = [cell.gates(x) for cell, x in zip(cells, inputs, strict=True)]
    real = [jnp.stack([mask, mask[:, ::-1]]).transpose(2, 0, 1)[..., None] for mask in masks]
    weights = [cell.recurrent[...] for cell in cells]
    zeros = [jnp.zeros((*gate.shape[1:3], gate.shape[3] // 4)) for gate in gates]

    def advance(carry, step):
        moved = [_lstm_step(*args) for args in zip(weights, carry, *step, strict=True)]
        return moved, None

    start = [(zero, zero, zero) for zero in zeros]
    last, _ = jax.lax.scan(advance, start, (gates, real))
    return [_features(state, mask) for state, mask in zip(last, masks, strict=True)]


def _lstm_step(weight, state, gates, real):
    hidden, cell, total = state
    i, f, g, o = jnp.split(gates + jnp.einsum("drh,dhk->drk", hidden, weight), 4, axis=-1)
    new_cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    new_hidden = jax.nn.sigmoid(o) * jnp.tanh(new_cell)
    return (
        jnp.where(real, new_hidden, hidden),
        jnp.where(real, new_cell, cell),
        total + jnp.where(real, new_hidden, 0.0),
    )


def _features(state, mask):
    hidden, _, total = state
    mean = total / jnp.maximum(mask.sum(-1), 1)[None, :, None]
    return jnp.concatenate([hidden[0], hidden[1], mean[0], mean[1]], axis=-1)


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
