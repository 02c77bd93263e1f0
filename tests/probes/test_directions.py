"""Directions of linear probes, and how far latents go along them."""

import numpy as np

from probes.interventions.directions import Axes, moved, probe_axes, random_axes
from probes.labels import make_targets
from probes.probe import Probe, linear_weights, predict
from tests.probes.planted import planted_data

CONFIG = Probe(probes=["linear"])


def test_ridge_weights_are_the_closed_form():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 4)), rng.normal(size=50) * 3 + 1
    weights, converged = linear_weights("real", x, y, 0.1, Probe())
    centred, z = x - x.mean(0), (y - y.mean()) / y.std()
    want = np.linalg.solve(centred.T @ centred + 0.1 * 50 * np.eye(4), centred.T @ z)
    np.testing.assert_allclose(weights, want[None])
    assert converged


def test_logistic_weights_make_the_mean_balanced_loss_stationary_and_decide_as_predict_does():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3))
    for y in (np.digitize(x[:, 0], [-0.4, 0.7]), (x[:, 1] > 0.5).astype(int)):
        weights, _ = linear_weights("class", x, y, 0.05, Probe())
        assert weights.shape == (y.max() + 1, 3)
        np.testing.assert_allclose(weights.sum(0), 0, atol=1e-3)
        step = weights[1] - weights[0]
        between = np.flatnonzero(predict("linear", "class", x, y, x, 0.05, CONFIG).values < 2)
        chosen = predict("linear", "class", x, y, x[between], 0.05, CONFIG).values
        score = x[between] @ step
        assert score[chosen == 1].min() > score[chosen == 0].max() - (0.0 if y.max() == 1 else 0.6)


def test_the_direction_of_a_planted_label_is_its_own_column():
    data = planted_data()
    targets = {t.name: t for t in make_targets(data["labels"], data["rows"], data["split"], [])}
    for name, column, row in (("side", 0, 1), ("mood", 3, 1), ("mood", 4, 2), ("speed", 5, 0)):
        axes = probe_axes(targets[name], data["encoded"].z_omega[0], data["rows"], data["split"], CONFIG)
        np.testing.assert_allclose(np.linalg.norm(axes.unit, axis=1), 1)
        assert axes.unit[row].argmax() == column and axes.unit[row, column] > 0.8
        training = data["encoded"].z_omega[0][data["split"] == 0].astype(float)
        x = (training - training.mean(0)) / training.std(0)
        np.testing.assert_allclose(axes.along, (x @ axes.unit.T).std(0), rtol=1e-5)


def test_a_shift_of_one_raises_the_probes_score_by_one_training_deviation_and_random_ones_are_as_long():
    rng = np.random.default_rng(0)
    unit = rng.normal(size=(3, 5))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    spread = np.array([2.0, 0.5, 1.0, 0.0, 1e-3])
    axes = Axes(unit=unit, along=np.array([0.7, 1.1, 2.0]), spread=spread, converged=True)
    z, which = rng.normal(size=(8, 5)), rng.integers(0, 3, 8)
    there = moved(z, axes, which, 1.5)
    assert (there[:, 3] == z[:, 3]).all() and np.abs(there[:, 4] - z[:, 4]).max() < 4e-3
    gone = np.divide(there - z, spread, out=unit[which] * 1.5 * axes.along[which, None], where=spread > 0)
    np.testing.assert_allclose((gone * unit[which]).sum(1), 1.5 * axes.along[which], rtol=1e-6)
    strange = random_axes(axes, which, rng)
    off = moved(z, strange._replace(spread=np.ones(5)), np.arange(8), 1.5) - z
    np.testing.assert_allclose(np.linalg.norm(off, axis=1), 1.5 * axes.along[which])
    assert np.abs((off / np.linalg.norm(off, axis=1, keepdims=True) * unit[which]).sum(1)).min() < 0.5
    assert len(np.unique(strange.unit[:, 0])) == 8
