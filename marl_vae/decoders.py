"""Decoders: feed-forward, or recurrent over what the agent has seen so far. H hidden width, C context, O outputs."""

import abc

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from marl_vae.encoders.recurrent import gated_update

Memory = Float[Array, "B N H"] | tuple[()]


class Decoder(nnx.Module):
    """A network over each agent's own observations and a context that is constant over the episode.

    The output of step t sees observations up to t, none after it, and no action.
    """

    @abc.abstractmethod
    def __init__(self, obs: int, context: int, hidden: int, out: int, *, rngs: nnx.Rngs):
        """New weights."""

    @abc.abstractmethod
    def __call__(
        self, obs: Float[Array, "B T N Do"], context: Float[Array, "B N C"], mask: Bool[Array, "B T N"]
    ) -> Float[Array, "B T N O"]:
        """All steps of whole episodes."""

    @abc.abstractmethod
    def start(self, batch: int, agents: int) -> Memory:
        """What is remembered before the first step."""

    @abc.abstractmethod
    def step(
        self,
        memory: Memory,
        obs: Float[Array, "B N Do"],
        context: Float[Array, "B N C"],
        present: Bool[Array, "B N"],
    ) -> tuple[Float[Array, "B N O"], Memory]:
        """One step, and what is remembered after it."""


class FeedForward(Decoder):
    """Two hidden layers over the observation of the step alone; nothing is remembered."""

    def __init__(self, obs: int, context: int, hidden: int, out: int, *, rngs: nnx.Rngs):
        self.from_obs = nnx.Linear(obs, hidden, rngs=rngs)
        self.from_context = nnx.Linear(context, hidden, use_bias=False, rngs=rngs)
        self.hidden = nnx.Linear(hidden, hidden, rngs=rngs)
        self.out = nnx.Linear(hidden, out, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, obs, context, mask):
        x = jax.nn.silu(self.from_obs(obs) + self.from_context(context)[:, None])
        return self.out(jax.nn.silu(self.hidden(x)))

    def start(self, batch, agents):
        return ()

    def step(self, memory, obs, context, present):
        return self(obs[:, None], context, present[:, None])[:, 0], memory


class GRU(Decoder):
    """h_t = GRU(h_{t−1}, silu(W o_t + V context)) and an output linear in h_t; h_0 = 0 (Cho et al. 2014).

    A step at which the agent is absent leaves h as it was.
    """

    def __init__(self, obs: int, context: int, hidden: int, out: int, *, rngs: nnx.Rngs):
        self.from_obs = nnx.Linear(obs, hidden, rngs=rngs)
        self.from_context = nnx.Linear(context, hidden, use_bias=False, rngs=rngs)
        self.gates = nnx.Linear(hidden, 3 * hidden, rngs=rngs)
        blocks = [nnx.initializers.orthogonal()(rngs.params(), (hidden, hidden)) for _ in range(3)]
        self.recurrent = nnx.Param(jnp.concatenate(blocks, axis=-1))
        self.out = nnx.Linear(hidden, out, kernel_init=nnx.initializers.normal(0.01), rngs=rngs)

    def __call__(self, obs, context, mask):
        gates = self._input_gates(obs, context[:, None])
        weight = self.recurrent[...]

        def step(memory, now):
            one, present = now
            memory = _held(memory, one, present, weight)
            return memory, memory

        first = self.start(obs.shape[0], obs.shape[2])
        _, memories = jax.lax.scan(step, first, (gates.swapaxes(0, 1), mask.swapaxes(0, 1)))
        return self.out(memories.swapaxes(0, 1))

    def start(self, batch, agents):
        return jnp.zeros((batch, agents, self.recurrent[...].shape[0]))

    def step(self, memory, obs, context, present):
        memory = _held(memory, self._input_gates(obs, context), present, self.recurrent[...])
        return self.out(memory), memory

    def _input_gates(self, obs, context):
        return self.gates(jax.nn.silu(self.from_obs(obs) + self.from_context(context)))


def _held(memory, gates, present, weight):
    return jnp.where(present[..., None], gated_update(memory, gates, memory @ weight), memory)


DECODERS = {"feedforward": FeedForward, "recurrent": GRU}
