"""The split never straddles a group, keeps its sizes, and gives every class its share."""

import numpy as np
import pytest

from data_gen.storage.split import allocate, scale_sizes, sizes_for, split_groups
from data_gen.trajectory import InputError, Labels, LabelSpec

SIZES = [24, 8, 16]


def labels_of(**columns: np.ndarray) -> Labels:
    specs = tuple(LabelSpec(name=name, source=name, kind="class") for name in columns)
    return Labels(values=columns, specs=specs)


def rows_of(group_class: np.ndarray, episodes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of groups numbered 100, 107, ..., in random order, and the class of each row's group."""
    order = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(group_class)), episodes))
    return (100 + 7 * order).astype(np.int32), group_class[order]


def by_group(groups: np.ndarray, split: np.ndarray) -> dict[int, set[int]]:
    return {int(g): set(split[groups == g].tolist()) for g in np.unique(groups)}


def table(group_class: np.ndarray, sizes: list[int] = SIZES, seed: int = 0) -> np.ndarray:
    """Groups of each class (rows) in each split (columns), counted by hand."""
    groups, classes = rows_of(group_class)
    split = split_groups(groups, labels_of(convention=classes), sizes, seed)
    counts = np.zeros((group_class.max() + 1, 3), int)
    for group, splits in by_group(groups, split).items():
        (only,) = splits
        counts[classes[groups == group][0], only] += 1
    return counts


def test_groups_never_straddle_and_sizes_hold():
    groups, _ = rows_of(np.zeros(48, np.int32))
    split = split_groups(groups, labels_of(), SIZES, seed=0)
    splits = by_group(groups, split)
    assert all(len(found) == 1 for found in splits.values())
    assert np.bincount([found.pop() for found in splits.values()]).tolist() == SIZES
    assert split.dtype == np.int32


def test_a_seed_gives_one_split_and_another_seed_another():
    groups, classes = rows_of(np.arange(48, dtype=np.int32) % 3)
    first, again, other = (split_groups(groups, labels_of(c=classes), SIZES, seed) for seed in (1, 1, 2))
    assert (first == again).all() and not (first == other).all()


def test_the_order_of_rows_does_not_matter():
    groups, classes = rows_of(np.arange(48, dtype=np.int32) % 3)
    order = np.random.default_rng(5).permutation(len(groups))
    split = split_groups(groups, labels_of(c=classes), SIZES, seed=0)
    np.testing.assert_array_equal(split_groups(groups[order], labels_of(c=classes[order]), SIZES, seed=0), split[order])


def test_classes_are_shared_out_exactly_where_they_divide():
    assert table(np.repeat([0, 1], [30, 18]).astype(np.int32)).tolist() == [[15, 5, 10], [9, 3, 6]]


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_shared_out_to_within_one(seed: int):
    sizes = np.array([13, 4, 11, 9, 10, 1])
    counts = table(np.repeat(np.arange(6), sizes).astype(np.int32), seed=seed)
    assert counts.sum(0).tolist() == SIZES and counts.sum(1).tolist() == sizes.tolist()
    assert (abs(counts - np.outer(sizes, SIZES) / 48) < 1).all()


def test_two_labels_are_combined_where_each_stratum_is_large_enough():
    one, two = np.meshgrid([0, 1], [0, 1, 2])
    one, two = np.repeat(one.ravel(), 8), np.repeat(two.ravel(), 8)
    groups, rows = rows_of(np.arange(48, dtype=np.int32), episodes=1)
    split = split_groups(groups, labels_of(one=one[rows], two=two[rows]), SIZES, seed=0)
    counts = np.zeros((2, 3, 3), int)
    np.add.at(counts, (one[rows], two[rows], split), 1)
    assert (abs(counts - np.array(SIZES) / 6) < 1).all()


