"""Change points of one seed: planted switches are found, and seeds without one are left alone."""

import numpy as np
import pytest
from scipy.stats import binom

from data_gen.trajectory import RowIndex
from probes.changes.series import Series, find_changes, pick_rows
from tests.probes.planted_teams import grid_rows, switching

CHECKPOINTS, EPISODES = 12, 8


def seeds_of(
    n_seeds: int, at: np.ndarray, *, size: float = 2.0, false_alarms: float = 0.01, permutations: int = 199
) -> list[Series]:
    """What is found in seeds that switch when they reach checkpoint `at`."""
    rows = grid_rows(n_seeds, CHECKPOINTS, EPISODES)
    rng = np.random.default_rng(0)
    z = switching(rows, at, size, rng).reshape(n_seeds, -1, 3)
    checkpoints = rows.checkpoint.reshape(n_seeds, -1)
    return [find_changes(one, when, false_alarms, permutations, rng) for one, when in zip(z, checkpoints, strict=True)]


def test_a_switch_is_found_within_one_checkpoint_in_95_of_100_draws():
    at = np.random.default_rng(1).integers(2, CHECKPOINTS - 1, 100)
    found = seeds_of(100, at)
    near = [any(abs(change.after - when) <= 1 for change in one.changes) for one, when in zip(found, at, strict=True)]
    further = [len(one.changes) > 1 for one in found]
    assert np.sum(near) >= 95 and np.sum(further) <= 5
    assert all(change.gain >= 1 and change.after == change.before + 1 for one in found for change in one.changes)


def test_without_a_switch_at_most_5_of_100_draws_have_one():
    found = seeds_of(100, np.full(100, CHECKPOINTS))
    assert np.sum([len(one.changes) > 0 for one in found]) <= 5
    assert all((len(one.changes) > 0) == (one.p <= 0.01) for one in found)


@pytest.mark.slow
def test_false_alarms_come_at_the_rate_that_was_asked_for():
    found = seeds_of(1000, np.full(1000, CHECKPOINTS), false_alarms=0.1, permutations=99)
    low, high = binom(1000, 0.1).ppf([0.005, 0.995])
    assert low <= np.sum([len(one.changes) > 0 for one in found]) <= high
    p = np.array([one.p for one in found])
    assert 0.45 < p.mean() < 0.55 and p.min() == pytest.approx(0.01)


def test_several_switches_and_one_there_and_back_are_found_with_unequal_episodes():
    rng = np.random.default_rng(2)
    sizes = rng.integers(3, 12, 16)
    codes = np.repeat(np.arange(16), sizes)
    for changed, want in (((4, 9, 13), [4, 9, 13]), ((7, 9), [7, 9])):
        step = np.sum([codes >= edge for edge in changed], axis=0) % 2
        z = rng.normal(size=(len(codes), 2)) + 3 * step[:, None]
        order = rng.permutation(len(codes))
        found = find_changes(z[order].astype(np.float32), 10 * codes[order] + 5, 0.01, 199, rng)
        assert [(change.before, change.after) for change in found.changes] == [(10 * e - 5, 10 * e + 5) for e in want]
        assert found.n_episodes == len(codes) and found.p == 1 / 200


def test_a_change_of_spread_or_of_shape_alone_is_found():
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(10), 20)
    late = (codes >= 5)[:, None]
    wider = rng.normal(size=(200, 2)) * np.where(late, 3, 1)
    apart = 0.2 * rng.normal(size=(200, 2)) + rng.choice([-2, 2], (200, 1))
    for z in (wider, np.where(late, apart, 2 * rng.normal(size=(200, 2)))):
        assert [change.after for change in find_changes(z, codes, 0.01, 199, rng).changes] == [5]


def test_fewer_than_four_checkpoints_are_not_evaluated():
    rng = np.random.default_rng(4)
    codes = np.repeat([0, 3, 8], 10)
    found = find_changes(rng.normal(size=(30, 2)) + 9 * codes[:, None], codes, 0.01, 199, rng)
    assert found.note == "not evaluated: 3 checkpoints; 4 are needed"
    assert found.changes == () and np.isnan(found.p) and found.checkpoints.tolist() == [0, 3, 8]


def test_latents_that_are_all_the_same_have_no_change():
    found = find_changes(np.ones((20, 2)), np.repeat(np.arange(5), 4), 0.01, 99, np.random.default_rng(5))
    assert found.changes == () and found.p == 1


def test_rows_are_one_an_episode_and_even_over_the_checkpoints():
    rng = np.random.default_rng(6)
    checkpoint = np.repeat([0, 1, 2], [30, 6, 14]).astype(np.int32)
    episode = np.concatenate([np.arange(30) // 3, np.arange(6), np.arange(14)]).astype(np.int32)
    zeros = np.zeros(50, np.int32)
    rows = RowIndex(episode=episode, group=zeros, checkpoint=checkpoint, t0=zeros)
    here = np.arange(50) != 40
    chosen = [pick_rows(rows, here, 24, np.random.default_rng(seed)) for seed in range(40)]
    for one in chosen:
        assert np.bincount(checkpoint[one]).tolist() == [9, 6, 9] and 40 not in one
        assert len(set(zip(checkpoint[one], episode[one], strict=True))) == 24
        assert (np.diff(checkpoint[one]) >= 0).all()
    assert set(np.concatenate(chosen)) == set(np.flatnonzero(here))
    assert len(pick_rows(rows, here, 10**6, rng)) == 10 + 6 + 13
    np.testing.assert_array_equal(chosen[3], pick_rows(rows, here, 24, np.random.default_rng(3)))
