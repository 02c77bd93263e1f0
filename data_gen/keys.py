"""Random keys by name and number, so that adding a domain, a seed or an episode changes no other."""

import zlib

import jax
from jaxtyping import Array, Int, Key


def named_key(seed: int, *path: str | int) -> Key[Array, ""]:
    """The key at a path such as ("hill_climbing", "train", 7): names are folded in by their CRC-32, numbers as such."""
    key = jax.random.key(seed)
    for step in path:
        key = jax.random.fold_in(key, zlib.crc32(step.encode()) if isinstance(step, str) else step)
    return key


def episode_key(
    key: Key[Array, ""], seed: Int[Array, ""], checkpoint: Int[Array, ""], number: Int[Array, ""]
) -> Key[Array, ""]:
    """The key of one recorded episode."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, seed), checkpoint), number)
