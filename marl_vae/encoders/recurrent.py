"""Bidirectional recurrent encoders. R rows, S steps, D inputs, H hidden width, G gates."""

import abc
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from marl_vae.encoders.encoder import Encoder


class Recurrent(Encoder):
    """Weights of a forward and a backward cell. Features: last state and mean state of both directions.

    A masked step leaves the state as it was, so padding changes nothing.
    """

    width = 4
    gates: int
    memories: int  # arrays that a cell carries from step to step, the hidden state first

    def __init__(self, inputs: int, hidden: int, *, rngs: nnx.Rngs):
        start = nnx.initializers.lecun_normal(in_axis=-2, out_axis=-1, batch_axis=(0,))
        recurrent = nnx.initializers.orthogonal()
        self.inputs = nnx.Param(start(rngs.params(), (2, inputs, self.gates * hidden)))
        blocks = [recurrent(rngs.params(), (hidden, hidden)) for _ in range(2 * self.gates)]
        square = jnp.concatenate(blocks, axis=-1).reshape(hidden, 2, self.gates * hidden)
        self.recurrent = nnx.Param(square.swapaxes(0, 1))
        first = self.first_bias(hidden)
        self.bias = nnx.Param(jnp.stack([first, first]))

    @abc.abstractmethod
    def first_bias(self, hidden: int) -> Float[Array, " GH"]:
        """The bias of a direction before training."""

    @abc.abstractmethod
    def advance(
        self, state: tuple[Float[Array, "2 R H"], ...], gates: Float[Array, "2 R GH"], pushed: Float[Array, "2 R GH"]
    ) -> tuple[Float[Array, "2 R H"], ...]:
        """The next state from the input's part of the gates and that of the last hidden state."""

    def __call__(self, x: Float[Array, "R S D"], mask: Bool[Array, "R S"]) -> Float[Array, "R F"]:
        return self.together([self], [x], [mask])[0]

    @classmethod
    def together(
        cls,
        encoders: Sequence[Any],
        inputs: Sequence[Float[Array, "_ S _"]],
        masks: Sequence[Bool[Array, "_ S"]],
    ) -> list[Float[Array, "_ F"]]:
        """One scan carries all cells; the input's part of the gates is computed for all steps at once before it."""
        gates = [encoder.input_gates(x) for encoder, x in zip(encoders, inputs, strict=True)]
        real = [jnp.stack([mask, mask[:, ::-1]]).transpose(2, 0, 1)[..., None] for mask in masks]
        weights = [encoder.recurrent[...] for encoder in encoders]
        zeros = [jnp.zeros((*gate.shape[1:3], gate.shape[3] // cls.gates)) for gate in gates]

        def step(carry, now):
            moved = [_masked(*each) for each in zip(encoders, weights, carry, *now, strict=True)]
            return moved, None

        start = [((zero,) * cls.memories, zero) for zero in zeros]
        last, _ = jax.lax.scan(step, start, (gates, real))
        return [_features(state, mask) for state, mask in zip(last, masks, strict=True)]

    def input_gates(self, x: Float[Array, "R S D"]) -> Float[Array, "S 2 R GH"]:
        """Input part of the gates for both directions; the backward one reads time reversed."""
        both = jnp.stack([x, x[:, ::-1]])
        return jnp.einsum("drsi,dik->sdrk", both, self.inputs[...]) + self.bias[...][None, :, None]


def _masked(encoder, weight, carry, gates, real):
    state, total = carry
    new = encoder.advance(state, gates, jnp.einsum("drh,dhk->drk", state[0], weight))
    kept = tuple(jnp.where(real, after, before) for after, before in zip(new, state, strict=True))
    return kept, total + jnp.where(real, new[0], 0.0)


def _features(carry, mask):
    (hidden, *_), total = carry
    mean = total / jnp.maximum(mask.sum(-1), 1)[None, :, None]
    return jnp.concatenate([hidden[0], hidden[1], mean[0], mean[1]], axis=-1)


class BiLSTM(Recurrent):
    """Long short-term memory (Hochreiter & Schmidhuber 1997; gates i, f, g, o; forget bias 1)."""

    gates, memories = 4, 2

    def first_bias(self, hidden: int) -> Float[Array, " GH"]:
        return jnp.zeros(4 * hidden).at[hidden : 2 * hidden].set(1.0)

    def advance(self, state, gates, pushed):
        i, f, g, o = jnp.split(gates + pushed, 4, axis=-1)
        memory = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(memory), memory


class BiGRU(Recurrent):
    """Gated recurrent unit (Cho et al. 2014; gates r, u, n), the reset gate after the recurrent product.

    h ← u h + (1 − u) tanh(n_x + r n_h), with sigmoid gates r and u.
    """

    gates, memories = 3, 1

    def first_bias(self, hidden: int) -> Float[Array, " GH"]:
        return jnp.zeros(3 * hidden)

    def advance(self, state, gates, pushed):
        return (gated_update(state[0], gates, pushed),)


def gated_update(
    hidden: Float[Array, "*rows H"], gates: Float[Array, "*rows GH"], pushed: Float[Array, "*rows GH"]
) -> Float[Array, "*rows H"]:
    """The GRU's next hidden state from the input's part of the gates r, u, n and that of the last hidden state."""
    (r_x, u_x, n_x), (r_h, u_h, n_h) = (jnp.split(part, 3, axis=-1) for part in (gates, pushed))
    update = jax.nn.sigmoid(u_x + u_h)
    return update * hidden + (1 - update) * jnp.tanh(n_x + jax.nn.sigmoid(r_x + r_h) * n_h)
