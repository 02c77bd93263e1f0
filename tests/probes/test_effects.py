"""Means over pairs and their intervals: against loops, and coverage where pairs share groups."""

import numpy as np
from scipy.stats import norm, t

from probes.interventions.effects import correlation, estimate, pair_weights, slopes
from probes.scores import draw_groups


def brute_means(values: np.ndarray, ends: list[np.ndarray], draws: np.ndarray) -> np.ndarray:
    """The mean over every way to take a row's ends from the groups drawn, one by one."""
    means = []
    for draw in draws.astype(int):
        drawn = np.repeat(np.arange(len(draw)), draw)
        found = []
        for row, value in enumerate(values):
            ways = 1
            for end in ends:
                ways *= sum(1 for group in drawn if group == end[row])
            found += [value] * (0 if np.isnan(value) else ways)
        means.append(np.mean(found) if found else np.nan)
    return np.array(means)


def test_the_interval_is_that_of_means_over_the_pairs_of_drawn_groups():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 5, (3, 40))
    values = rng.normal(size=40)
    values[::7] = np.nan
    draws = draw_groups(rng, 5, 200)
    for ends in ([a], [a, b], [a, b, c]):
        found, means = estimate(values, ends, draws), brute_means(values, ends, draws)
        assert np.isclose(found.value, np.nanmean(values))
        tail = norm.cdf(-np.sqrt(5 / 4) * t.ppf(0.975, 4))  # the expanded interval of 5 groups
        np.testing.assert_allclose(found[1:], np.nanquantile(means, (tail, 1 - tail)))
    assert np.isnan(estimate(np.full(40, np.nan), [a], draws)).all()
    assert pair_weights(draws, [a, b]).max() > 1


def test_intervals_cover_where_both_ends_have_an_effect_of_their_own():
    """400 data sets of 400 pairs of 16 groups, as many as the default's test groups."""
    rng, n_groups, hits, narrow = np.random.default_rng(1), 16, 0, 0
    for _ in range(400):
        a = rng.integers(0, n_groups, 400)
        b = (a + rng.integers(1, n_groups, 400)) % n_groups
        of_a, of_b = rng.normal(size=(2, n_groups))
        values = 0.3 + of_a[a] + of_b[b] + rng.normal(size=400)
        draws = draw_groups(rng, n_groups, 400)
        found, one_end = estimate(values, [a, b], draws), estimate(values, [a], draws)
        hits += found.low < 0.3 < found.high
        narrow += one_end.low < 0.3 < one_end.high
    assert 0.91 <= hits / 400 <= 0.98
    assert narrow / 400 < 0.9


def test_a_slope_is_that_of_a_fitted_line():
    at, outcomes = [-2.0, -1.0, 0.0, 3.0], np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_allclose(slopes(outcomes, at), np.polyfit(at, outcomes, 1)[0])


def test_a_correlation_leaves_out_what_is_not_there():
    a = np.array([1.0, 2.0, 4.0, np.nan])
    assert np.isclose(correlation(a, np.array([2.0, 1.0, 0.0, 5.0])), np.corrcoef([1, 2, 4], [2, 1, 0])[0, 1])
    assert np.isnan(correlation(a, np.ones(4)))
