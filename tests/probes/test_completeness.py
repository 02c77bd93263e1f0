"""The ratio and its interval against row-by-row brute force; when it is undefined; which rows choose."""

import numpy as np
import pytest
from scipy.stats import norm, t

from data_gen.trajectory import RowIndex
from probes.concepts.completeness import (
    Task,
    best_strength,
    completeness,
    fit_and_score,
    floor_of,
    make_task,
    smallest_within_one_error,
)
from probes.labels import Target
from probes.probe import Probe, predict
from probes.scores import Sums, class_sums, draw_groups, point, skill_sums
from tests.probes.oracles_scores import balanced_accuracy, resample, skill

G, K, M = 12, 3, 180


def _guesses(right: float, rng: np.random.Generator, y: np.ndarray) -> np.ndarray:
    return np.where(rng.random(len(y)) < right, y, rng.integers(0, K, len(y)))


def _answers(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y, groups = rng.choice(K, M, p=[0.5, 0.3, 0.2]), rng.permutation(np.arange(M) % G)
    return y, groups, _guesses(0.8, rng, y), _guesses(0.5, rng, y)


def _class_sums(y: np.ndarray, guess: np.ndarray, groups: np.ndarray) -> Sums:
    return class_sums(y, guess, groups, (G, K))


def test_completeness_is_the_share_of_skill_and_its_interval_that_of_resampled_rows():
    y, groups, full, through = _answers()
    weights = draw_groups(np.random.default_rng(1), G, 300)
    found = completeness("class", _class_sums(y, full, groups), _class_sums(y, through, groups), weights)

    def ratio(rows: np.ndarray) -> float:
        floor = 1 / len(set(y[rows].tolist()))
        top = balanced_accuracy(y[rows], through[rows]) - floor
        return top / (balanced_accuracy(y[rows], full[rows]) - floor)

    draws = [ratio(resample(groups, counts)) for counts in weights]
    assert found.value == pytest.approx(ratio(np.arange(M)))
    tail = norm.cdf(-np.sqrt(G / (G - 1)) * t.ppf(0.975, G - 1))
    assert found.low == pytest.approx(np.quantile(draws, tail, method="higher"))
    assert found.high == pytest.approx(np.quantile(draws, 1 - tail, method="lower"))
    assert 0.2 < found.low < found.value < found.high < 1 and found.note == ""
    assert (found.full, found.through) == pytest.approx((balanced_accuracy(y, full), balanced_accuracy(y, through)))
    assert found.floor == pytest.approx(balanced_accuracy(y, np.zeros(M, int)))


def test_nothing_is_complete_by_default():
    y, groups, full, _ = _answers()
    weights = draw_groups(np.random.default_rng(1), G, 200)
    whole = _class_sums(y, full, groups)
    same, none = (
        completeness("class", whole, _class_sums(y, guess, groups), weights) for guess in (full, np.zeros(M, int))
    )
    assert (same.value, same.low, same.high) == (1, 1, 1)
    assert (none.value, none.low, none.high) == pytest.approx((0, 0, 0))


def test_a_real_target_has_the_training_mean_as_its_floor():
    rng = np.random.default_rng(0)
    y, groups = rng.normal(size=M), np.arange(M) % G
    full, through = y + 0.4 * rng.normal(size=M), y + 0.8 * rng.normal(size=M)
    of_full, of_through = (skill_sums(y, guess, 0.1, groups, G) for guess in (full, through))
    found = completeness("real", of_full, of_through, draw_groups(np.random.default_rng(1), G, 200))
    assert found.value == pytest.approx(skill(y, through, 0.1) / skill(y, full, 0.1)) and found.floor == 0


def test_completeness_is_undefined_where_the_full_model_may_not_beat_the_floor():
    y, groups, _, through = _answers()
    full = _guesses(0.08, np.random.default_rng(4), y)
    weights = draw_groups(np.random.default_rng(1), G, 500)
    found = completeness("class", _class_sums(y, full, groups), _class_sums(y, through, groups), weights)
    assert found.full > found.floor and np.isnan([found.value, found.low, found.high]).all()
    assert found.note.startswith("undefined: full - floor is") and found.through > 0.5


def test_the_few_draws_in_which_the_full_model_fails_lie_beyond_both_ends():
    # The full model is wrong about all of group 0 and right about the others; concepts keep most of that.
    totals = np.array([[6.0, 6.0]] + [[4.0, 4.0]] * 5)
    right = np.array([0, 1, 1, 1, 1, 1])[:, None]
    kept = np.array([0, 0.95, 0.5, 0.9, 0.9, 0.9])[:, None]
    full, through = Sums(hits=right * totals, totals=totals), Sums(hits=kept * totals, totals=totals)
    weights = np.ones((10000, 6))  # the expanded interval leaves .0024 below it
    weights[:20] = [5, 1, 0, 0, 0, 0]
    weights[20:35], weights[35:50] = [1, 5, 0, 0, 0, 0], [1, 0, 5, 0, 0, 0]
    found = completeness("class", full, through, weights)
    value, high, low = ((share * 20 / 26 - 0.5) / (20 / 26 - 0.5) for share in (kept.sum() / 5, 0.95, 0.5))
    assert (found.value, found.low, found.high) == pytest.approx((value, low, high))
    weights[:26] = [5, 1, 0, 0, 0, 0]
    assert np.isnan(completeness("class", full, through, weights).value)


def test_the_floor_of_a_draw_without_a_class_is_that_of_the_others():
    sums = Sums(hits=np.zeros((3, 3)), totals=np.array([[2.0, 1, 0], [0, 1, 0], [1, 0, 5]]))
    weights = np.array([[1.0, 1, 1], [3, 0, 0], [0, 3, 0]])
    np.testing.assert_allclose(floor_of("class", sums, weights), [1 / 3, 1 / 2, 1])
    np.testing.assert_array_equal(floor_of("real", sums, weights), 0)


def test_the_smallest_number_within_one_error_of_the_best_is_chosen():
    values, errors = np.array([0.5, 0.68, 0.71, 0.73, 0.70]), np.array([0.9, 0.01, 0.02, 0.03, 0.5])
    assert smallest_within_one_error(values, errors) == 2
    assert smallest_within_one_error(values, 0 * errors) == 3
    assert smallest_within_one_error(values, errors + 1) == 0


def _target(values: np.ndarray, keep: np.ndarray) -> Target:
    names = tuple(str(i) for i in range(int(values.max()) + 1))
    return Target("a", "a", "team", "class", values, keep, np.arange(len(values)), names, "", "")


def _rows(groups: np.ndarray) -> RowIndex:
    n = len(groups)
    zeros = np.zeros(n, np.int32)
    return RowIndex(episode=np.arange(n, dtype=np.int32), group=groups.astype(np.int32), checkpoint=zeros, t0=zeros)


def test_validation_groups_choose_and_folds_of_training_groups_where_they_cannot():
    groups = np.repeat(np.arange(10), 4)
    split = np.repeat([0, 1, 2], [24, 8, 8]).astype(np.int32)
    values, keep = np.arange(40) % 2, np.arange(40) != 5
    task = make_task(_target(values, keep), _rows(groups), split, 3)
    ((fit, held),) = task.choosing
    np.testing.assert_array_equal(fit, np.setdiff1d(np.arange(24), [5]))
    np.testing.assert_array_equal(held, np.arange(24, 32))
    np.testing.assert_array_equal(task.test, np.arange(32, 40))
    values[24:32] = 1
    folds = make_task(_target(values, keep), _rows(groups), split, 3).choosing
    assert len(folds) == 3
    np.testing.assert_array_equal(np.sort(np.concatenate([held for _, held in folds])), fit)
    assert all(not set(groups[a]) & set(groups[b]) for a, b in folds)
    alone = np.where(groups < 3, 0, 1)
    alone[24:32] = 1
    keep = np.isin(groups, [0, 3, 6, 7, 8, 9])
    assert make_task(_target(alone, keep), _rows(groups), split, 2).choosing == []


def _task(seed: int = 0) -> tuple[Task, np.ndarray, Probe]:
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(15), 8)).astype(np.int32)
    x = rng.normal(size=(120, 4))
    y = (x[:, 0] + rng.normal(size=120) > 0).astype(int)
    train, test = np.flatnonzero(groups < 10), np.flatnonzero(groups >= 10)
    folds = [(train[groups[train] % 2 == i], train[groups[train] % 2 != i]) for i in (0, 1)]
    task = Task(kind="class", n_classes=2, values=y, groups=groups, train=train, test=test, choosing=folds)
    return task, x, Probe(strengths=[1e-3, 0.1, 10.0])


