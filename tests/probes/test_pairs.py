"""Pairs of episodes to swap: of other classes, of other groups, and no group speaks for all."""

import numpy as np

from data_gen.trajectory import RowIndex
from probes.interventions.pairs import Ends, draw_pairs, ends_of
from probes.labels import Target
from tests.probes.planted import planted_rows


def target_of(values: np.ndarray, classes: tuple[str, ...], rows: RowIndex) -> Target:
    kind = "class" if classes else "real"
    keep, unit = np.ones(len(values), bool), np.arange(len(values))
    return Target("mood", "mood", "team", kind, values, keep, unit, classes, note="", failure="")


def test_ends_are_test_episodes_of_the_classes_and_checkpoints_asked_for():
    rows, split = planted_rows()
    target = target_of(np.random.default_rng(0).integers(0, 3, len(split)), ("low", "high", "none"), rows)
    ends = ends_of(target, rows, split, ["none"], [2])
    np.testing.assert_array_equal(ends.allowed, (split == 2) & (target.values < 2) & (rows.checkpoint == 2))
    assert ends.failure == "" and ends_of(target, rows, split, ["none", "low"], []).failure != ""
    assert ends_of(target._replace(failure="one class"), rows, split, [], []).failure == "one class"


def test_a_class_of_one_test_group_gives_no_pair():
    rows, split = planted_rows()
    values = np.where(rows.group == rows.group[split == 2][0], 2, rows.episode % 2)
    ends = ends_of(target_of(values, ("a", "b", "c"), rows), rows, split, [], [])
    assert set(values[ends.allowed]) == {0, 1} and (split[ends.allowed] == 2).all()


def test_of_a_number_the_thirds_at_both_ends_are_paired():
    rows, split = planted_rows()
    target = target_of(np.random.default_rng(0).normal(size=len(split)), (), rows)
    ends = ends_of(target, rows, split, [], [])
    test = np.sort(target.values[split == 2])
    third = len(test) // 3
    low, high = target.values[ends.allowed & (ends.codes == 0)], target.values[ends.allowed & (ends.codes == 1)]
    np.testing.assert_array_equal(np.sort(low), test[: len(low)])
    np.testing.assert_array_equal(np.sort(high), test[-len(high) :])
    assert abs(len(low) - third) <= 1 and abs(len(high) - third) <= 1


def test_pairs_differ_in_class_and_group_and_every_order_of_classes_is_as_frequent():
    rng = np.random.default_rng(0)
    codes, groups = rng.integers(0, 3, 400), np.repeat(np.arange(8), 50).astype(np.int32)
    allowed = rng.random(400) < 0.8
    pairs = draw_pairs(Ends(codes, allowed, ""), groups, 600, rng)
    a, b, same = pairs
    assert allowed[np.concatenate(pairs)].all()
    assert (codes[a] != codes[b]).all() and (codes[a] == codes[same]).all()
    assert (groups[a] != groups[b]).all() and (groups[a] != groups[same]).all()
    np.testing.assert_array_equal(np.unique(codes[a] * 3 + codes[b], return_counts=True)[1], np.full(6, 100))
    assert np.abs(np.diff(codes[a][:300])).sum() > 50  # in random order


def test_a_group_with_many_episodes_is_drawn_as_often_as_one_with_few():
    groups = np.concatenate([np.zeros(300), np.repeat([1, 2, 3], 4)]).astype(np.int32)
    codes = np.arange(len(groups)) % 2
    pairs = draw_pairs(Ends(codes, np.ones(len(groups), bool), ""), groups, 2000, np.random.default_rng(1))
    share = np.bincount(groups[pairs.a], minlength=4) / 2000
    assert np.abs(share - 0.25).max() < 0.04
