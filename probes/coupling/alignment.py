"""Episodes of different groups held against one another: same checkpoint, same place in it.

Letters: B rows, G groups, M places.
"""

import numpy as np
from jaxtyping import Int

from data_gen.trajectory import RowIndex


def align(rows: RowIndex) -> Int[np.ndarray, "G M"]:
    """Row numbers, a group a line, so that a column has one checkpoint and one place among its episodes.

    Only what every group has: the checkpoints they share, and of each as many first episodes as the smallest group
    holds. Whole groups are then alike in all but what happened in them, which a permutation of them needs.
    """
    order = np.lexsort((rows.t0, rows.episode, rows.checkpoint, rows.group))
    groups, checkpoints = (np.unique(column, return_inverse=True) for column in (rows.group, rows.checkpoint))
    n_cells = len(groups[0]) * len(checkpoints[0])
    cell = groups[1].ravel()[order] * len(checkpoints[0]) + checkpoints[1].ravel()[order]
    counts = np.bincount(cell, minlength=n_cells).reshape(len(groups[0]), -1)
    place = np.arange(len(order)) - (np.cumsum(counts) - counts.ravel())[cell]
    kept = order[place < counts.min(axis=0)[cell % len(checkpoints[0])]]
    return kept.reshape(len(groups[0]), -1)
