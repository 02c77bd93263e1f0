"""Blocks that are permuted whole, random labels of units, and halves within units."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from probes.controls import generator, halves_within, negative_labels, permute_blocks, unit_labels
from tests.probes.oracles_scores import balanced_accuracy
from tests.probes.planted import CHECKPOINTS, planted_rows


def _blocks(values: np.ndarray, unit: np.ndarray) -> list[tuple]:
    return sorted(tuple(sorted(values[unit == u].tolist())) for u in np.unique(unit))


def test_permuting_moves_whole_blocks_and_keeps_them():
    rows, _ = planted_rows()
    unit = rows.group * CHECKPOINTS + rows.checkpoint
    values = np.arange(len(unit))
    permuted = permute_blocks(values, unit, np.ones(len(unit), bool), np.random.default_rng(0))
    assert _blocks(permuted, unit) == _blocks(values, unit)
    donors = [unit[permuted[unit == u]] for u in np.unique(unit)]
    assert all(len(set(donor.tolist())) == 1 for donor in donors)
    assert np.mean([donor[0] == u for u, donor in enumerate(donors)]) < 0.1
    assert any((np.diff(permuted[unit == u]) < 0).any() for u in np.unique(unit))


def test_blocks_of_unequal_size_take_their_donors_labels_alone():
    unit = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2, 2])
    values = unit * 10 + np.array([1, 2, 3, 4, 5, 1, 2, 1, 2, 3])
    here = np.ones(10, bool)
    for seed in range(20):
        permuted = permute_blocks(values, unit, here, np.random.default_rng(seed))
        for u in range(3):
            block = permuted[unit == u]
            assert len(set((block // 10).tolist())) == 1
            donor_size = (unit == block[0] // 10).sum()
            assert len(set(block.tolist())) == min(len(block), donor_size)


def test_rows_left_out_neither_give_nor_take():
    unit, values = np.repeat([0, 1, 2], 4), np.arange(12)
    here = np.arange(12) % 4 > 0
    permuted = permute_blocks(values, unit, here, np.random.default_rng(1))
    np.testing.assert_array_equal(permuted[~here], values[~here])
    assert set(permuted[here]) <= set(values[here])


def test_a_permutation_that_loses_a_class_in_the_test_rows_is_drawn_again():
    unit = np.repeat(np.arange(12), 2)
    values = np.repeat([0] * 9 + [1] * 3, 2)
    train, test = np.flatnonzero(unit % 4 > 0), np.flatnonzero(unit % 4 == 0)
    for seed in range(50):
        permuted = negative_labels(values, unit, train, test, np.random.default_rng(seed))
        assert set(permuted[test]) == set(permuted[train]) == {0, 1}


def test_permuting_whole_seeds_is_no_control_for_a_label_that_every_seed_repeats():
    """Design 5: progress is the same in every seed, so in whole seeds it stays where it was."""
    rows, split = planted_rows()
    rng = np.random.default_rng(0)
    progress = rows.checkpoint
    returns = (progress + rng.normal(size=len(progress)) > 1).astype(int)
    x = np.stack([progress + 0.5 * rng.normal(size=len(progress)), rng.normal(size=len(progress))], 1)
    order = rng.permutation(rows.group.max() + 1)
    by_seed = {"progress": progress.reshape(len(order), -1)[order].ravel()}
    by_seed["returns"] = returns.reshape(len(order), -1)[order].ravel()
    np.testing.assert_array_equal(by_seed["progress"], progress)
    unit = rows.group * CHECKPOINTS + rows.checkpoint
    train, test = np.flatnonzero(split == 0), np.flatnonzero(split == 2)
    for name, values, chance in (("progress", progress, 1 / 3), ("returns", returns, 1 / 2)):
        assert _refit(x, by_seed[name], train, test) > chance + 0.15
        draws = [negative_labels(values, unit, train, test, np.random.default_rng(s)) for s in range(40)]
        assert np.mean([_refit(x, draw, train, test) for draw in draws]) == pytest.approx(chance, abs=0.03)


def _refit(x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    return balanced_accuracy(y[test], LogisticRegression().fit(x[train], y[train]).predict(x[test]))


def test_units_get_one_value_each_with_the_labels_frequencies():
    unit = np.repeat(np.arange(20), 5)
    values, keep = np.repeat([3, 8, 9], [50, 25, 25]), np.arange(100) % 5 > 0
    drawn = unit_labels(values, unit, keep, np.random.default_rng(0))
    assert all(len(set(drawn[(unit == u) & keep])) == 1 for u in range(20))
    shares = np.mean([drawn[keep] == value for value in (3, 8, 9)], 1)
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.05)
    np.testing.assert_array_equal(drawn[~keep], values[~keep])
    without_nines = unit_labels(values, unit, values < 9, np.random.default_rng(0))
    assert set(without_nines[values < 9]) == {3, 8}
    assert (drawn != unit_labels(values, unit, keep, np.random.default_rng(1))).any()


def test_units_are_halved_within():
    unit, rows = np.repeat([4, 1, 9], [6, 5, 1]), np.arange(12)
    fit, scored = halves_within(unit, rows, np.random.default_rng(0))
    assert sorted([*fit, *scored]) == rows.tolist()
    assert [(unit[fit] == u).sum() for u in (4, 1, 9)] == [3, 3, 1]
    assert [(unit[scored] == u).sum() for u in (4, 1, 9)] == [3, 2, 0]


def test_streams_depend_on_label_purpose_and_seed():
    drawn = {
        generator(*name).integers(1 << 40) for name in [(0, "a", "p"), (1, "a", "p"), (0, "b", "p"), (0, "a", "q")]
    }
    assert len(drawn) == 4
    assert generator(0, "a", "p").integers(1 << 40) in drawn
