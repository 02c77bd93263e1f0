"""What an encoder is. R rows, S steps, D inputs, F features."""

import abc
from collections.abc import Sequence
from typing import Any

from flax import nnx
from jaxtyping import Array, Bool, Float


class Encoder(nnx.Module):
    """A network over time. `width` is the number of features that it gives for a hidden width of 1."""

    width: int

    @abc.abstractmethod
    def __init__(self, inputs: int, hidden: int, *, rngs: nnx.Rngs):
        """New weights for D `inputs`."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "R S D"], mask: Bool[Array, "R S"]) -> Float[Array, "R F"]:
        """Features of each row; what stands under the mask, at either end or between, changes nothing."""

    @classmethod
    def together(
        cls,
        encoders: Sequence[Any],
        inputs: Sequence[Float[Array, "_ S _"]],
        masks: Sequence[Bool[Array, "_ S"]],
    ) -> list[Float[Array, "_ F"]]:
        """Several encoders of one kind over the same steps, each with its own rows."""
        return [encoder(x, mask) for encoder, x, mask in zip(encoders, inputs, masks, strict=True)]
