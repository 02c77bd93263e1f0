"""One level's rows of every table.

Letters: n episodes of a level, f episodes fitted on.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from data_gen.trajectory import FeatureMask, InputError, RowIndex, TrajectoryBatch
from probes.clusters.agreement import rand_record
from probes.clusters.columns import Columns
from probes.clusters.density import dense_clusters, nearest_labels
from probes.clusters.distances import DISTANCES, draw_pairs, make_tracks
from probes.clusters.ictd import ictd_records, n_clusters_of
from probes.clusters.levels import COLLAPSED, Level
from probes.clusters.makeup import class_records, cluster_records, episode_records, number_records
from probes.clusters.mixture import Chosen, choose_mixture, distance_to_own, top_two
from probes.clusters.stability import bootstrap_agreement, encoder_agreement, stability_record
from probes.controls import generator
from probes.features import RAW_WIDTH, flatten, principal

METHODS: tuple[str, ...] = ("mixture", "hdbscan")
OUTSIDE = -2  # the id of an episode that is not among a level's
KMEANS_STARTS = 5


@dataclass
class Clustering:
    """How latents are clustered.

    The mixture has 1 to `most` components, tried until BIC has not fallen for `patience` numbers, from `starts` starts
    each. An HDBSCAN cluster holds at least the share `smallest` of the episodes; `neighbours` is its min_samples.
    Clusters are fitted on at most `rows` episodes, of each group its share, and the rest is assigned. `bootstrap` is
    how many times groups are drawn for stability, `pairs` how many pairs of episodes ICTD rests on, `steps` the most
    steps that a distance looks at. A cluster shows `shown` episodes of each kind, at most `per_group` of one group.
    `jobs` 0 is every core.
    """

    most: int = 16
    patience: int = 4
    starts: int = 2
    smallest: float = 0.05
    neighbours: int = 10
    rows: int = 3000
    bootstrap: int = 20
    pairs: int = 4000
    steps: int = 100
    shown: int = 5
    per_group: int = 2
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        least = {"most": 1, "patience": 1, "starts": 1, "neighbours": 1, "bootstrap": 0, "pairs": 1, "steps": 2}
        for name, value in (least | {"rows": 10, "shown": 1, "per_group": 1, "seed": 0, "jobs": 0}).items():
            if getattr(self, name) < value:
                raise InputError(f"clusters.{name} is {getattr(self, name)}; it must be {value} or more.")
        if self.rows < self.most:
            raise InputError(
                f"clusters.rows is {self.rows} and clusters.most {self.most}; there cannot be more clusters than "
                "episodes to fit them on. Raise rows, or lower most."
            )
        if not 0 < self.smallest < 1:
            raise InputError(f"clusters.smallest is {self.smallest}; it is a share of the episodes, so give 0 to 1.")


class Episodes(NamedTuple):
    """What belongs to a level's episodes: where they come from and their labels; `numbers` are those in the data set.

    `batch` holds the trajectories of the fitted ones alone, `flat_vae` their latents without levels, of width 0 where
    there are none.
    """

    rows: RowIndex
    columns: Columns
    numbers: Int[np.ndarray, " n"]
    batch: TrajectoryBatch
    features: FeatureMask
    flat_vae: Float32[np.ndarray, "f Zf"]


class Records(NamedTuple):
    """Cluster ids by method, and one level's rows of each table."""

    ids: dict[str, Int[np.ndarray, " n"]]
    tables: dict[str, list[dict[str, Any]]]


def level_records(level: Level, episodes: Episodes, config: Clustering) -> Records:
    """Cluster one level by both methods, on one BLAS thread."""
    n = len(level.here)
    if level.verdict:
        ids = {method: np.full(n, 0 if level.verdict == COLLAPSED else OUTSIDE) for method in METHODS}
        tables = described(ids, episodes) if level.verdict == COLLAPSED else {}
        return Records(ids=ids, tables=tables)
    with threadpool_limits(1):
        x = level.z[0]
        chosen = choose_mixture(x[level.fitted], config.most, config.patience, config.starts, seed_of(level, config))
        dense = dense_clusters(x[level.fitted], config.smallest, config.neighbours)
        ids = {
            "mixture": chosen.model.predict(x).astype(int),
            "hdbscan": nearest_labels(x[level.fitted], dense, x),
        }
        tables = described(ids, episodes)
        tables["bic"] = chosen.tried
        tables["episodes"] = shown_records(level, chosen, ids["mixture"], episodes, config)
        tables["stability"] = stability_records(level, ids, episodes.rows.group, config)
        tables["ictd"] = trajectory_records(level, ids, episodes, config)
    return Records(ids=ids, tables=tables)


