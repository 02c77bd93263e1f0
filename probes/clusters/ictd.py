"""Intra-cluster trajectory distance: do episodes of one cluster move alike?

    ICTD = mean distance of pairs in one cluster / mean distance of pairs in two different clusters

The MOHBA paper names the quantity and gives no formula, so this one is ours. Below 1 the clusters tell trajectories
apart; 1 says that they say nothing about them.

Letters: f episodes, P pairs, G groups.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from probes.clusters.distances import Pairs
from probes.clusters.jackknife import error, t_interval

REFERENCE = "mixture"
FEW_PAIRS = 30


class Ratio(NamedTuple):
    """The ratio, the ratio without each group, and how many pairs it rests on."""

    value: float
    without: Float[np.ndarray, " G"]
    n_within: int
    n_between: int


def ratio(
    distance: Float[np.ndarray, " P"], labels: Int[np.ndarray, " f"], pairs: Pairs, group: Int[np.ndarray, " f"]
) -> Ratio:
    """ICTD of a partition, NaN without pairs of both kinds. Pairs with noise, or without a distance, are left out."""
    a, b = labels[pairs.first], labels[pairs.second]
    usable = (a >= 0) & (b >= 0) & np.isfinite(distance)
    codes = np.unique(group, return_inverse=True)[1].ravel()
    groups = Pairs(codes[pairs.first], codes[pairs.second])
    sums = [_sums(np.nan_to_num(distance), usable & (alike == (a == b)), groups) for alike in (True, False)]
    (within, n_within), (between, n_between) = (counted for counted, _ in sums)
    (within_g, n_within_g), (between_g, n_between_g) = (touched for _, touched in sums)
    without = _divide(within - within_g, n_within - n_within_g) / _divide(between - between_g, n_between - n_between_g)
    value = float(_divide(within, n_within) / _divide(between, n_between))
    return Ratio(value=value, without=without, n_within=int(n_within), n_between=int(n_between))


def _sums(distance: np.ndarray, kept: Bool[np.ndarray, " P"], groups: Pairs) -> tuple[tuple, tuple]:
    """Sum of distances and number of the kept pairs, over all, and over those that touch each group."""
    n_groups, inside = int(np.concatenate(groups).max()) + 1, groups.first == groups.second
    whole, touched = [], []
    for weight in (np.where(kept, distance, 0), kept.astype(float)):
        ends = sum(np.bincount(end, weight, n_groups) for end in groups)
        # A pair inside a group has both ends in it.
        touched.append(ends - np.bincount(groups.first[inside], weight[inside], n_groups))
        whole.append(weight.sum())
    return tuple(whole), tuple(touched)


def _divide(total: Any, count: Any) -> Any:
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def ictd_records(
    distances: dict[str, Float[np.ndarray, " P"]],
    partitions: dict[str, Int[np.ndarray, " f"]],
    pairs: Pairs,
    group: Int[np.ndarray, " f"],
) -> list[dict[str, Any]]:
    """A row for each distance and partition; `minus` is the ICTD of the mixture less that of this one, paired."""
    records = []
    for name, distance in distances.items():
        found = {partition: ratio(distance, labels, pairs, group) for partition, labels in partitions.items()}
        records += [
            {"distance": name, "partition": partition, "n_clusters": n_clusters_of(partitions[partition])}
            | _described(one, found[REFERENCE])
            for partition, one in found.items()
        ]
    return records


def n_clusters_of(labels: Int[np.ndarray, " f"]) -> int:
    """How many clusters there are, noise not counted."""
    return len(np.unique(labels[labels >= 0]))


def _described(one: Ratio, reference: Ratio) -> dict[str, Any]:
    low, high = t_interval(one.value, one.without)
    difference, without = reference.value - one.value, reference.without - one.without
    minus_low, minus_high = t_interval(difference, without)
    notes = [
        f"only {n} {kind} pairs" for kind, n in (("within", one.n_within), ("between", one.n_between)) if n < FEW_PAIRS
    ]
    return {
        "ictd": one.value,
        "se": error(one.without),
        "ci_low": low,
        "ci_high": high,
        "minus": difference,
        "minus_low": minus_low,
        "minus_high": minus_high,
        "n_within": one.n_within,
        "n_between": one.n_between,
        "n_groups": len(one.without),
        "note": "; ".join(notes),
    }
