"""p-values against the interval they invert, Holm by brute force, and power by simulation."""

import itertools

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from probes.bootstrap import Sample, draw_weights, interval_of, minus, sample
from probes.scores import skill_sums
from probes.table.significance import groups_needed, holm, p_value


def _differences(gaps: np.ndarray, n_draws: int = 4000) -> Sample:
    """A sample whose value is the mean of the groups' gaps."""
    n = len(gaps)
    first, second = (skill_sums(np.zeros(n), np.sqrt(9 - part), 3.0, np.arange(n), n) for part in (9 * gaps, 0 * gaps))
    weights = draw_weights(0, "label", n, {1}, n_draws)
    return minus(sample([first], weights), sample([second], weights))


def test_p_is_below_a_twentieth_just_where_the_interval_leaves_out_zero():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        one = _differences(0.1 * rng.normal(size=16) + 0.04)
        outside = interval_of(one)[0] > 0 or interval_of(one)[1] < 0
        p = p_value(one)
        assert (p < 0.05) == outside or p == pytest.approx(0.05, abs=0.002)
        seen.add(outside)
    assert seen == {True, False}


def test_p_is_close_to_the_t_tests_for_means_is_two_sided_and_never_zero():
    gaps = 0.1 * np.random.default_rng(1).normal(size=24) + 0.04
    one = _differences(gaps, 40_000)
    assert p_value(one) == pytest.approx(ttest_1samp(gaps, 0).pvalue, rel=0.3)
    assert p_value(_differences(-gaps, 40_000)) == pytest.approx(p_value(one), rel=0.1)
    assert 0 < p_value(_differences(gaps + 0.5)) < 0.01
    assert p_value(_differences(np.zeros(8))) == 1


def test_holm_rejects_what_the_closed_test_of_bonferroni_rejects():
    """A hypothesis falls at level a where every set of hypotheses that holds it has a p below a / size."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = np.round(rng.random(5) ** 3, 3)
        closed = [
            max(
                min(1.0, len(subset) * p[list(subset)].min())
                for size in range(1, 6)
                for subset in itertools.combinations(range(5), size)
                if i in subset
            )
            for i in range(5)
        ]
        np.testing.assert_allclose(holm(p), closed)
    np.testing.assert_allclose(holm(np.array([0.04, 0.01, 0.03])), [0.06, 0.03, 0.06])


@pytest.mark.parametrize("spread", [0.05, 0.12])
def test_the_groups_needed_give_eighty_percent_power(spread):
    base = np.random.default_rng(2).normal(size=16)
    gaps = 0.02 + spread * (base - base.mean()) / base.std(ddof=1)
    n = int(groups_needed(_differences(gaps, 60_000)))
    drawn = 0.05 + spread * np.random.default_rng(3).normal(size=(6000, n))
    assert (ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.04)
    fewer = 0.05 + spread * np.random.default_rng(4).normal(size=(6000, max(2, n * 3 // 5)))
    assert (ttest_1samp(fewer, 0, axis=1).pvalue < 0.05).mean() < 0.7


def test_encoder_seeds_that_vary_too_much_cannot_be_made_up_for_by_groups():
    one = _differences(0.05 * np.random.default_rng(0).normal(size=16))
    some = 0.005 * np.random.default_rng(1).normal(size=4000)
    several = one._replace(n_encoders=5, over_encoders=some)
    assert groups_needed(one) < groups_needed(several) < np.inf
    assert groups_needed(several._replace(over_encoders=10 * some)) == np.inf
    assert np.isnan(groups_needed(_differences(np.full(8, 0.5))))
