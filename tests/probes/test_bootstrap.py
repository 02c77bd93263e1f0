"""Draws of groups and encoder seeds against resampled rows, and intervals against their textbook form."""

import numpy as np
import pytest
from scipy.stats import norm, t

from probes.bootstrap import draw_weights, interval_of, mean_of, minus, sample, variances, widening
from probes.controls import generator
from probes.scores import class_sums, interval, skill_sums
from tests.probes.oracles_scores import balanced_accuracy, resample, skill

G, K, M, E = 6, 3, 120, 4


def _predictions(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, groups and the predictions of E encoders, each right in its own share of rows."""
    rng = np.random.default_rng(seed)
    y, groups = rng.integers(0, K, M), rng.integers(0, G, M)
    right = rng.random((E, M)) < np.linspace(0.3, 0.9, E)[:, None]
    return y, groups, np.where(right, y, rng.integers(0, K, (E, M)))


def test_draws_of_groups_and_encoders_are_crossed_and_those_of_rows():
    y, groups, guesses = _predictions()
    weights = draw_weights(0, "label", G, {E}, 40)
    one = sample([class_sums(y, guess, groups, (G, K)) for guess in guesses], weights)
    alone = np.array([balanced_accuracy(y, guess) for guess in guesses])
    assert one.value == pytest.approx(alone.mean())
    for d in range(40):
        rows = resample(groups, weights.groups[d])
        of_encoders = np.array([balanced_accuracy(y[rows], guess[rows]) for guess in guesses])
        picked = np.repeat(np.arange(E), weights.encoders[E][d].astype(int))
        assert len(picked) == E and one.draws[d] == pytest.approx(of_encoders[picked].mean())
        assert one.over_groups[d] == pytest.approx(of_encoders.mean())
        assert one.over_encoders[d] == pytest.approx(alone[picked].mean())
    assert (np.diff(weights.encoders[E], axis=0) != 0).any()


def test_one_encoder_has_the_draws_of_its_groups_alone():
    y, groups, guesses = _predictions()
    weights = draw_weights(3, "label", G, {1}, 50)
    one = sample([class_sums(y, guesses[2], groups, (G, K))], weights)
    np.testing.assert_array_equal(one.draws, one.over_groups)
    assert np.ptp(one.over_encoders) == 0
    want = generator(3, "label", "bootstrap").multinomial(G, np.full(G, 1 / G), size=50)
    np.testing.assert_array_equal(weights.groups, want)


def test_differences_and_means_are_taken_draw_by_draw():
    rng = np.random.default_rng(1)
    y, groups = rng.normal(size=M), np.arange(M) % G
    guesses = [y + s * rng.normal(size=M) for s in (0.2, 0.4, 0.6)]
    weights = draw_weights(0, "label", G, {1, 2}, 30)
    sums = [skill_sums(y, guess, 0.1, groups, G) for guess in guesses]
    several, single = sample(sums[:2], weights), sample(sums[2:], weights)
    gap, middle = minus(several, single), mean_of([single, sample(sums[:1], weights)])
    for d in range(30):
        rows = resample(groups, weights.groups[d])
        of_rows = np.array([skill(y[rows], guess[rows], 0.1) for guess in guesses])
        picked = np.repeat([0, 1], weights.encoders[2][d].astype(int))
        assert gap.draws[d] == pytest.approx(of_rows[picked].mean() - of_rows[2])
        assert middle.draws[d] == pytest.approx((of_rows[2] + of_rows[0]) / 2)
    assert gap.n_encoders == 2 and gap.value == pytest.approx(several.value - single.value)


def test_with_one_encoder_the_interval_is_hesterbergs():
    y, groups, guesses = _predictions()
    one = sample([class_sums(y, guesses[1], groups, (G, K))], draw_weights(0, "label", G, {1}, 900))
    tail = norm.cdf(-np.sqrt(G / (G - 1)) * t.ppf(0.975, G - 1))
    assert tail < 0.01
    assert interval_of(one) == interval(one.draws, G) == tuple(np.quantile(one.draws, [tail, 1 - tail]))
    assert interval(one.draws, 10**6) == pytest.approx(tuple(np.quantile(one.draws, [0.025, 0.975])), abs=1e-3)


def test_variances_are_the_squared_standard_errors_of_both_means():
    """Scores that are means of a group effect plus an encoder effect, so that both errors are known."""
    rng = np.random.default_rng(0)
    of_group, of_encoder = rng.normal(size=8), 3 * rng.normal(size=5)
    groups = np.arange(8)
    sums = [skill_sums(np.zeros(8), np.sqrt(9 - of_group - e), 3.0, groups, 8) for e in of_encoder / 9]
    weights = draw_weights(0, "label", 8, {5}, 40_000)
    one = sample(sums, weights)
    a, b = of_group.var(ddof=1) / 8 / 81, (of_encoder / 81).var(ddof=1) / 5
    assert variances(one) == pytest.approx((a, b), rel=0.03)
    factor, freedom = widening(one)
    assert factor == pytest.approx(np.sqrt((a + b) / (a * 7 / 8 + b * 4 / 5)), rel=0.01)
    assert freedom == pytest.approx((a + b) ** 2 / (a**2 / 7 + b**2 / 4), rel=0.03)
