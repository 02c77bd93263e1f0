"""Clusters, coupling and change points of a run's latents, as tables and figures in its folder `analysis/`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from data_gen.trajectory import Dataset, InputError
from launch.analysed import FOLDER, SUMMARY, contents_of, is_current, stands_for
from launch.baselines import flat_vae, has_flat_vae
from launch.data import seen_of
from launch.progress import progress
from launch.rundir import provenance
from launch.schema.analysing import Analysing
from marl_vae.files import write_text
from probes.changes.changes import change_tables
from probes.changes.figure import change_figure
from probes.changes.text import change_sentences
from probes.clusters.clusters import ClusterTables, cluster_tables
from probes.clusters.figure import cluster_figure
from probes.clusters.levels import Deviations
from probes.clusters.summary import cluster_sentences
from probes.coupling.coupling import coupling_tables
from probes.coupling.figure import contingency_figure, coupling_figure
from probes.coupling.text import coupling_sentences
from probes.features import Encoded
from probes.groups import group_word
from probes.levels import JOINT, local_level
from probes.report.episodes import episode_returns
from probes.report.figures import records

METHOD = "mixture"  # whose clusters are looked at for coupling; HDBSCAN leaves many episodes without one
NO_CLUSTER = -1
Stored = dict[Path, dict[str, np.ndarray]]  # embeddings by encoder seed, as `embeddings_of` gives them


def analyse(cfg: Analysing, run: Path, stored: Stored, found: Dataset) -> None:
    """Write what is found of the first encoder's embeddings, and print it; nothing where that was done before.

    Those of further encoder seeds serve the stability of clusters alone. What cannot be evaluated is said and left out.
    """
    encoder = next(iter(stored))
    if is_current(cfg, run, encoder):
        return
    into = run / FOLDER
    for file in (into / SUMMARY, *into.glob("*.csv"), *into.glob("*.png")):
        file.unlink(missing_ok=True)
    with progress("analysis"):
        said, drawn = analysed_by_kind(cfg, run, stored, found)
    print("\n".join(line for lines in said.values() for line in lines))
    found_now = {"sentences": said, "figures": drawn, "files": contents_of(run)}
    note = {**stands_for(cfg, run, encoder), **found_now, "provenance": provenance({})}
    write_text(into / SUMMARY, json.dumps(note, indent=1))  # the last, since it says that the rest is whole


def analysed_by_kind(
    cfg: Analysing, run: Path, stored: Stored, found: Dataset
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Every table and figure into the folder; sentences and names of figures by kind, in the order of reading."""
    encoded, deviations = latents_of(stored)
    if has_flat_vae(run):
        encoded = encoded._replace(flat_vae=flat_vae(run, found, seen_of(run)))
    into, group = run / FOLDER, group_word(found.meta)
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
    figures = {"clusters": cluster_figures(tables), "coupling": {}}
    keep(into, "clusters", tables._asdict(), figures["clusters"])
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
        figures["coupling"] = {
            "coupling": coupling_figure(coupling.pairs, coupling.images),
            "coupling_contingency": contingency_figure(coupling.contingency, coupling.pairs),
        }
        keep(into, "coupling", coupling._asdict(), figures["coupling"])
        of_coupling = coupling_sentences(coupling)
    except InputError as error:
        of_coupling = [f"Coupling was not evaluated: {error}"]
    changes = change_tables(cfg.changes, z_omega=encoded.z_omega[0], **own)
    figures["changes"] = {"changes": change_figure(changes.returns, changes.changes, changes.edges, group)}
    keep(into, "changes", changes._asdict(), figures["changes"])
    said = {
        "clusters": cluster_sentences(records(tables.summary), group),
        "coupling": of_coupling,
        "changes": change_sentences(changes, cfg.changes.false_alarms, group),
    }
    return said, {kind: list(drawn) for kind, drawn in figures.items()}


def latents_of(stored: Stored) -> tuple[Encoded, Deviations]:
    """Posterior means and deviations of every episode, one an encoder seed."""
    omega, omega_std, alpha, alpha_std = (
        np.stack([one[name] for one in stored.values()])
        for name in ("omega_mean", "omega_std", "alpha_mean", "alpha_std")
    )
    return Encoded(omega, alpha, random_encoder=omega[..., :0]), Deviations(omega_std, alpha_std)


def clusters_of(tables: ClusterTables, level: str) -> np.ndarray:
    """A level's clusters, -1 where an episode has none or is not of the level."""
    return np.maximum(tables.ids[f"{level}:{METHOD}"].to_numpy(), NO_CLUSTER)


def cluster_figures(tables: ClusterTables) -> dict[str, Figure]:
    """One a level, by the label that its clusters agree with most."""
    agreed = pd.DataFrame(tables.agreement[tables.agreement["method"] == METHOD]).dropna(subset="adjusted_rand")
    best = agreed.sort_values("adjusted_rand", ascending=False).drop_duplicates("level").sort_index()
    return {f"clusters_{row['level']}": cluster_figure(tables, row["level"], row["label"]) for row in records(best)}


def keep(into: Path, kind: str, tables: dict[str, pd.DataFrame], figures: dict[str, Figure]) -> None:
    """Write `<kind>_<table>.csv` and `<figure>.png`."""
    into.mkdir(exist_ok=True)
    for name, table in tables.items():
        write_text(into / f"{kind}_{name}.csv", table.to_csv(index=False))
    for name, figure in figures.items():
        figure.savefig(into / f"{name}.png", dpi=120)