def test_folds_are_pooled_each_with_its_own_features():
    task, x, config = _task()
    features = [x, x[:, ::-1] * 2]
    sums, converged = fit_and_score(task, "linear", features, task.choosing, 0.1, config)
    guess = np.full(120, -1)
    for (fit, held), values in zip(task.choosing, features, strict=True):
        guess[held] = predict("linear", "class", values[fit], task.values[fit], values[held], 0.1, config).values
    assert converged and sums.totals.sum() == 80 and len(sums.totals) == 10
    assert point(sums) == pytest.approx(balanced_accuracy(task.values[task.train], guess[task.train]))
    hits = [(guess == task.values)[task.groups == g].sum() for g in range(10)]
    np.testing.assert_array_equal(sums.hits.sum(1), hits)


def test_the_best_strength_is_that_of_a_plain_loop():
    task, x, config = _task(3)
    noisy = np.concatenate([x, np.random.default_rng(0).normal(size=(120, 40))], 1)
    sums, strength = best_strength(task, "linear", [noisy] * 2, config)
    slow = {s: point(fit_and_score(task, "linear", [noisy] * 2, task.choosing, s, config)[0]) for s in config.strengths}
    assert strength == max(slow, key=lambda s: slow[s]) and point(sums) == max(slow.values()) > min(slow.values())
