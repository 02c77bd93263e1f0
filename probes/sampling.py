"""Rows drawn evenly over the parts of a data set.

Letters: n rows, k drawn.
"""

import numpy as np
from jaxtyping import Int


def draw_evenly(
    part: Int[np.ndarray, " n"], most: int, rng: np.random.Generator, *, by_size: bool = False
) -> Int[np.ndarray, " k"]:
    """Places of at most `most` rows, in order: equally many of each part or, `by_size`, of each its share.

    Drawn at random within a part. Where a part has fewer than the others, all of it is drawn and the others fill up.
    """
    if len(part) <= most:
        return np.arange(len(part))
    shuffled = rng.permutation(len(part))
    order = shuffled[np.argsort(part[shuffled], kind="stable")]
    _, starts, sizes = np.unique(part[order], return_index=True, return_counts=True)
    turn = np.arange(len(order)) - np.repeat(starts, sizes) + rng.random(len(starts)).repeat(sizes)
    return np.sort(order[np.argsort(turn / np.repeat(sizes, sizes) if by_size else turn, kind="stable")[:most]])
