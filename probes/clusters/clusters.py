"""Clusters of z_omega and of every agent's z_alpha: found, tried for stability, and described.

Letters: B episodes, N agents.
"""

from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from jaxtyping import Int, Int32
from joblib import Parallel, delayed

from data_gen.trajectory import FeatureMask, InputError, Labels, RowIndex, TrajectoryBatch, take
from probes.clusters.columns import Columns, make_columns, take_columns
from probes.clusters.levels import FEWEST, Deviations, Level, make_levels
from probes.clusters.records import METHODS, OUTSIDE, Clustering, Episodes, Records, level_records
from probes.clusters.summary import summary_records
from probes.features import Encoded

TABLES = {
    "summary": "method n_clusters noise n_episodes n_fitted n_groups bootstrap encoders n_encoders euclidean dtw "
    "euclidean_raw dtw_raw one_seed most_reached note",
    "clusters": "method cluster n share n_groups seed_entropy effective_seeds seeds_of_all largest_seed "
    "largest_seed_share checkpoint_entropy effective_checkpoints checkpoints_of_all largest_checkpoint "
    "largest_checkpoint_share",
    "makeup": "method cluster label class count share base lift",
    "means": "method cluster label n mean ci_low ci_high base n_groups",
    "agreement": "method label adjusted_rand se ci_low ci_high n_clusters n_classes n_groups",
    "stability": "method over n mean low high",
    "ictd": "distance partition n_clusters ictd se ci_low ci_high minus minus_low minus_high n_within n_between "
    "n_groups note",
    "episodes": "cluster kind rank row episode group checkpoint t0 distance gap other",
    "bic": "n_components bic converged chosen",
}


class ClusterTables(NamedTuple):
    """One table each, all with a column `level`, described in docs/clusters.md.

    `ids` has a row an episode, in the data set's order: episode, group, checkpoint, t0, and a column "level:method" for
    each level and method with the cluster's number, -1 for noise and -2 for an episode that is not of the level.
    """

    summary: pd.DataFrame
    clusters: pd.DataFrame
    makeup: pd.DataFrame
    means: pd.DataFrame
    agreement: pd.DataFrame
    stability: pd.DataFrame
    ictd: pd.DataFrame
    episodes: pd.DataFrame
    bic: pd.DataFrame
    ids: pd.DataFrame


def cluster_tables(
    config: Clustering,
    *,
    encoded: Encoded,
    deviations: Deviations,
    batch: TrajectoryBatch,
    features: FeatureMask,
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    labels: Labels,
) -> ClusterTables:
    """Cluster the latent means of the first encoder seed at every level; further seeds serve stability alone.

    Clusters are fitted without labels on episodes of every split, so they describe this data set; they are no test of
    anything. Nothing depends on the order of the rows or on the number of jobs. Raises InputError where there are fewer
    than ten episodes, lengths differ, or a number is not finite.
    """
    if len(split) < FEWEST:
        raise InputError(f"clusters: there are {len(split)} episodes, and {FEWEST} are needed; record more of them.")
    order = np.lexsort((rows.t0, rows.episode, rows.checkpoint, rows.group))
    present = np.asarray(np.asarray(batch.mask).any(1))
    levels = make_levels(encoded, deviations, present, rows, order, config.rows, config.seed)
    columns = make_columns(labels, rows, split)
    parts = [episodes_of(level, encoded, batch, features, rows, columns) for level in levels]
    calls = [delayed(level_records)(*one, config) for one in zip(levels, parts, strict=True)]
    found = cast(list[Records], Parallel(n_jobs=config.jobs or -1, max_nbytes=None)(calls))
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    ids = pd.DataFrame(rows._asdict())
    for level, part, one in zip(levels, parts, found, strict=True):
        tables = one.tables | {"summary": summary_records(level, one, part.rows)}
        for name, of_level in tables.items():
            records[name] += [{"level": level.name} | record for record in of_level]
        for method in METHODS:
            ids[f"{level.name}:{method}"] = _spread_out(one.ids[method], level, len(split))
    frames = {name: pd.DataFrame(records[name], columns=["level", *TABLES[name].split()]) for name in TABLES}
    return ClusterTables(**frames, ids=ids)


def episodes_of(
    level: Level, encoded: Encoded, batch: TrajectoryBatch, features: FeatureMask, rows: RowIndex, columns: Columns
) -> Episodes:
    """What belongs to the episodes of a level, with the trajectories of its agents."""
    agents, fitted = list(level.agents), level.here[level.fitted].astype(np.int32)
    sub = take(batch, fitted)
    flat_vae = np.zeros((len(fitted), 0), np.float32)
    if encoded.flat_vae is not None and level.name.startswith("z_omega"):
        flat_vae = encoded.flat_vae[0, fitted].astype(np.float32)
    return Episodes(
        rows=RowIndex(*(field[level.here] for field in rows)),
        columns=take_columns(columns, level.here, level.agents),
        numbers=level.here,
        batch=TrajectoryBatch(*(np.asarray(field)[:, :, agents] for field in sub)),
        features=FeatureMask(obs=features.obs[agents], actions=features.actions[agents]),
        flat_vae=flat_vae,
    )


def _spread_out(ids: Int[np.ndarray, " n"], level: Level, n_rows: int) -> Int[np.ndarray, " B"]:
    whole = np.full(n_rows, OUTSIDE)
    whole[level.here] = ids
    return whole


def confusion(makeup: pd.DataFrame, level: str, method: str, label: str) -> pd.DataFrame:
    """Clusters by classes of one label: how many episodes."""
    chosen = (makeup["level"] == level) & (makeup["method"] == method) & (makeup["label"] == label)
    return makeup[chosen].pivot(index="cluster", columns="class", values="count")
