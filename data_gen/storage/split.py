"""Which groups train, validate and test: by group, stratified, the same for the same seed. G groups, K splits."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int32

from data_gen.trajectory import SPLITS, InputError, Labels

SHARES = (3, 1, 2)  # of groups that train, validate and test, where nobody says otherwise
# A stratum smaller than this cannot give a group to each split.
SMALLEST_STRATUM = len(SPLITS)


def split_groups(
    groups: Int32[np.ndarray, " B"], labels: Labels, sizes: Sequence[int | float], seed: int
) -> Int32[np.ndarray, " B"]:
    """The split of each row, numbered as SPLITS; all rows of a group share one.

    Strata are the classes that are constant within every group (their combination, see `strata_of`). With n_s groups in
    stratum s and m_k places in split k, of G in all, it gets n_s m_k / G of them, rounded by largest remainder with
    both margins kept. `sizes` is scaled to the number of groups. Of fewer than 3 groups all rows test, so that nothing
    can be fitted on them. Raises InputError for wrong sizes.
    """
    names, first, row_group = np.unique(groups, return_index=True, return_inverse=True)
    if len(names) < len(SPLITS):
        return np.full(len(groups), SPLITS.index("test"), np.int32)
    places = scale_sizes(sizes, len(names))
    strata = strata_of(row_group, first, labels)
    counts = allocate(np.bincount(strata), places)
    split = np.empty(len(names), np.int32)
    for stratum, row in enumerate(counts):
        members = np.flatnonzero(strata == stratum)
        # Folded in by stratum, so that one more group changes the order within its own stratum alone.
        order = np.random.default_rng([seed, stratum]).permutation(members)
        split[order] = np.repeat(np.arange(len(SPLITS), dtype=np.int32), row)
    return split[row_group].astype(np.int32)


def sizes_for(asked: Sequence[int] | None, n_groups: int) -> list[int]:
    """The sizes that are asked for, or SHARES, for so many groups; where none are asked, under 3 groups all test.

    Raises InputError for wrong sizes, and where what is asked needs more groups.
    """
    if asked is None and n_groups < len(SPLITS):
        return [0, 0, n_groups]
    return scale_sizes(SHARES if asked is None else asked, n_groups).tolist()


def scale_sizes(sizes: Sequence[int | float], n_groups: int) -> Int[np.ndarray, " K"]:
    """`sizes` in proportion to `n_groups`, largest remainder, at least one group each. Raises InputError."""
    wanted = np.asarray(sizes)
    if wanted.shape != (len(SPLITS),) or wanted.dtype.kind != "i" or (wanted < 1).any():
        raise InputError(
            f"The split is {list(sizes)}; it must be three whole numbers of at least 1: the groups that train, "
            f"validate and test. Set recording.split, for example to [24, 8, 16]."
        )
    if n_groups < len(SPLITS):
        raise InputError(
            f"The data set has {n_groups} group(s) (training seeds or recordings); training, validation and test need "
            f"at least one each, since rows of one group never straddle the split. Record more groups."
        )
    total, shares = int(wanted.sum()), wanted * n_groups
    places = np.maximum(1, shares // total)
    while places.sum() != n_groups:
        step = np.sign(n_groups - places.sum())
        owed = step * (shares - places * total)
        places[np.where(places + step > 0, owed, np.iinfo(np.int64).min).argmax()] += step
    return places


def strata_of(row_group: Int[np.ndarray, " B"], first: Int[np.ndarray, " G"], labels: Labels) -> Int[np.ndarray, " G"]:
    """The stratum of each group: the combination of its constant class labels.

    Labels are left out of the combination, those with most classes first, until each stratum holds at least 3 groups or
    one label is left. All groups are one stratum where no label is constant within groups.
    """
    codes = [np.unique(column[first], return_inverse=True)[1] for column in _constant_columns(row_group, first, labels)]
    codes = sorted((code for code in codes if code.max() > 0), key=lambda code: code.max())
    while codes:
        strata = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].reshape(-1)
        if len(codes) == 1 or np.bincount(strata).min() >= SMALLEST_STRATUM:
            return strata
        codes.pop()
    return np.zeros(len(first), np.int64)


def _constant_columns(
    row_group: Int[np.ndarray, " B"], first: Int[np.ndarray, " G"], labels: Labels
) -> list[np.ndarray]:
    classes = [labels.values[spec.source] for spec in labels.specs if spec.kind == "class"]
    columns = [column for values in classes for column in values.reshape(len(row_group), -1).T]
    return [column for column in columns if (column == column[first][row_group]).all()]


def allocate(sizes: Int[np.ndarray, " S"], places: Int[np.ndarray, " K"]) -> Int[np.ndarray, "S K"]:
    """Integers near sizes_s places_k / G whose rows sum to `sizes` and whose columns sum to `places`."""
    shares = np.outer(sizes, places)
    counts, rest = np.divmod(shares, sizes.sum())
    rows, columns = sizes - counts.sum(1), places - counts.sum(0)
    while rows.sum():
        open_cells = np.where((rows[:, None] > 0) & (columns[None] > 0), rest, np.iinfo(np.int64).min)
        s, k = np.unravel_index(open_cells.argmax(), rest.shape)
        counts[s, k] += 1
        rest[s, k] -= sizes.sum()
        rows[s] -= 1
        columns[k] -= 1
    return counts
