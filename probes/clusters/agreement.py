"""How far two partitions of the same episodes are the same: the adjusted Rand index.

Letters: n episodes, K and C classes of the two, G groups, D tables.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from probes.clusters.jackknife import error, t_interval


def adjusted_rand(first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"]) -> float:
    """1 for the same partition whatever the names, 0 on average for independent ones; noise is a class of its own."""
    return float(rand_of_counts(cross_counts(first, second, np.zeros(len(first), int)))[0])


def cross_counts(
    first: Int[np.ndarray, " n"], second: Int[np.ndarray, " n"], group: Int[np.ndarray, " n"]
) -> Float[np.ndarray, "G K C"]:
    """How many episodes each group has in each class of the one and of the other."""
    codes = [np.unique(values, return_inverse=True)[1].ravel() for values in (group, first, second)]
    counts = np.zeros([code.max(initial=-1) + 1 for code in codes])
    np.add.at(counts, tuple(codes), 1)
    return counts


def rand_of_counts(counts: Float[np.ndarray, "D K C"]) -> Float[np.ndarray, " D"]:
    """(index − expected) / (maximum − expected) over pairs of episodes (Hubert and Arabie 1985, equation 5).

    Where both partitions are one class, or both all singletons, they are the same and the index is 1.
    """
    together = pairs(counts).sum((-2, -1))
    first, second = pairs(counts.sum(-1)).sum(-1), pairs(counts.sum(-2)).sum(-1)
    n_pairs = pairs(counts.sum((-2, -1)))
    expected = first * second / np.maximum(n_pairs, 1)
    spare = (first + second) / 2 - expected
    return np.where(spare > 0, (together - expected) / np.where(spare > 0, spare, 1), 1.0)


def pairs(counts: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """How many pairs there are among so many."""
    return counts * (counts - 1) / 2


def rand_record(
    clusters: Int[np.ndarray, " n"], classes: Int[np.ndarray, " n"], group: Int[np.ndarray, " n"]
) -> dict[str, Any]:
    """The index of clusters and classes, with the jackknife's standard error and 95 % interval, cut at 1."""
    counts = cross_counts(clusters, classes, group)
    whole = counts.sum(0, keepdims=True)
    value, without = float(rand_of_counts(whole)[0]), rand_of_counts(whole - counts)
    low, high = t_interval(value, without)
    named = {"adjusted_rand": value, "se": error(without), "ci_low": low, "ci_high": min(high, 1.0)}
    return named | {"n_clusters": counts.shape[1], "n_classes": counts.shape[2], "n_groups": counts.shape[0]}
