"""ICTD against naive double loops, its errors against repeated draws of whole data sets."""

import numpy as np
import pytest
from scipy import stats

from probes.clusters.distances import Pairs, draw_pairs
from probes.clusters.ictd import ictd_records, n_clusters_of, ratio
from tests.probes.oracles_clusters import naive_ictd


def drawn(seed: int, n: int = 24, n_groups: int = 5):
    """Distances, labels with noise, pairs and groups with gaps in their numbers."""
    rng = np.random.default_rng(seed)
    pairs = draw_pairs(n, 150, rng)
    distance = rng.gamma(2.0, size=150)
    distance[::17] = np.nan
    return distance, rng.integers(-1, 3, n), pairs, 3 * rng.integers(0, n_groups, n) + 2


def without_group(distance, labels, pairs, group, g) -> float:
    kept = (group[pairs.first] != g) & (group[pairs.second] != g)
    return naive_ictd(distance[kept], labels, pairs.first[kept], pairs.second[kept])


@pytest.mark.parametrize("seed", range(3))
def test_the_ratio_and_each_ratio_without_a_group_are_naive_loops(seed):
    distance, labels, pairs, group = drawn(seed)
    found = ratio(distance, labels, pairs, group)
    assert found.value == pytest.approx(naive_ictd(distance, labels, pairs.first, pairs.second))
    want = [without_group(distance, labels, pairs, group, g) for g in np.unique(group)]
    np.testing.assert_allclose(found.without, want)
    usable = [not np.isnan(d) and labels[a] >= 0 <= labels[b] for d, a, b in zip(distance, *pairs, strict=True)]
    assert found.n_within + found.n_between == sum(usable)


def test_records_compare_with_the_mixture_pair_for_pair():
    distance, labels, pairs, group = drawn(3)
    other = np.random.default_rng(9).integers(0, 2, len(labels))
    first, second = ictd_records({"euclidean": distance}, {"mixture": labels, "k-means, raw": other}, pairs, group)
    ratios = [ratio(distance, one, pairs, group) for one in (labels, other)]
    without = ratios[0].without - ratios[1].without
    se = np.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum())
    assert second["minus"] == pytest.approx(ratios[0].value - ratios[1].value)
    assert second["minus_high"] - second["minus"] == pytest.approx(stats.t.ppf(0.975, 4) * se)
    assert second["minus"] - second["minus_low"] == pytest.approx(stats.t.ppf(0.975, 4) * se)
    assert first["minus"] == first["minus_low"] == first["minus_high"] == 0
    assert (first["n_clusters"], second["n_clusters"], second["distance"]) == (3, 2, "euclidean")
    own = np.sqrt(4 / 5 * ((ratios[1].without - ratios[1].without.mean()) ** 2).sum())
    assert second["se"] == pytest.approx(own)


def test_too_few_pairs_are_said_and_none_at_all_is_not_a_number():
    pairs = Pairs(np.array([1, 2, 3]), np.array([0, 0, 0]))
    group, distance = np.array([0, 1, 2, 3]), np.ones(3)
    (record,) = ictd_records({"dtw": distance}, {"mixture": np.array([0, 0, 1, 1])}, pairs, group)
    assert record["note"] == "only 1 within pairs; only 2 between pairs"
    assert record["ictd"] == 1 and np.isnan(record["se"])  # without group 0 or 1 there is no pair within
    assert np.isnan(ratio(distance, np.zeros(4, int), pairs, group).value)
    assert n_clusters_of(np.array([-1, -1, 0, 4])) == 2


def test_errors_are_those_of_new_groups_and_pairs_alone_would_be_too_narrow():
    """Each group has a manner of its own, so its episodes are alike; 300 data sets of 24 groups of 6 episodes."""
    rng = np.random.default_rng(4)
    group, labels = np.repeat(np.arange(24), 6), np.repeat(np.arange(24) % 2, 6)
    values, errors, naive = [], [], []
    for _ in range(300):
        manner = rng.normal(size=24)[group]
        place = 2.0 * labels + manner + 0.3 * rng.normal(size=len(group))
        pairs = draw_pairs(len(group), 1500, rng)
        distance = np.abs(place[pairs.first] - place[pairs.second])
        (record,) = ictd_records({"d": distance}, {"mixture": labels}, pairs, group)
        values.append(record["ictd"])
        errors.append(record["se"])
        alike = labels[pairs.first] == labels[pairs.second]
        parts = [distance[alike], distance[~alike]]
        naive.append(record["ictd"] * np.sqrt(sum(part.var() / len(part) / part.mean() ** 2 for part in parts)))
    assert 0.85 < np.mean(errors) / np.std(values) < 1.15
    assert np.mean(naive) / np.std(values) < 0.25
