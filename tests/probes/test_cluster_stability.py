"""Stability is near 1 for clusters that every seed shares, and low for clusters that are a seed's own."""

import numpy as np
import pytest

from probes.clusters.agreement import adjusted_rand
from probes.clusters.stability import bootstrap_agreement, encoder_agreement, stability_record

GROUP = np.repeat(np.arange(12), 10)
DENSITY = (0.15, 5)


def points(seed: int, shared: bool) -> tuple[np.ndarray, np.ndarray]:
    """Two clusters that every group visits, or noise without clusters, cut in two at random."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, len(GROUP))
    return rng.normal(size=(len(GROUP), 2)) + (12.0 * labels[:, None] if shared else 0), labels


def test_shared_clusters_come_again_and_noise_does_not():
    for shared, least, most in ((True, 0.99, 1.0), (False, -0.2, 0.4)):
        x, labels = points(0, shared)
        both = {"mixture": labels, "hdbscan": labels}
        found = bootstrap_agreement(x, GROUP, both, 5, 2, DENSITY, np.random.default_rng(1))
        assert len(found["mixture"]) == len(found["hdbscan"]) == 5
        assert least <= np.mean(found["mixture"]) <= most
        assert least <= np.mean(found["hdbscan"]) <= most


def test_groups_are_drawn_whole():
    """A cluster of group 3 alone is found again in about 1 - (11 / 12)^12 = .65 of the draws, whole or not at all."""
    x, _ = points(2, False)
    labels = (GROUP == 3).astype(int)
    x[GROUP == 3] += 200
    both = {"mixture": labels, "hdbscan": labels}
    found = bootstrap_agreement(x, GROUP, both, 30, 1, DENSITY, np.random.default_rng(3))["mixture"]
    again = np.isclose(found, 1)
    assert abs(again.mean() - 0.65) < 0.3 and max(np.array(found)[~again]) < 0.7
    assert bootstrap_agreement(x, np.zeros_like(GROUP), both, 4, 1, DENSITY, np.random.default_rng(3)) == {
        "mixture": [],
        "hdbscan": [],
    }


def test_every_two_encoder_seeds_are_compared():
    x, labels = points(4, True)
    other = np.where(labels == 1, x[:, :1].T, 50)[0]  # an encoder that sees the same clusters elsewhere
    third = np.random.default_rng(5).normal(size=x.shape)
    z = np.stack([x, np.stack([other, other], 1), third])
    found = encoder_agreement(z, {"mixture": labels, "hdbscan": labels}, 2, DENSITY, 0)
    assert len(found["mixture"]) == 3
    assert found["mixture"][0] > 0.95 and abs(found["mixture"][1]) < 0.2 and abs(found["mixture"][2]) < 0.2
    assert encoder_agreement(z[:1], {"mixture": labels, "hdbscan": labels}, 2, DENSITY, 0)["mixture"] == []


def test_a_record_is_the_mean_and_the_middle_of_the_draws():
    record = stability_record("mixture", "bootstrap", [0.0, 0.5, 1.0], False)
    assert record == {
        "method": "mixture",
        "over": "bootstrap",
        "n": 3,
        "mean": 0.5,
        "low": pytest.approx(0.05),
        "high": pytest.approx(0.95),
    }
    assert np.isnan(stability_record("mixture", "bootstrap", [1.0, 1.0], True)["mean"])
    assert np.isnan(stability_record("mixture", "encoder seeds", [], False)["low"])
    assert adjusted_rand(np.zeros(3, int), np.zeros(3, int)) == 1  # which is why one cluster is not given a value
