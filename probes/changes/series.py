"""The change points of one training seed at one level.

Letters: n episodes, C checkpoints, Z latents, B rows.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from ruptures.costs import CostRbf

from data_gen.trajectory import RowIndex
from probes.changes.segments import block_sums, change_points, gains, least_penalty, segment_worth
from probes.pairings import p_of_first
from probes.sampling import draw_evenly

LEAST_CHECKPOINTS = 4


class Change(NamedTuple):
    """The last checkpoint before and the first after, and the gain over the penalty, 1 or more."""

    before: int
    after: int
    gain: float


class Series(NamedTuple):
    """A seed's changes at a level in their order; `p` is that of any change at all. `note` says why there is none."""

    checkpoints: Int[np.ndarray, " C"]
    n_episodes: int
    changes: tuple[Change, ...]
    penalty: float
    p: float
    note: str


def pick_rows(
    rows: RowIndex, here: Bool[np.ndarray, " B"], most: int, rng: np.random.Generator
) -> Int[np.ndarray, " n"]:
    """Of the rows that are `here`, one of each episode and `most` in all, drawn evenly over the checkpoints.

    Windows of one episode are alike, so they cannot be shuffled one by one as episodes can. Chosen at random.
    """
    shuffled = rng.permutation(np.flatnonzero(here))
    recordings = np.stack([rows.checkpoint[shuffled], rows.episode[shuffled]])
    _, first = np.unique(recordings, axis=1, return_index=True)
    alone = shuffled[first]
    return alone[draw_evenly(rows.checkpoint[alone], most, rng)]


def find_changes(
    z: Float[np.ndarray, "n Z"],
    checkpoints: Int[np.ndarray, " n"],
    false_alarms: float,
    permutations: int,
    rng: np.random.Generator,
) -> Series:
    """Change points between checkpoints, with the penalty that gives `false_alarms` of the unchanging seeds any.

    Where nothing changes, a seed's episodes are exchangeable, whatever their checkpoint. They are shuffled over the
    checkpoints, sizes kept, and each time the smallest penalty at which the search finds no change is noted. Their
    quantile is the penalty: the k-th smallest, k = ceil((1 − false_alarms)(permutations + 1)), which is exact for any
    number of permutations.
    """
    numbers, codes, sizes = np.unique(checkpoints, return_inverse=True, return_counts=True)
    nothing = Series(numbers, len(z), (), math.nan, math.nan, "")
    if len(numbers) < LEAST_CHECKPOINTS:
        return nothing._replace(
            note=f"not evaluated: {len(numbers)} checkpoint{'s' * (len(numbers) != 1)}; {LEAST_CHECKPOINTS} are needed"
        )
    gram = CostRbf().fit(z.astype(float)).gram
    shuffled = rng.permuted(np.tile(codes, (permutations, 1)), axis=1)
    sums = block_sums(gram, np.concatenate([codes[None], shuffled]), len(numbers))
    worth = segment_worth(sums, sizes)
    least = least_penalty(worth)
    rank = math.ceil((1 - false_alarms) * (permutations + 1))
    penalty = float(np.sort(least[1:])[rank - 1])
    found = change_points(sums[0], sizes, penalty)
    changes = tuple(
        Change(before=int(numbers[edge - 1]), after=int(numbers[edge]), gain=gain / penalty)
        for edge, gain in zip(found, gains(worth[0], found), strict=True)
    )
    return nothing._replace(changes=changes, penalty=penalty, p=p_of_first(least))
