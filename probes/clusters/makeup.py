"""What is in each cluster: label classes, numbers, training seeds, checkpoints, and the episodes to look at.

Letters: n episodes of a level.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import entropy

from data_gen.trajectory import RowIndex
from probes.clusters.columns import Classes, Columns, Numbers
from probes.clusters.jackknife import t_interval
from probes.concepts.episodes import nearest_rows


def class_records(ids: Int[np.ndarray, " n"], columns: Columns) -> list[dict[str, Any]]:
    """A row a cluster, label and class that occurs: count, share of the cluster, base rate, and lift = share / base.

    Episodes without a value are in none of the counts.
    """
    return [record for column in columns.classes for record in _of_classes(ids, column)]


def _of_classes(ids: np.ndarray, column: Classes) -> list[dict[str, Any]]:
    clusters, place = np.unique(ids[column.keep], return_inverse=True)
    counts = np.zeros((len(clusters), len(column.names)), int)
    np.add.at(counts, (place.ravel(), column.codes[column.keep]), 1)
    base = counts.sum(0) / max(counts.sum(), 1)
    return [
        {
            "cluster": int(clusters[k]),
            "label": column.name,
            "class": column.names[c],
            "count": int(counts[k, c]),
            "share": float(counts[k, c] / counts[k].sum()),
            "base": float(base[c]),
            "lift": float(counts[k, c] / counts[k].sum() / base[c]),
        }
        for k in range(len(clusters))
        for c in np.flatnonzero(base).tolist()
    ]


def number_records(ids: Int[np.ndarray, " n"], columns: Columns, group: Int[np.ndarray, " n"]) -> list[dict[str, Any]]:
    """A row a cluster and number: its mean, with a 95 % interval over the groups, beside the mean of all episodes."""
    return [
        _of_number(ids, column, group, k)
        for column in columns.numbers
        for k in np.unique(ids[np.isfinite(column.values)]).tolist()
    ]


def _of_number(ids: np.ndarray, column: Numbers, group: np.ndarray, k: int) -> dict[str, Any]:
    here = (ids == k) & np.isfinite(column.values)
    values, codes = column.values[here], np.unique(group[here], return_inverse=True)[1].ravel()
    sums, counts = np.bincount(codes, values), np.bincount(codes)
    mean = float(values.mean())
    low = high = float("nan")
    if len(counts) > 1:
        low, high = t_interval(mean, (sums.sum() - sums) / (counts.sum() - counts))
    return {
        "cluster": k,
        "label": column.name,
        "n": len(values),
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "base": float(np.nanmean(column.values)),
        "n_groups": len(counts),
    }


def cluster_records(ids: Int[np.ndarray, " n"], rows: RowIndex) -> list[dict[str, Any]]:
    """A row a cluster: its size, and how many training seeds and checkpoints it is spread over.

    Entropies are in nats; their exponentials are effective numbers, which equal the number of seeds where each has the
    same share. `seeds_of_all` and `checkpoints_of_all` are those of every episode.
    """
    whole = {name: _spread(values)[0] for name, values in (("seeds", rows.group), ("checkpoints", rows.checkpoint))}
    records = []
    for k in np.unique(ids).tolist():
        here = ids == k
        seeds, top_seed, seed_share = _spread(rows.group[here])
        checkpoints, top_checkpoint, checkpoint_share = _spread(rows.checkpoint[here])
        records.append(
            {
                "cluster": k,
                "n": int(here.sum()),
                "share": float(here.mean()),
                "n_groups": len(np.unique(rows.group[here])),
                "seed_entropy": seeds,
                "effective_seeds": float(np.exp(seeds)),
                "seeds_of_all": float(np.exp(whole["seeds"])),
                "largest_seed": top_seed,
                "largest_seed_share": seed_share,
                "checkpoint_entropy": checkpoints,
                "effective_checkpoints": float(np.exp(checkpoints)),
                "checkpoints_of_all": float(np.exp(whole["checkpoints"])),
                "largest_checkpoint": top_checkpoint,
                "largest_checkpoint_share": checkpoint_share,
            }
        )
    return records


def _spread(values: np.ndarray) -> tuple[float, int, float]:
    """Entropy in nats, the commonest value and its share."""
    names, counts = np.unique(values, return_counts=True)
    return float(entropy(counts)), int(names[counts.argmax()]), float(counts.max() / counts.sum())


def episode_records(
    ids: Int[np.ndarray, " n"],
    distance: Float[np.ndarray, " n"],
    gap: Float[np.ndarray, " n"],
    other: Int[np.ndarray, " n"],
    rows: RowIndex,
    n_shown: int,
    per_group: int,
) -> list[dict[str, Any]]:
    """Of each cluster the episodes nearest to its mean, and those whose two largest responsibilities lie closest.

    At most `per_group` of one training seed. `row` is the place within the level's episodes; with one cluster nothing
    is on a border.
    """
    kinds = {"representative": -distance} | ({"borderline": -gap} if other.max() >= 0 else {})
    records = []
    for k in np.unique(ids).tolist():
        for kind, nearness in kinds.items():
            chosen = nearest_rows(nearness, rows, np.flatnonzero(ids == k), n_shown, per_group)
            records += [
                {"cluster": k, "kind": kind, "rank": rank, "row": row}
                | {name: int(getattr(rows, name)[row]) for name in rows._fields}
                | {"distance": float(distance[row]), "gap": float(gap[row]), "other": int(other[row])}
                for rank, row in enumerate(chosen.tolist(), start=1)
            ]
    return records
