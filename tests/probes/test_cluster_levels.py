"""Posterior units, collapsed levels, and which episodes a level is fitted on."""

import numpy as np

from data_gen.trajectory import RowIndex
from probes.clusters.levels import (
    COLLAPSED,
    Deviations,
    in_posterior_units,
    make_levels,
    verdict_of,
)
from probes.features import Encoded


def test_a_unit_is_the_posterior_and_a_dead_dimension_stays_small():
    means = np.array([[[4.0, 0.1, 1.0], [0.0, -0.1, 0.0]]])
    stds = np.array([[[1.0, 1.0, 0.0], [7.0, 1.0, 0.0]]])
    found = in_posterior_units(means, stds)
    np.testing.assert_allclose(found, [[[4 / 5, 0.1, 10], [0, -0.1, 0]]])  # sqrt((1 + 49) / 2) = 5; no less than .1


def test_a_level_is_collapsed_where_no_dimension_is_active():
    flat = np.zeros((20, 3))
    flat[::2, 1] = 0.199  # variance .0099
    assert verdict_of(flat) == COLLAPSED
    flat[::2, 1] = 0.201
    assert verdict_of(flat) == ""
    assert verdict_of(np.ones((9, 3))) == "not clustered: 9 episode(s), 10 needed"


def test_levels_hold_the_right_latents_of_the_right_episodes():
    n, rng = 30, np.random.default_rng(1)
    z_omega, z_alpha = rng.normal(size=(2, n, 4)), rng.normal(size=(2, n, 2, 3))
    encoded = Encoded(z_omega=z_omega, z_alpha=z_alpha, random_encoder=np.zeros((2, n, 1)))
    rows = RowIndex(*(np.arange(n, dtype=np.int32) % m for m in (n, 5, 2, 1)))
    present = np.ones((n, 2), bool)
    present[3, 1] = False
    ones = Deviations(z_omega=np.ones_like(z_omega), z_alpha=np.ones_like(z_alpha))
    order = rng.permutation(n)
    levels = {level.name: level for level in make_levels(encoded, ones, present, rows, order, 100, 0)}
    assert list(levels) == ["z_omega", "z_omega_last", "z_alpha_0", "z_alpha_1"]
    assert levels["z_omega"].here.tolist() == order.tolist() and levels["z_omega"].agents == (0, 1)
    np.testing.assert_array_equal(levels["z_omega_last"].z, z_omega[:, order[order % 2 == 1]])
    assert levels["z_alpha_1"].here.tolist() == [row for row in order if row != 3]
    np.testing.assert_array_equal(levels["z_alpha_1"].z, z_alpha[:, order[order != 3], 1])
    assert levels["z_alpha_1"].agents == (1,)
