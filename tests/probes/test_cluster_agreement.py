"""The adjusted Rand index against pairs counted one by one, and the jackknife against what it stands for."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from probes.clusters.agreement import adjusted_rand, rand_record
from probes.clusters.jackknife import error, t_interval
from tests.probes.oracles_clusters import brute_adjusted_rand


@pytest.mark.parametrize("seed", range(8))
def test_the_index_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(-1, 4, 23), rng.integers(0, 2 + seed % 3, 23)
    second = np.where(rng.random(23) < 0.5, first, second)
    assert adjusted_rand(first, second) == pytest.approx(brute_adjusted_rand(first, second), abs=1e-12)
    assert adjusted_rand(first, second) == pytest.approx(adjusted_rand_score(first, second), abs=1e-12)
    assert adjusted_rand(second, first) == pytest.approx(adjusted_rand(first, second), abs=1e-12)


def test_names_do_not_matter_and_one_class_or_singletons_agree_with_themselves():
    first = np.array([0, 0, 1, 1, 2])
    assert adjusted_rand(first, np.array([7, 7, -1, -1, 3])) == 1
    assert adjusted_rand(np.zeros(5, int), np.zeros(5, int)) == adjusted_rand(np.arange(5), np.arange(5)) == 1
    assert adjusted_rand(first, np.zeros(5, int)) == 0
    # Worse than chance: no pair that is together in one is together in the other.
    assert adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])) == pytest.approx(-0.5)


def test_independent_partitions_agree_by_zero_on_average():
    rng = np.random.default_rng(0)
    values = [adjusted_rand(rng.integers(0, 3, 30), rng.integers(0, 4, 30)) for _ in range(500)]
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(500)


def test_each_group_is_left_out_once():
    rng = np.random.default_rng(1)
    group = np.array([9, 4, 4, 2, 9, 2, 4, 9, 2, 2] * 3)
    clusters, classes = rng.integers(-1, 2, 30), rng.integers(0, 3, 30)
    record = rand_record(clusters, classes, group)
    without = np.array([brute_adjusted_rand(clusters[group != g], classes[group != g]) for g in (2, 4, 9)])
    assert record["adjusted_rand"] == pytest.approx(brute_adjusted_rand(clusters, classes))
    assert record["se"] == pytest.approx(np.sqrt(2 / 3 * ((without - without.mean()) ** 2).sum()))
    assert (record["n_clusters"], record["n_classes"], record["n_groups"]) == (3, 3, 3)
    half = stats.t.ppf(0.975, 2) * record["se"]
    assert record["ci_low"] == pytest.approx(record["adjusted_rand"] - half)
    assert record["ci_high"] == pytest.approx(min(record["adjusted_rand"] + half, 1))


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.random.default_rng(2).normal(size=11)
    without = (values.sum() - values) / 10
    assert error(without) == pytest.approx(values.std(ddof=1) / np.sqrt(11))
    low, high = stats.t.interval(0.95, 10, values.mean(), values.std(ddof=1) / np.sqrt(11))
    np.testing.assert_allclose(t_interval(float(values.mean()), without), (low, high))
    assert np.isnan(error(np.ones(1))) and np.isnan(t_interval(1.0, np.ones(1))).all()
