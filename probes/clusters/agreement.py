"""How far two partitions of the same episodes are the same: the adjusted Rand index.

Letters: n episodes, K and C classes of the two.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from probes.clusters.jackknife import error, t_interval


def adjusted_rand(first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"]) -> float:
    """1 for the same partition whatever the names, 0 on average for independent ones; noise is a class of its own."""
    return rand_of_counts(cross_counts(_codes(first), _codes(second)))


def cross_counts(first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"]) -> Float[np.ndarray, "K C"]:
    """How many episodes are in each class of the one and of the other, numbered from 0."""
    width = second.max() + 1
    cells = np.bincount(first * width + second, minlength=(first.max() + 1) * width)
    return cells.reshape(-1, width).astype(float)


def rand_of_counts(counts: Float[np.ndarray, "K C"]) -> float:
    """(index − expected) / (maximum − expected) over pairs of episodes (Hubert and Arabie 1985, equation 5).

    Where both partitions are one class, or both all singletons, they are the same and the index is 1.
    """
    together = _pairs(counts).sum()
    first, second = _pairs(counts.sum(1)).sum(), _pairs(counts.sum(0)).sum()
    expected = first * second / max(_pairs(counts.sum()), 1)
    spare = (first + second) / 2 - expected
    return float((together - expected) / spare) if spare > 0 else 1.0


def rand_record(
    clusters: Int[np.ndarray, " n"], classes: Int[np.ndarray, " n"], group: Int[np.ndarray, " n"]
) -> dict[str, Any]:
    """The index of clusters and classes, with the jackknife's standard error and 95 % interval, cut at 1."""
    clusters, classes, group = _codes(clusters), _codes(classes), _codes(group)
    whole = cross_counts(clusters, classes)
    members = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    without = []
    for here in members:
        rest = whole.copy()
        np.subtract.at(rest, (clusters[here], classes[here]), 1)
        without.append(rand_of_counts(rest))
    value = rand_of_counts(whole)
    low, high = t_interval(value, np.array(without))
    named = {"adjusted_rand": value, "se": error(np.array(without)), "ci_low": low, "ci_high": min(high, 1.0)}
    return named | {"n_clusters": whole.shape[0], "n_classes": whole.shape[1], "n_groups": len(members)}


def _codes(values: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    return np.unique(values, return_inverse=True)[1].ravel()


def _pairs(counts: Any) -> Any:
    return counts * (counts - 1) / 2
