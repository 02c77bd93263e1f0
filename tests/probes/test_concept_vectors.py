"""Scores and objective against brute force, the gradient against differences, planted directions found again."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linear_sum_assignment

from data_gen.trajectory import InputError
from probes.concepts.vectors import (
    SLACK,
    SOFTNESS,
    Concepts,
    concept_scores,
    learn_concepts,
    make_lesson,
    objective,
    soft_scores,
    unit_rows,
)
from tests.probes.oracles_concepts import brute_objective, brute_scores

B, F, K = 60, 5, 3


def _data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.choice(K, B - K, p=[0.6, 0.3, 0.1])])
    return rng.normal(size=(B, F)) * rng.uniform(0.2, 3, (B, 1)), y


def _flat(seed: int, n_concepts: int, n_outputs: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n_concepts * (F + n_outputs) + n_outputs)


def matched(found: np.ndarray, planted: np.ndarray) -> np.ndarray:
    """Cosine of every planted direction with the found one that it is paired with."""
    cosine = unit_rows(planted) @ unit_rows(found).T
    return cosine[linear_sum_assignment(-cosine)]


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.6])
def test_scores_are_those_of_the_definition_row_by_row(threshold):
    z, _ = _data()
    z[3] = 0
    vectors = unit_rows(np.random.default_rng(1).normal(size=(4, F)))
    scores = concept_scores(z, vectors, threshold)
    np.testing.assert_allclose(scores, brute_scores(z, vectors, threshold), atol=1e-12)
    empty = (scores == 0).all(1)
    assert empty[3] and (threshold < 0.5 or empty.sum() > 5)
    np.testing.assert_allclose(scores[~empty].sum(1), 1)


def test_the_threshold_itself_is_off_and_the_length_of_a_row_says_nothing():
    z = np.array([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    exactly = z[0, 0] / 5  # the cosine with the first axis
    np.testing.assert_allclose(concept_scores(z, np.eye(2), exactly), [[0, 1]] * 3)
    np.testing.assert_allclose(concept_scores(z, np.eye(2), 0.59), [[3 / 7, 4 / 7]] * 3)


@pytest.mark.parametrize("kind", ["class", "real"])
@pytest.mark.parametrize("n_concepts", [1, 4])
def test_objective_and_gradient(kind, n_concepts):
    z, y = _data(2)
    y = y if kind == "class" else z[:, 0] + np.sin(z[:, 1])
    n_outputs = K if kind == "class" else 1
    lesson = make_lesson(z, y, kind, n_outputs)
    config = Concepts(salient=7, salience=0.7, similarity=0.9, strength=0.3, threshold=0.15)
    flat = _flat(3, n_concepts, n_outputs)
    value, gradient = objective(flat, lesson, n_concepts, config)
    raw, w, b = np.split(flat, np.cumsum([n_concepts * F, n_concepts * n_outputs]))
    if kind == "class":
        weights = 1 / (K * np.bincount(y)[y])
        target = y
    else:
        weights, target = np.full(B, 1 / B), (y - y.mean()) / y.std()
    want = brute_objective(
        raw.reshape(n_concepts, F),
        w.reshape(n_concepts, n_outputs),
        b,
        z,
        target,
        weights,
        kind,
        config,
        SOFTNESS,
        SLACK,
    )
    assert value == pytest.approx(want, rel=1e-10)
    slope = np.asarray(approx_fprime(flat, lambda x: objective(x, lesson, n_concepts, config)[0], 1e-7))
    np.testing.assert_allclose(gradient, slope, atol=2e-6)
    assert np.abs(gradient[: n_concepts * F]).max() > 0.01


def test_soft_scores_become_the_scores_as_their_widths_vanish():
    z, _ = _data(4)
    vectors = unit_rows(np.random.default_rng(5).normal(size=(3, F)))
    cosine = unit_rows(z) @ vectors.T
    hard = concept_scores(z, vectors, 0.2)
    far = np.abs(cosine - 0.2).min(1) > 0.05
    soft = soft_scores(cosine, 0.2, softness=2e-3, slack=1e-9)[0]
    assert far.sum() > 20
    np.testing.assert_allclose(soft[far & (hard.sum(1) > 0)], hard[far & (hard.sum(1) > 0)], atol=1e-6)
    assert np.abs(soft_scores(cosine, 0.2)[0] - hard).max() > 0.05


def test_opposite_concepts_are_as_alike_as_equal_ones():
    z, y = _data()
    lesson = make_lesson(z, y, "class", K)
    config = Concepts(salience=0.0, similarity=1.0, strength=0.0)
    axis, other = np.eye(F)[0], np.eye(F)[1]

    def value(second: np.ndarray) -> float:
        flat = np.concatenate([axis, second, np.zeros(2 * K + K)])
        return objective(flat, lesson, 2, config)[0]

    assert value(-axis) == pytest.approx(value(axis)) == pytest.approx(value(other) + 1.0)


def test_the_penalty_turns_concepts_away_from_opposites_that_the_label_asks_for():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(150, F))
    y = np.digitize(unit_rows(z)[:, 0], [-0.3, 0.3])
    lesson = make_lesson(z, y, "class", K)
    between = {}
    for similarity in (0.0, 20.0):
        vectors = learn_concepts(lesson, 2, Concepts(similarity=similarity, steps=40), np.random.default_rng(1)).vectors
        between[similarity] = float(vectors[0] @ vectors[1])
    assert between[0.0] < -0.5 and abs(between[20.0]) < 0.1


def test_planted_directions_of_classes_are_found():
    rng = np.random.default_rng(0)
    planted = np.linalg.qr(rng.normal(size=(F, K)))[0].T
    y = rng.integers(0, K, 400)
    z = planted[y] * rng.uniform(1, 4, (400, 1)) + 0.15 * rng.normal(size=(400, F))
    learned = learn_concepts(make_lesson(z, y, "class", K), K, Concepts(), np.random.default_rng(1))
    assert matched(learned.vectors, planted).min() > 0.95
    np.testing.assert_allclose(np.linalg.norm(learned.vectors, axis=1), 1)


def test_salience_pulls_a_concept_to_its_nearest_rows():
    rng = np.random.default_rng(0)
    dense = np.array([0.0, 0, 0, 0, 1])
    z = np.concatenate([rng.normal(size=(150, F)), 2 * dense + 0.1 * rng.normal(size=(50, F))])
    y = (z[:, 0] > 0).astype(int)
    lesson = make_lesson(z, y, "class", 2)
    cosine = {}
    for salience in (0.0, 30.0):
        vectors = learn_concepts(lesson, 1, Concepts(salience=salience), np.random.default_rng(1)).vectors
        cosine[salience] = float(vectors[0] @ dense)
    assert abs(cosine[0.0]) < 0.4 and cosine[30.0] > 0.95


def test_more_starts_are_never_worse_and_the_same_stream_gives_the_same_vectors():
    z, y = _data(10)
    lesson = make_lesson(z, y, "class", K)
    few, many, again = (
        learn_concepts(lesson, 3, Concepts(starts=starts, steps=20), np.random.default_rng(2)) for starts in (1, 3, 3)
    )
    assert many.loss < few.loss
    np.testing.assert_array_equal(many.vectors, again.vectors)


def test_a_latent_that_never_changes_gives_unit_vectors_and_no_scores():
    z, y = np.zeros((B, F)), _data()[1]
    vectors = learn_concepts(make_lesson(z, y, "class", K), 3, Concepts(), np.random.default_rng(0)).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1)
    assert not concept_scores(z, vectors, 0.0).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"most": 0}, "concepts.most is 0"),
        ({"salience": float("nan")}, "concepts.salience is nan"),
        ({"strength": float("inf")}, "concepts.strength is inf"),
        ({"per_group": 0}, "concepts.per_group is 0"),
        ({"similarity": -1.0}, "concepts.similarity is -1.0"),
        ({"threshold": 1.0}, r"cosine, so give one in \[0, 1\)"),
        ({"threshold": -0.1}, r"cosine, so give one in \[0, 1\)"),
    ],
)
def test_a_config_that_makes_no_sense_says_which_field(settings, words):
    with pytest.raises(InputError, match=words):
        Concepts(**settings)