def seed_of(level: Level, config: Clustering, purpose: str = "clusters") -> int:
    """A seed of its own for each level and purpose."""
    return int(generator(config.seed, level.name, purpose).integers(2**31))


def described(ids: dict[str, Int[np.ndarray, " n"]], episodes: Episodes) -> dict[str, list[dict[str, Any]]]:
    """What the clusters of each method are made of, and how they agree with each label of classes."""
    tables: dict[str, list[dict[str, Any]]] = {"clusters": [], "makeup": [], "means": [], "agreement": []}
    rows, columns = episodes.rows, episodes.columns
    for method, labels in ids.items():
        found = {
            "clusters": cluster_records(labels, rows),
            "makeup": class_records(labels, columns),
            "means": number_records(labels, columns, rows.group),
            "agreement": [
                {"label": one.name} | rand_record(labels[one.keep], one.codes[one.keep], rows.group[one.keep])
                for one in columns.classes
                if one.keep.any()
            ],
        }
        for name, records in found.items():
            tables[name] += [{"method": method} | record for record in records]
    return tables


def shown_records(
    level: Level, chosen: Chosen, ids: Int[np.ndarray, " n"], episodes: Episodes, config: Clustering
) -> list[dict[str, Any]]:
    """Representative and borderline episodes of the mixture."""
    gap, other = top_two(chosen.model, level.z[0])
    distance = distance_to_own(chosen.model, level.z[0], ids)
    records = episode_records(ids, distance, gap, other, episodes.rows, config.shown, config.per_group)
    return [record | {"row": int(episodes.numbers[record["row"]])} for record in records]


def stability_records(
    level: Level, ids: dict[str, Int[np.ndarray, " n"]], group: Int[np.ndarray, " n"], config: Clustering
) -> list[dict[str, Any]]:
    """Agreement over bootstraps of the groups and over encoder seeds, on the episodes fitted on."""
    z, labels = level.z[:, level.fitted], {method: values[level.fitted] for method, values in ids.items()}
    density = (config.smallest, config.neighbours)
    rng = generator(config.seed, level.name, "bootstrap of clusters")
    drawn = bootstrap_agreement(z[0], group[level.fitted], labels, config.bootstrap, config.starts, density, rng)
    again = encoder_agreement(z, labels, config.starts, density, seed_of(level, config, "encoders"))
    return [
        stability_record(method, over, found[method], n_clusters_of(labels[method]) < 2)
        for over, found in (("bootstrap", drawn), ("encoder seeds", again))
        for method in METHODS
    ]


def trajectory_records(
    level: Level, ids: dict[str, Int[np.ndarray, " n"]], episodes: Episodes, config: Clustering
) -> list[dict[str, Any]]:
    """ICTD of both methods and of k-means with as many clusters on the latent, on trajectories and on a flat VAE."""
    labels = {method: values[level.fitted] for method, values in ids.items()}
    k = n_clusters_of(labels["mixture"])
    if k < 2:
        return []
    seed, everyone = seed_of(level, config, "k-means"), np.ones(len(level.fitted), bool)
    flat = flatten(episodes.batch, everyone, episodes.features)
    width = level.z.shape[2]
    raw = principal(flat, everyone, max(RAW_WIDTH, width), seed)
    spaces = {"latent": level.z[0, level.fitted], "raw": raw[:, :RAW_WIDTH], "pca": raw[:, :width]}
    spaces |= {"flat VAE": episodes.flat_vae} if episodes.flat_vae.shape[1] else {}
    for name, space in spaces.items():
        model = KMeans(k, random_state=seed).set_params(n_init=KMEANS_STARTS)
        labels[f"k-means, {name}"] = model.fit_predict(space.astype(float)).astype(int)
    tracks = make_tracks(flat, episodes.batch, episodes.features, config.steps)
    pairs = draw_pairs(len(everyone), config.pairs, generator(config.seed, level.name, "pairs of trajectories"))
    distances = {name: measure(tracks, pairs) for name, measure in DISTANCES.items()}
    return ictd_records(distances, labels, pairs, episodes.rows.group[level.fitted])
