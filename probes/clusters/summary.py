"""A row for each level and method: how many clusters there are and how far to trust them, as numbers and in words."""

import math
from typing import Any

import numpy as np

from data_gen.trajectory import RowIndex
from probes.clusters.ictd import n_clusters_of
from probes.clusters.levels import COLLAPSED, Level
from probes.clusters.records import METHODS, Records
from probes.table.rows import FEW_GROUPS

UNSTABLE = 0.7  # mean adjusted Rand below which clusters are called unstable
MOSTLY = 0.5  # share of noise above which it is said
LOOSE = 0.9  # ICTD above which the trajectories of a cluster are called no tighter than the whole
ONE_SEED = 0.8  # share of a cluster's episodes that one training seed may have before it is called that seed

NAMES = {"mixture": "Gaussian mixture, number by BIC", "hdbscan": "HDBSCAN"}


def summary_records(level: Level, records: Records, rows: RowIndex) -> list[dict[str, Any]]:
    """One row a method; `rows` are the level's. NaN is for what was not measured."""
    return [_summary(level, records, method, rows) for method in METHODS]


def _summary(level: Level, records: Records, method: str, rows: RowIndex) -> dict[str, Any]:
    ids, of_method = records.ids[method], _rows_of(records.tables, method)
    real = [one for one in of_method("clusters") if one["cluster"] >= 0]
    bootstrap, encoders = (
        next((one for one in of_method("stability") if one["over"] == over), {"mean": math.nan, "n": 0})
        for over in ("bootstrap", "encoder seeds")
    )
    ictd = {(one["distance"], one["partition"]): one["ictd"] for one in records.tables.get("ictd", [])}
    tried = records.tables.get("bic", []) if method == "mixture" else []
    last = bool(tried) and tried[-1]["chosen"]
    return {
        "method": method,
        "n_clusters": n_clusters_of(ids),
        "noise": float((ids == -1).mean()) if len(ids) else 0.0,
        "n_episodes": len(ids),
        "n_fitted": len(level.fitted),
        "n_groups": len(np.unique(rows.group)),
        "bootstrap": bootstrap["mean"],
        "encoders": encoders["mean"],
        "n_encoders": len(level.z),
        "euclidean": ictd.get(("euclidean", method), math.nan),
        "dtw": ictd.get(("dtw", method), math.nan),
        "euclidean_raw": ictd.get(("euclidean", "k-means, raw"), math.nan),
        "dtw_raw": ictd.get(("dtw", "k-means, raw"), math.nan),
        "one_seed": sum(one["largest_seed_share"] >= ONE_SEED for one in real),
        "most_reached": last,
        "note": level.verdict,
    }


def _rows_of(tables: dict[str, list[dict[str, Any]]], method: str):
    return lambda name: [one for one in tables.get(name, []) if one["method"] == method]


def cluster_sentences(rows: list[dict[str, Any]], group: str) -> list[str]:
    """A sentence a row; one for both methods where a level has nothing to cluster. `group` is that of `group_word`."""
    return list(dict.fromkeys(sentence(row, group) for row in rows))


def sentence(row: dict[str, Any], group: str) -> str:
    """What a row of the summary shows, and what would make it untrustworthy."""
    if row["note"] == COLLAPSED:
        return f"{row['level']}: collapsed: one cluster. It is the same for every episode, so there is nothing to see."
    if row["note"]:
        return f"{row['level']}: {row['note']}."
    noise = f", {row['noise']:.0%} of the episodes in none" if row["method"] == "hdbscan" else ""
    found = (
        f"{row['level']} ({NAMES[row['method']]}): {row['n_clusters']} cluster{'s' * (row['n_clusters'] != 1)}{noise}, "
        f"from {row['n_episodes']} episodes of {row['n_groups']} {group}s"
    )
    if row["n_clusters"] > 1:
        if not math.isnan(row["bootstrap"]):
            found += f"; redrawn {group}s give the same clusters at an adjusted Rand index of {row['bootstrap']:.2f}"
        if not math.isnan(row["euclidean"]):
            found += f"; trajectories of one cluster lie {row['euclidean']:.2f} as far apart as those of two"
    doubts = doubts_of(row, group)
    return f"{found}. " + (
        f"Do not trust it far: {'; '.join(doubts)}." if doubts else "None of the usual doubts apply."
    )


def doubts_of(row: dict[str, Any], group: str) -> list[str]:
    """Reasons not to trust a row; empty where none of them applies."""
    several = row["n_clusters"] > 1
    return [
        reason
        for holds, reason in (
            (row["n_groups"] < FEW_GROUPS, f"{row['n_groups']} {group}s are few"),
            (
                row["n_fitted"] < row["n_episodes"],
                f"fitted on {row['n_fitted']} of the {row['n_episodes']} episodes (clusters.rows), and the number of "
                "clusters depends on that of episodes",
            ),
            (several and math.isnan(row["bootstrap"]), "stability was not measured"),
            (row["bootstrap"] < UNSTABLE, f"the clusters change when {group}s are redrawn (below {UNSTABLE})"),
            (row["n_encoders"] < 2, "there is one encoder seed, and another may find other clusters"),
            (row["encoders"] < UNSTABLE, f"other encoder seeds find other clusters ({row['encoders']:.2f})"),
            (several and math.isnan(row["euclidean"]), "how alike the trajectories of a cluster are was not measured"),
            (row["euclidean"] > LOOSE, f"trajectories of one cluster are hardly more alike than any (above {LOOSE})"),
            (row["noise"] > MOSTLY, "most episodes are in no cluster"),
            (several and row["one_seed"] > 0, f"{row['one_seed']} of the clusters are one {group} each"),
            (row["most_reached"], "BIC is lowest at the most components that were tried"),
        )
        if holds
    ]
