"""Mini-batches: drawn on the device for training, in fixed-size pieces for everything else."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PRNGKeyArray, PyTree

from data_gen.trajectory import (
    Episodes,
    InputError,
    TrajectoryBatch,
    n_episodes,
    take,
    to_device,
)

PIECE = 256


def epoch_rows(key: PRNGKeyArray, step: Int[Array, ""], n_rows: int, batch: int) -> Int[Array, " batch"]:
    """Rows of this step's mini-batch: an epoch visits rows once, in a new order, but for what does not fill a batch."""
    per_epoch = n_rows // batch
    order = epoch_order(key, step // per_epoch, n_rows)
    return jax.lax.dynamic_slice_in_dim(order, (step % per_epoch) * batch, batch)


def epoch_order(key: PRNGKeyArray, epoch: int | Int[Array, ""], n_rows: int) -> Int[Array, " n_rows"]:
    """All rows in the order in which an epoch visits them."""
    return jax.random.permutation(jax.random.fold_in(key, epoch), n_rows)


def pieces(batch: TrajectoryBatch | Episodes) -> Iterator[TrajectoryBatch]:
    """All episodes in their order, at most PIECE at a time."""
    for start in range(0, n_episodes(batch), PIECE):
        yield take(batch, np.arange(start, min(start + PIECE, n_episodes(batch)), dtype=np.int32))


def check_episodes(
    check: Callable[[TrajectoryBatch, str], None], batch: TrajectoryBatch | Episodes, where: str
) -> None:
    """`check(batch, where)`, which raises InputError; of Episodes a piece at a time, those that have a real step."""
    if isinstance(batch, TrajectoryBatch):
        return check(batch, where)
    empty = True
    for number, piece in enumerate(pieces(batch)):
        if piece.mask.any():
            check(piece, f"{where} from number {number * PIECE}")
            empty = False
    if empty:
        raise InputError(f"{where}: there is no episode with a real step; nothing could be learned or embedded.")


def presence(batch: TrajectoryBatch | Episodes) -> Bool[np.ndarray, "B 1 N"]:
    """Which agents have a real step; a mask whose steps are one."""
    return np.concatenate([np.any(piece.mask, axis=1, keepdims=True) for piece in pieces(batch)])


def in_pieces(function: Callable[..., PyTree], batch: TrajectoryBatch | Episodes, *aligned: PyTree) -> Any:
    """`function(batch, *aligned)` over pieces of one fixed size, so that it compiles once; results as NumPy arrays.

    The last piece is filled up with rows from the start, whose results are dropped.
    """
    n_rows = n_episodes(batch)
    size = min(PIECE, n_rows)
    parts = []
    for start in range(0, n_rows, size):
        rows = np.arange(start, start + size, dtype=np.int32) % n_rows
        piece = to_device(take(batch, rows))
        found = function(piece, *jax.tree.map(lambda field, rows=rows: field[rows], aligned))
        keep = min(size, n_rows - start)
        parts.append(jax.tree.map(lambda x, keep=keep: np.asarray(x)[:keep], found))
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts)


def rows_on_device(batch: TrajectoryBatch, rows: Int[Array, " K"]) -> TrajectoryBatch:
    """The given rows of a batch that lies on the device."""
    return TrajectoryBatch(*(jnp.take(field, rows, axis=0) for field in batch))
