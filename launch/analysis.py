"""Clusters, coupling and change points of a run's latents, as tables and figures in its folder `analysis/`."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from data_gen.storage.store import read_group
from data_gen.trajectory import Dataset, InputError
from launch.schema import Exploring
from marl_vae.files import write_text
from probes.changes.changes import change_tables
from probes.changes.figure import change_figure
from probes.changes.text import change_sentences
from probes.clusters.clusters import ClusterTables, cluster_tables
from probes.clusters.figure import cluster_figure
from probes.clusters.levels import Deviations
from probes.clusters.summary import sentence
from probes.coupling.coupling import coupling_tables
from probes.coupling.figure import contingency_figure, coupling_figure
from probes.coupling.text import coupling_sentences
from probes.features import Encoded
from probes.levels import JOINT, local_level
from probes.report.episodes import episode_returns
from probes.report.figures import records

METHOD = "mixture"  # whose clusters are looked at for coupling; HDBSCAN leaves many episodes without one
NO_CLUSTER = -1


def analyse(cfg: Exploring, run: Path, folders: list[Path], found: Dataset) -> dict[str, np.ndarray]:
    """Write and print what is found, of the first folder's encoder; the clusters of every level and method by name.

    Further folders are other encoder seeds, which serve the stability of clusters alone. What cannot be evaluated is
    said and left out.
    """
    encoded, deviations = latents_of(folders)
    into = run / "analysis"
    tables = cluster_tables(
        cfg.clusters,
        encoded=encoded,
        deviations=deviations,
        batch=found.batch,
        features=found.features,
        rows=found.rows,
        split=found.split,
        labels=found.labels,
    )
    keep(into, "clusters", tables._asdict(), cluster_figures(tables))
    said = [sentence(row) for row in records(tables.summary)]
    own = {
        "joint_clusters": clusters_of(tables, JOINT),
        "agent_clusters": np.stack([clusters_of(tables, local_level(i)) for i in range(found.batch.obs.shape[2])], 1),
        "z_alpha": encoded.z_alpha[0],
        "present": np.asarray(found.batch.mask).any(1),
        "returns": episode_returns(found),
        "rows": found.rows,
    }
    try:
        coupling = coupling_tables(cfg.coupling, **own)
        figures = {
            "coupling": coupling_figure(coupling.pairs, coupling.images),
            "contingency": contingency_figure(coupling.contingency, coupling.pairs),
        }
        keep(into, "coupling", coupling._asdict(), figures)
        said += coupling_sentences(coupling)
    except InputError as error:
        said.append(f"coupling was not evaluated: {error}")
    changes = change_tables(cfg.changes, z_omega=encoded.z_omega[0], **own)
    keep(
        into, "changes", changes._asdict(), {"changes": change_figure(changes.returns, changes.changes, changes.edges)}
    )
    print("\n".join([*said, *change_sentences(changes)]))
    names = [name for name in tables.ids.columns if ":" in name]
    return {name.replace(":", ", "): tables.ids[name].to_numpy() for name in names}


def latents_of(folders: list[Path]) -> tuple[Encoded, Deviations]:
    """Posterior means and deviations of every episode, one an encoder seed."""
    stored = [read_group(folder / "embeddings")[0] for folder in folders]
    omega, omega_std, alpha, alpha_std = (
        np.stack([one[name] for one in stored]) for name in ("omega_mean", "omega_std", "alpha_mean", "alpha_std")
    )
    return Encoded(omega, alpha, random_encoder=omega[..., :0]), Deviations(omega_std, alpha_std)


def clusters_of(tables: ClusterTables, level: str) -> np.ndarray:
    """A level's clusters, -1 where an episode has none or is not of the level."""
    return np.maximum(tables.ids[f"{level}:{METHOD}"].to_numpy(), NO_CLUSTER)


def cluster_figures(tables: ClusterTables) -> dict[str, Figure]:
    """One a level, by the label that its clusters agree with most."""
    agreed = pd.DataFrame(tables.agreement[tables.agreement["method"] == METHOD]).dropna(subset="adjusted_rand")
    best = agreed.sort_values("adjusted_rand", ascending=False).drop_duplicates("level")
    return {f"clusters_{row['level']}": cluster_figure(tables, row["level"], row["label"]) for row in records(best)}


def keep(into: Path, kind: str, tables: dict[str, pd.DataFrame], figures: dict[str, Figure]) -> None:
    """Write `<kind>_<table>.csv` and `<figure>.png`."""
    into.mkdir(exist_ok=True)
    for name, table in tables.items():
        write_text(into / f"{kind}_{name}.csv", table.to_csv(index=False))
    for name, figure in figures.items():
        figure.savefig(into / f"{name}.png", dpi=120)
