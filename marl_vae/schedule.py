"""Annealing of the KL weights, one schedule a level."""

import math
from dataclasses import dataclass, field

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from data_gen.trajectory import InputError


def _linear(v):
    return v


def _cosine(v):
    return 0.5 - 0.5 * jnp.cos(jnp.pi * v)


def _sigmoid(v):
    low, high = 1 / (1 + jnp.exp(6.0)), 1 / (1 + jnp.exp(-6.0))
    return (1 / (1 + jnp.exp(6.0 - 12.0 * v)) - low) / (high - low)


# Each rises from exactly 0 at v = 0 to exactly 1 at v = 1.
SHAPES = {"linear": _linear, "cosine": _cosine, "sigmoid": _sigmoid}


@dataclass
class Cyclical:
    """`cycles` M, `ratio` R of a cycle spent rising, `maximum` held after it; M = 1 is monotonic warm-up."""

    shape: str = "linear"
    cycles: int = 4
    ratio: float = 0.5
    maximum: float = 1.0

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise InputError(f"schedule shape {self.shape!r} is unknown; choose one of {', '.join(SHAPES)}.")
        if self.cycles < 1 or not 0 <= self.ratio <= 1 or not 0 <= self.maximum < math.inf:
            raise InputError(
                f"schedule needs cycles >= 1, 0 <= ratio <= 1 and a finite maximum >= 0; it has cycles={self.cycles}, "
                f"ratio={self.ratio}, maximum={self.maximum}."
            )


@dataclass
class Schedule:
    """The weights of both KL terms; the joint level's cycles are those at whose ends models are compared."""

    joint: Cyclical = field(default_factory=Cyclical)
    local: Cyclical = field(default_factory=Cyclical)


def beta(cyclical: Cyclical, step: Int[Array, ""] | int, total: int) -> Float[Array, ""]:
    """Weight at `step` of `total` steps: maximum * f(τ/R) for τ < R, else maximum (Fu et al. 2019).

    τ = (step mod T/M) / (T/M) is the position in the cycle, in [0, 1): the ramp starts at 0, the plateau is the
    maximum itself.
    """
    period = total / cyclical.cycles
    position = jnp.mod(jnp.asarray(step, jnp.float32), period) / period
    ramp = SHAPES[cyclical.shape](position / max(cyclical.ratio, 1e-9))
    return cyclical.maximum * jnp.where(position < cyclical.ratio, ramp, 1.0)


def ends_cycle(cyclical: Cyclical, before: int, after: int, total: int) -> bool:
    """Whether a cycle was completed by going from step `before` to step `after`."""
    return after * cyclical.cycles // total > before * cyclical.cycles // total
