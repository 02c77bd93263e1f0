"""Two controls that answer different questions: is there a leak, and could the probe have memorised its unit?

Letters: B rows, K rows chosen.
"""

import zlib

import numpy as np
from jaxtyping import Bool, Int, Num

REDRAWS = 100


def generator(seed: int, label: str, purpose: str) -> np.random.Generator:
    """A random stream of its own for each label and purpose, so that adding one changes no other."""
    return np.random.default_rng([seed, zlib.crc32(label.encode()), zlib.crc32(purpose.encode())])


def permute_blocks(
    values: Num[np.ndarray, " B"],
    unit: Int[np.ndarray, " B"],
    here: Bool[np.ndarray, " B"],
    rng: np.random.Generator,
) -> Num[np.ndarray, " B"]:
    """Give every unit the labels of another, in random order; rows not `here` keep their own.

    A block is all of a unit's rows that are `here`, whatever their split. A donor that is too short is used again, one
    that is too long gives a random part.
    """
    rows = np.flatnonzero(here)
    order = rows[np.argsort(unit[rows], kind="stable")]
    blocks = np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)
    permuted = values.copy()
    for block, donor in zip(blocks, rng.permutation(len(blocks)), strict=True):
        permuted[block] = np.resize(rng.permutation(values[blocks[donor]]), len(block))
    return permuted


def negative_labels(
    values: Num[np.ndarray, " B"],
    unit: Int[np.ndarray, " B"],
    train: Int[np.ndarray, " n"],
    test: Int[np.ndarray, " m"],
    rng: np.random.Generator,
) -> Num[np.ndarray, " B"]:
    """Labels permuted over units, training and test together, for a refit that must score at chance.

    A permutation that leaves the test rows without one of the classes would shift chance itself, so it is drawn again;
    for real targets every draw is taken.
    """
    here = np.zeros(len(values), bool)
    here[train] = here[test] = True
    permuted = permute_blocks(values, unit, here, rng)
    if not np.issubdtype(values.dtype, np.integer):
        return permuted
    classes = np.unique(values[here])
    for _ in range(REDRAWS):
        if all(len(np.unique(permuted[part])) == len(classes) for part in (train, test)):
            break
        permuted = permute_blocks(values, unit, here, rng)
    return permuted


def unit_labels(
    values: Num[np.ndarray, " B"], unit: Int[np.ndarray, " B"], keep: Bool[np.ndarray, " B"], rng: np.random.Generator
) -> Num[np.ndarray, " B"]:
    """One random value for each unit, with the label's own frequencies (Hewitt and Liang 2019, section 2).

    The values are evenly spaced order statistics of the label, shuffled over units, so the frequencies are exact.
    """
    codes = np.unique(unit[keep], return_inverse=True)[1].ravel()
    n_units, ordered = codes.max() + 1, np.sort(values[keep])
    picked = ordered[((np.arange(n_units) + 0.5) / n_units * len(ordered)).astype(int)]
    drawn = values.copy()
    drawn[keep] = rng.permutation(picked)[codes]
    return drawn


def halves_within(
    unit: Int[np.ndarray, " B"], rows: Int[np.ndarray, " K"], rng: np.random.Generator
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " m"]]:
    """Rows to fit on and rows to score, half of every unit each; a unit's odd row is fitted on."""
    shuffled = rng.permutation(rows)
    order = shuffled[np.argsort(unit[shuffled], kind="stable")]
    starts = np.flatnonzero(np.diff(unit[order], prepend=unit[order[:1]] - 1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return order[place % 2 == 0], order[place % 2 == 1]
