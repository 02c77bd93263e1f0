"""Scores against sklearn, by hand, and bootstraps against a loop over resampled rows."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from probes.scores import (
    auroc,
    class_sums,
    draw_groups,
    interval,
    macro_f1,
    point,
    recall_of_groups,
    score,
    skill_sums,
    value_of,
)
from tests.probes.oracles_scores import balanced_accuracy, resample, skill

G, K, M = 5, 3, 200


def _classes(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(K, M, p=[0.6, 0.3, 0.1])
    predicted = np.where(rng.random(M) < 0.5, y, rng.integers(0, K, M))
    return y, predicted, rng.integers(0, G, M)


def test_balanced_accuracy_is_sklearns_where_every_class_is_there():
    y, predicted, groups = _classes(0)
    sums = class_sums(y, predicted, groups, (G, K))
    assert point(sums) == pytest.approx(balanced_accuracy_score(y, predicted))
    assert point(sums) != pytest.approx((y == predicted).mean(), abs=0.01)


def test_a_class_absent_from_the_scored_rows_is_left_out_though_it_was_predicted():
    y, predicted = np.array([0, 0, 1, 1, 1]), np.array([0, 2, 1, 1, 2])
    assert point(class_sums(y, predicted, np.zeros(5, int), (1, 3))) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value_of("class", y, predicted, 0.0) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_skill_is_one_minus_the_ratio_of_squared_errors():
    y, predicted = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 3.0])
    sums = skill_sums(y, predicted, 2.0, np.array([0, 1, 1]), 2)
    assert point(sums) == pytest.approx(1 - (0 + 1 + 1) / (1 + 0 + 4))
    assert value_of("real", y, np.full(3, 2.0), 2.0) == 0.0


def test_bootstrap_of_sums_is_the_bootstrap_of_rows():
    y, predicted, groups = _classes(1)
    weights = draw_groups(np.random.default_rng(2), G, 60)
    fast = score(class_sums(y, predicted, groups, (G, K)), weights)
    drawn = [resample(groups, counts) for counts in weights]
    slow = np.array([balanced_accuracy(y[rows], predicted[rows]) for rows in drawn])
    np.testing.assert_allclose(fast, slow)
    assert interval(fast, 10**9) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    low, high = interval(fast, G)
    assert low < point(class_sums(y, predicted, groups, (G, K))) < high


def test_bootstrap_of_skill_and_of_a_paired_difference_is_that_of_rows():
    rng = np.random.default_rng(3)
    y, groups = rng.normal(size=M), rng.integers(0, G, M)
    first, second = y + 0.3 * rng.normal(size=M), y + 0.6 * rng.normal(size=M)
    weights = draw_groups(rng, G, 60)
    fast = score(skill_sums(y, first, 0.1, groups, G), weights) - score(skill_sums(y, second, 0.1, groups, G), weights)
    drawn = [resample(groups, counts) for counts in weights]
    slow = [skill(y[rows], first[rows], 0.1) - skill(y[rows], second[rows], 0.1) for rows in drawn]
    np.testing.assert_allclose(fast, slow)


def test_draws_take_as_many_groups_as_there_are_and_each_as_often():
    weights = draw_groups(np.random.default_rng(0), G, 4000)
    assert (weights.sum(1) == G).all()
    np.testing.assert_allclose(weights.mean(0), 1, atol=0.08)
    assert weights.var() == pytest.approx(1 - 1 / G, rel=0.05)


def test_where_classes_are_the_groups_each_drawn_group_counts_its_recall_as_often_as_it_is_drawn():
    y = np.array([0, 0, 1, 1, 2, 2])
    sums = recall_of_groups(class_sums(y, np.array([0, 0, 1, 0, 0, 0]), y, (3, 3)))
    np.testing.assert_allclose(score(sums, np.array([[1.0, 1, 1], [2, 1, 0]])), [0.5, 2.5 / 3])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_macro_f1_and_auroc_are_scikit_learns(n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 200)
    shares = np.round(rng.dirichlet(np.ones(n_classes), 200) + np.eye(n_classes)[y] / 3, 1)
    shares /= shares.sum(1, keepdims=True)
    assert macro_f1(y, shares.argmax(1)) == pytest.approx(f1_score(y, shares.argmax(1), average="macro"))
    if n_classes == 2:
        assert auroc(y, shares) == pytest.approx(roc_auc_score(y, shares[:, 1]))
    else:
        assert auroc(y, shares) == pytest.approx(roc_auc_score(y, shares, multi_class="ovr", average="macro"))


def test_a_class_that_is_absent_from_the_test_rows_is_left_out_of_macro_f1_and_auroc():
    rng = np.random.default_rng(0)
    y, shares = rng.integers(0, 2, 90), rng.dirichlet(np.ones(3), 90)
    said = shares.argmax(1)
    assert (said == 2).any()
    assert macro_f1(y, said) == pytest.approx(f1_score(y, said, labels=[0, 1], average="macro"))
    pairs = [roc_auc_score(y == code, shares[:, code]) for code in (0, 1)]
    assert auroc(y, shares) == pytest.approx(np.mean(pairs))
    assert np.isnan(auroc(np.zeros(5, int), shares[:5]))
