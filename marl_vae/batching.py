"""Mini-batches: drawn on the device for training, in fixed-size pieces for everything else."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from data_gen.trajectory import TrajectoryBatch, take, to_device

PIECE = 256


def epoch_rows(key: PRNGKeyArray, step: Int[Array, ""], n_rows: int, batch: int) -> Int[Array, " batch"]:
    """Rows of this step's mini-batch: an epoch visits rows once, in a new order, but for what does not fill a batch."""
    per_epoch = n_rows // batch
    order = jax.random.permutation(jax.random.fold_in(key, step // per_epoch), n_rows)
    return jax.lax.dynamic_slice_in_dim(order, (step % per_epoch) * batch, batch)


def in_pieces(function: Callable[..., PyTree], batch: TrajectoryBatch, *aligned: PyTree) -> Any:
    """`function(batch, *aligned)` over pieces of one fixed size, so that it compiles once; results as NumPy arrays.

    The last piece is filled up with rows from the start, whose results are dropped.
    """
    n_rows = len(batch.mask)
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
