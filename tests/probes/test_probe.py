"""Fits against closed forms and a general optimiser, strengths against a plain loop, and convergence."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.model_selection import GroupKFold

import probes.probe
from data_gen.trajectory import InputError
from probes.probe import PROBES, Probe, choose_strength, predict
from probes.table.exam import group_folds
from tests.probes.oracles_scores import balanced_accuracy, skill

N, F, K = 240, 5, 3


def _data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, F)) * np.linspace(0.5, 1.5, F) + 0.3
    classes = np.argmax(x @ rng.normal(size=(F, K)) + [1.5, 0, 0] + 1.5 * rng.gumbel(size=(N, K)), 1)
    return x, classes, x @ rng.normal(size=F) + 2 * rng.normal(size=N)


def test_ridge_is_its_closed_form():
    x, _, y = _data()
    fit, scored = x[:160], x[160:]
    z = fit - fit.mean(0)
    target = (y[:160] - y[:160].mean()) / y[:160].std()
    w = np.linalg.solve(z.T @ z / 160 + 0.3 * np.eye(F), z.T @ target / 160)
    want = y[:160].mean() + y[:160].std() * ((scored - fit.mean(0)) @ w)
    np.testing.assert_allclose(predict("linear", "real", fit, y[:160], scored, 0.3, Probe()).values, want)


@pytest.mark.parametrize("strength", [1.0, 0.05])
def test_the_linear_classifier_minimises_the_mean_loss_of_equal_classes_plus_the_penalty(strength):
    x, y, _ = _data(1)
    fit, scored = x[:160], x[160:]
    weight = 160 / (K * np.bincount(y[:160]))[y[:160]]
    assert np.ptp(weight) > 0.3

    def loss(flat: np.ndarray) -> float:
        w, b = flat[: F * K].reshape(F, K), flat[F * K :]
        logits = fit @ w + b
        picked = logits[np.arange(160), y[:160]]
        return float(np.mean(weight * (logsumexp(logits, 1) - picked)) + strength / 2 * (w**2).sum())

    best = minimize(loss, np.zeros(F * K + K)).x
    logits = scored @ best[: F * K].reshape(F, K) + best[F * K :]
    guess = predict("linear", "class", fit, y[:160], scored, strength, Probe())
    assert guess.converged and (guess.values == logits.argmax(1)).mean() > 0.98


def test_skill_of_a_linear_law_with_noise_is_its_share_of_the_variance():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8000, 2))
    y = x @ [1.5, -2.0] + 0.8 * rng.normal(size=8000)
    guess = predict("linear", "real", x[:4000], y[:4000], x[4000:], 1e-6, Probe())
    assert skill(y[4000:], guess.values, y[:4000].mean()) == pytest.approx(6.25 / (6.25 + 0.64), abs=0.01)


def test_the_mlp_reads_an_exclusive_or_that_the_linear_probe_cannot():
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0], (600, 2)) + 0.1 * rng.normal(size=(600, 2))
    y, product = (x[:, 0] * x[:, 1] > 0).astype(int), x[:, 0] * x[:, 1]
    score = {}
    for probe in PROBES:
        guess = predict(probe, "class", x[:400], y[:400], x[400:], 1e-3, Probe())
        real = predict(probe, "real", x[:400], product[:400], x[400:], 1e-3, Probe())
        score[probe] = balanced_accuracy(y[400:], guess.values), skill(product[400:], real.values, 0.0)
    assert min(score["mlp"]) > 0.9 and score["linear"][0] < 0.65 and score["linear"][1] < 0.2


def test_classes_weigh_equally_in_both_probes():
    rng = np.random.default_rng(0)
    y = (rng.random(6000) < 0.1).astype(int)
    x = y[:, None] + rng.normal(size=(6000, 1))
    for probe in PROBES:
        guess = predict(probe, "class", x[:3000], y[:3000], x[3000:], 1e-3, Probe())
        assert balanced_accuracy(y[3000:], guess.values) > 0.64, probe


def test_the_strength_chosen_is_the_best_of_a_plain_loop_over_groups():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(12), 20)
    x = rng.normal(size=(240, 40))
    y = x[:, 0] + 2 * rng.normal(size=240)
    config = Probe(strengths=[1e-4, 0.1, 1.0, 30.0])
    chosen = choose_strength("linear", "real", x, y, group_folds(np.arange(240), groups, 4), config)
    slow = {}
    for strength in config.strengths:
        slow[strength] = np.mean(
            [
                skill(y[b], predict("linear", "real", x[a], y[a], x[b], strength, config).values, y[a].mean())
                for a, b in GroupKFold(4).split(x, groups=groups)
            ]
        )
    assert chosen.strength == max(slow, key=lambda strength: slow[strength]) == 1.0


def test_folds_keep_groups_whole():
    groups = np.repeat([3, 1, 8, 5, 9], [4, 2, 6, 3, 5])
    rows = np.arange(20) + 100
    folds = group_folds(rows, groups, 4)
    assert len(folds) == 4 and sorted(np.concatenate([score for _, score in folds])) == rows.tolist()
    for fit, score in folds:
        assert not set(groups[fit - 100]) & set(groups[score - 100])
    assert len(group_folds(rows[:6], groups[:6], 4)) == 2


def test_folds_that_cannot_be_fitted_are_left_out_and_a_tie_goes_to_the_strongest():
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.repeat([0, 1], 20)
    halves = [(np.arange(20), np.arange(20, 40))]
    assert choose_strength("linear", "class", x, y, halves, Probe()).strength == 1.0
    mixed = [(np.arange(0, 40, 2), np.arange(1, 40, 2))]
    assert choose_strength("linear", "class", x + 20 * y[:, None], y, mixed, Probe()).strength == 1.0


def test_an_optimiser_that_stops_early_is_reported(monkeypatch):
    x, y, _ = _data()
    monkeypatch.setattr(probes.probe, "LBFGS_STEPS", 1)
    assert not predict("linear", "class", x, y, x, 1e-4, Probe()).converged
    folds = group_folds(np.arange(N), np.arange(N) % 8, 2)
    assert choose_strength("linear", "class", x, y, folds, Probe(strengths=[1e-3, 1e-4])).n_unconverged == 4
    assert predict("mlp", "class", x, y, x, 1e-4, Probe(steps=1)).converged


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"probes": ["lineer"]}, r"\['lineer'\].*\['linear', 'mlp'\]"),
        ({"probes": []}, "name one or more"),
        ({"bootstrap": 1}, "probe.bootstrap is 1; it must be 40 or more"),
        ({"folds": 1}, "probe.folds is 1"),
        ({"permutations": -1}, "probe.permutations is -1"),
        ({"jobs": -1}, "neither may be negative"),
        ({"strengths": [0.1, 0.0]}, "numbers above zero"),
        ({"mlp_strengths": []}, "numbers above zero"),
        ({"strengths": [float("nan")]}, "finite numbers above zero"),
        ({"mlp_strengths": [0.1, float("inf")]}, "finite numbers above zero"),
        ({"seed": 5_000_000_000}, "nor a seed over 2147483648"),
    ],
)
def test_a_config_that_makes_no_sense_says_which_field(settings, words):
    with pytest.raises(InputError, match=words):
        Probe(**settings)
