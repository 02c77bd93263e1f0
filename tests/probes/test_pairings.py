"""Orders of groups, sums over paired groups, and p-values, against brute force."""

import math

import numpy as np
import pytest

from probes.pairings import orders_of, p_of_first, paired_sums


def test_few_groups_have_every_order_once_and_many_have_random_ones_after_their_own():
    rng = np.random.default_rng(0)
    every = orders_of(4, 23, rng)
    assert every.shape == (24, 4) and len({tuple(order) for order in every.tolist()}) == 24
    some = orders_of(4, 22, rng)
    assert some.shape == (23, 4)
    many = orders_of(9, 500, rng)
    for orders in (every, some, many):
        assert orders[0].tolist() == list(range(orders.shape[1]))
        assert (np.sort(orders, axis=1) == np.arange(orders.shape[1])).all()
    # Every group is as likely in every place: 500 draws, a share of 1/9 in each.
    shares = [(many[1:, place] == group).mean() for place in range(9) for group in range(9)]
    assert max(shares) < 0.2 and min(shares) > 0.05
    assert orders_of(1, 99, rng).tolist() == [[0]]


def test_paired_sums_are_those_of_rows_paired_by_hand():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3, 5))
    orders = orders_of(4, 6, rng)
    want = [sum(np.outer(x[g, m], y[order[g], m]) for g in range(4) for m in range(3)) for order in orders.tolist()]
    np.testing.assert_allclose(paired_sums(x, y, orders), want)


def test_p_counts_the_groups_own_order_and_ties_and_what_is_undefined():
    assert p_of_first(np.array([3.0, 1.0, 2.0, 3.0 - 1e-12, 4.0])) == 3 / 5
    assert p_of_first(np.array([3.0, 1.0, 2.0, 0.0])) == 1 / 4
    assert p_of_first(np.array([3.0, 1.0, math.nan, 0.0])) == 2 / 4
    assert math.isnan(p_of_first(np.array([math.nan, 1.0])))


def test_p_is_uniform_for_exchangeable_values():
    rng = np.random.default_rng(2)
    p = np.array([p_of_first(rng.normal(size=20)) for _ in range(4000)])
    for level in (0.05, 0.25, 0.5, 0.95):
        assert (p <= level + 1e-9).mean() == pytest.approx(level, abs=0.03)