def test_a_label_too_fine_to_combine_is_left_out():
    classes, fine = np.repeat([0, 1], 24), np.arange(48) % 24
    groups, rows = rows_of(np.arange(48, dtype=np.int32), episodes=1)
    split = split_groups(groups, labels_of(fine=fine[rows], coarse=classes[rows]), SIZES, seed=0)
    assert [np.bincount(split[classes[rows] == c]).tolist() for c in (0, 1)] == [[12, 4, 8], [12, 4, 8]]


def test_labels_that_vary_within_a_group_do_not_count():
    groups, _ = rows_of(np.zeros(48, np.int32), episodes=2)
    varying = np.random.default_rng(0).integers(0, 2, (len(groups), 3)).astype(np.int32)
    real = LabelSpec(name="real", source="real", kind="real")
    labels = labels_of(varying=varying, constant=np.ones(len(groups), np.int32))
    labels = Labels(values={**labels.values, "real": (groups % 2).astype(np.float32)}, specs=(*labels.specs, real))
    np.testing.assert_array_equal(
        split_groups(groups, labels, SIZES, seed=3), split_groups(groups, labels_of(), SIZES, seed=3)
    )


def test_an_agents_label_that_is_constant_counts():
    agent = np.stack([np.repeat([0, 1], [30, 18]), np.zeros(48, int)], axis=1)
    groups, rows = rows_of(np.arange(48, dtype=np.int32), episodes=2)
    split = split_groups(groups, labels_of(hill=agent[rows]), SIZES, seed=0)
    assert np.bincount(split[agent[rows, 0] == 1]).tolist() == [18, 6, 12]


@pytest.mark.parametrize(
    ("n_groups", "expected"),
    [
        (48, [24, 8, 16]),
        (6, [3, 1, 2]),
        (12, [6, 2, 4]),
        (3, [1, 1, 1]),
        (4, [2, 1, 1]),
        (5, [2, 1, 2]),
        (96, [48, 16, 32]),
    ],
)
def test_sizes_scale_with_the_groups(n_groups: int, expected: list[int]):
    assert scale_sizes(SIZES, n_groups).tolist() == expected


def test_scaled_sizes_are_near_their_share():
    for n_groups in range(3, 120):
        for sizes in ([24, 8, 16], [1, 1, 1], [100, 1, 1], [5, 3, 90]):
            places = scale_sizes(sizes, n_groups)
            share = n_groups * np.array(sizes) / sum(sizes)
            assert places.sum() == n_groups and places.min() >= 1
            assert (abs(places - share) < 1).all() or share.min() < 1


@pytest.mark.parametrize("sizes", [[24, 8], [24, 8, 0], [24, -8, 16], [0.5, 0.2, 0.3]])
def test_wrong_sizes_are_refused(sizes: list):
    with pytest.raises(InputError, match="recording.split"):
        scale_sizes(sizes, 48)


def test_two_groups_are_too_few_to_train_on():
    for sizes in (SIZES, [0, 0, 2]):
        assert split_groups(np.array([0, 0, 1, 1], np.int32), labels_of(), sizes, seed=0).tolist() == [2] * 4
    assert sizes_for(None, 2) == [0, 0, 2] and sizes_for(None, 3) == [1, 1, 1]
    assert sizes_for(None, 12) == [6, 2, 4] and sizes_for([1, 1, 2], 12) == [3, 3, 6]
    with pytest.raises(InputError, match="has 2 group"):
        sizes_for(SIZES, 2)


def test_allocate_keeps_both_margins():
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(1, 12, rng.integers(1, 7))
        places = rng.multinomial(sizes.sum() - 3, [0.5, 0.2, 0.3]) + 1 if sizes.sum() >= 3 else None
        if places is None:
            continue
        counts = allocate(sizes, places)
        np.testing.assert_array_equal(counts.sum(1), sizes)
        np.testing.assert_array_equal(counts.sum(0), places)
        assert (counts >= np.floor(np.outer(sizes, places) / sizes.sum())).all()
