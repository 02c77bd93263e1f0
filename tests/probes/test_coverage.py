"""Nominal 95 % intervals cover, and a label that means nothing scores at chance: counted over simulated data sets."""

import pytest

from benchmarks.coverage import LAWS, Law, covered, sampled, simulate
from probes.bootstrap import interval_of

TEST_GROUPS = 16  # the default: 48 training seeds, split 24/8/16


def test_intervals_cover_in_a_few_simulated_data_sets():
    assert covered(LAWS["a class of each episode"], 20, [TEST_GROUPS], further=300)[0, 0] >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_nominal_intervals_cover_in_90_to_98_of_100(name):
    several = LAWS[name].n_encoders > 1  # drawing both, crossed, counts what they share twice: on the safe side
    share = covered(LAWS[name], 80 if several else 200, [TEST_GROUPS])[0, 0]
    assert 0.9 <= share <= (1.0 if several else 0.98)


@pytest.mark.slow
@pytest.mark.parametrize("constant", [False, True])
def test_a_label_that_means_nothing_scores_at_chance_in_93_of_100_draws(constant):
    nothing, inside = Law("class", constant, signal=0.0), 0
    for seed in range(100):
        sums, _ = simulate(nothing, seed, TEST_GROUPS, further=1)
        low, high = interval_of(sampled(sums, seed))
        inside += low <= 1 / 3 <= high
    assert inside >= 93
