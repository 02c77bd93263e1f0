"""BIC against closed forms, and both ways of clustering on points whose truth is known."""

import numpy as np
import pytest

from probes.clusters.density import by_size, dense_clusters, nearest_labels
from probes.clusters.mixture import FLOOR, choose_mixture, distance_to_own, fit_mixture, top_two
from tests.probes.oracles_clusters import brute_adjusted_rand, mixture_bic, normal_bic


def blobs(seed: int = 0, sizes=(60, 40, 20), width: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of different sizes, the largest number 0, in shuffled order."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = 25.0 * np.eye(max(len(sizes), width))[: len(sizes), :width]
    return centres[labels] + rng.normal(size=(len(labels), width)) * [1.0, 3.0, 0.2], labels


def test_bic_of_one_component_is_the_closed_form():
    x = np.random.default_rng(1).normal(size=(9, 2)) * [3.0, 0.5]
    chosen = choose_mixture(x, 1, 1, 1, 0)
    assert chosen.tried == [
        {"n_components": 1, "bic": pytest.approx(normal_bic(x, FLOOR)), "converged": True, "chosen": True}
    ]


def test_bic_of_several_components_counts_every_parameter():
    x, _ = blobs()
    chosen = choose_mixture(x, 4, 2, 2, 0)
    model = chosen.model
    assert [one["n_components"] for one in chosen.tried if one["chosen"]] == [3]
    want = mixture_bic(x, model.weights_, model.means_, model.covariances_)
    assert chosen.tried[2]["bic"] == pytest.approx(want)
    assert min(one["bic"] for one in chosen.tried) == chosen.tried[2]["bic"]


def test_the_search_stops_after_its_patience_and_at_five_episodes_a_component():
    x, _ = blobs()
    assert [one["n_components"] for one in choose_mixture(x, 16, 2, 2, 0).tried] == [1, 2, 3, 4, 5]
    assert [one["n_components"] for one in choose_mixture(x[:14], 16, 9, 1, 0).tried] == [1, 2]


def test_the_mixture_finds_the_clusters_and_numbers_them_by_weight():
    x, labels = blobs()
    model = choose_mixture(x, 6, 2, 2, 0).model
    assert model.predict(x).tolist() == labels.tolist()
    again = fit_mixture(x[::-1], 3, 2, 7)
    assert again.predict(x).tolist() == labels.tolist()


def test_no_component_is_narrower_than_a_posterior():
    """Two tight clumps within one posterior unit are one cluster; ten units apart they are two."""
    rng = np.random.default_rng(3)
    side = np.repeat([-0.5, 0.5], 50)[:, None]
    tight = rng.normal(size=(100, 2)) * 0.02
    assert choose_mixture(tight + side * [1.0, 0], 4, 3, 2, 0).model.n_components == 1
    assert choose_mixture(tight + side * [10.0, 0], 4, 3, 2, 0).model.n_components == 2


def test_distance_and_gap_are_those_of_the_densities():
    x = np.random.default_rng(4).normal(size=(80, 3)) * [3.0, 1, 0.5]  # no clusters, so responsibilities are shared
    model = fit_mixture(x, 2, 1, 0)
    labels = model.predict(x)
    density = np.stack(
        [
            w * np.exp(-0.5 * np.einsum("ni,ij,nj->n", x - m, np.linalg.inv(c), x - m)) / np.sqrt(np.linalg.det(c))
            for w, m, c in zip(model.weights_, model.means_, model.covariances_, strict=True)
        ],
        1,
    )
    shares = density / density.sum(1, keepdims=True)
    gap, other = top_two(model, x)
    np.testing.assert_allclose(gap, np.abs(shares[:, 0] - shares[:, 1]), atol=1e-9)
    assert other.tolist() == (1 - labels).tolist() and gap.min() < 0.2 and set(labels) == {0, 1}
    own = [
        (x[i] - model.means_[k]) @ np.linalg.inv(model.covariances_[k]) @ (x[i] - model.means_[k])
        for i, k in enumerate(labels)
    ]
    np.testing.assert_allclose(distance_to_own(model, x, labels), np.sqrt(own))
    assert top_two(fit_mixture(x, 1, 1, 0), x)[0].tolist() == [1.0] * len(x)
    assert set(top_two(fit_mixture(x, 1, 1, 0), x)[1].tolist()) == {-1}


def test_dense_regions_are_clusters_and_what_lies_between_is_noise():
    x, labels = blobs(5)
    far = np.random.default_rng(6).uniform(-300, 300, (12, 3))
    found = dense_clusters(np.concatenate([x, far]), 0.1, 5)
    assert brute_adjusted_rand(found[: len(x)], labels) > 0.95
    assert (found[len(x) :] == -1).mean() > 0.7
    sizes = np.bincount(found[found >= 0])
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True) and len(sizes) == 3


def test_clusters_are_numbered_by_size_and_noise_is_not_a_cluster():
    assert by_size(np.array([0, -1, 1, 1, 2, 2, 2, -1, -1, -1])).tolist() == [2, -1, 1, 1, 0, 0, 0, -1, -1, -1]
    assert by_size(np.array([-1, -1])).tolist() == [-1, -1]


def test_others_get_the_label_of_the_nearest():
    x, others = np.random.default_rng(7).normal(size=(2, 30, 2))
    labels = np.arange(30) % 4 - 1
    want = [labels[np.square(x - one).sum(1).argmin()] for one in others]
    assert nearest_labels(x, labels, others).tolist() == want
