"""Streams of random numbers of a training run, one for each use."""

import jax
from jaxtyping import Array, PRNGKeyArray, UInt32

ORDER, NOISE, VALIDATION, HELD_ORDER, HELD_NOISE = range(5)


def key_of(seed: int | UInt32[Array, ""], use: int) -> PRNGKeyArray:
    """The key of one use."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), 1), use)
