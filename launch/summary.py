"""The figures of a run that a dashboard compares, by the names of docs/wandb.md, from the files in its folder."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from data_gen.storage.dataset import digest
from data_gen.storage.store import read_manifest
from launch.analysed import analysis_files
from launch.encoders import embedded_folders
from launch.probed import probed_files
from launch.rundir import data_of
from launch.tables import parsed

PROBE = ("value", "ci_low", "ci_high", "chance", "control", "minus_control", "selectivity")
USED = ("decodable", "used", "used_low", "used_high", "along", "possible", "reproduced", "reading")
GENERALISATION = ("value", "ci_low", "ci_high")
CLUSTERS = ("n_clusters", "bootstrap", "encoders", "euclidean")
COUPLING = ("nmi", "null_mean", "p_holm")


def summary_of(run: Path) -> dict[str, Any]:
    """All of them; a figure that is undefined or was not measured is left out."""
    found = {"data/digest": digest(data_of(run))}
    for place in embedded_folders(run):
        found |= {f"{prefix_of(run, place)}{name}": value for name, value in of_encoder(place).items()}
    tables = {file.stem: file for file in (*probed_files(run)[0], *analysis_files(run)) if file.suffix == ".csv"}
    for name, figures in (OF_TABLES | OF_ANALYSIS).items():
        if name in tables:
            found |= figures(parsed(tables[name], "The command that wrote it writes it again."))
    return {name: value for name, value in found.items() if isinstance(value, list) or pd.notna(value)}


def prefix_of(run: Path, place: Path) -> str:
    """What stands before the names of a further encoder seed, so that they do not cover those of the first one."""
    return "" if place == run else f"{place.name}/"


def of_encoder(place: Path) -> dict[str, Any]:
    """`usage.json`, and the step and bound (of an autoencoder, the data term) by which the model was chosen."""
    usage = json.loads((place / "usage.json").read_text())
    chosen = read_manifest(place / "embeddings")["attrs"]["chosen"]
    return {
        **{f"usage/{name}": value for name, value in usage.items()},
        **{f"chosen/{name}": value for name, value in chosen.items() if name != "data"},
    }


def of_probes(table: pd.DataFrame) -> dict[str, Any]:
    """The linear probe of z_omega for each label, and its value less that of each other feature set."""
    found = {}
    for row in pd.DataFrame(table[table.probe == "linear"]).to_dict(orient="records"):
        where = f"probe/{row['label']}"
        if row["features"] == "z_omega":
            found |= {f"{where}/{name}": row[name] for name in PROBE}
        else:
            found[f"{where}/minus_{row['features']}"] = row["zw_minus_this"]
    return found


def of_interventions(table: pd.DataFrame) -> dict[str, Any]:
    """Each label of `decodable_and_used.csv`."""
    return {f"used/{row['label']}/{name}": row[name] for row in table.to_dict(orient="records") for name in USED}


def of_generalisation(table: pd.DataFrame) -> dict[str, Any]:
    """The linear probe of z_omega, and the model's bound and gain, on each set of test episodes."""
    kept = (table.features == "model") | ((table.features == "z_omega") & (table.probe == "linear"))
    return {
        f"generalisation/{row['scored_on'].replace(' ', '_')}/{row['label']}/{name}": row[name]
        for row in pd.DataFrame(table[kept]).to_dict(orient="records")
        for name in GENERALISATION
    }


def of_clusters(table: pd.DataFrame) -> dict[str, Any]:
    """The mixture's clusters of each level."""
    rows = pd.DataFrame(table[table.method == "mixture"]).to_dict(orient="records")
    return {f"clusters/{row['level']}/{name}": row[name] for row in rows for name in CLUSTERS}


def of_coupling(table: pd.DataFrame) -> dict[str, Any]:
    """Each pair of latents."""
    rows = table.to_dict(orient="records")
    return {f"coupling/{row['first']}/{row['second']}/{name}": row[name] for row in rows for name in COUPLING}


def of_changes(table: pd.DataFrame) -> dict[str, Any]:
    """The share of each latent's tested training seeds that change."""
    tested = pd.DataFrame(table[table["note"].isna()])
    return {f"changes/{level}/share": float((own.n_changes > 0).mean()) for level, own in tested.groupby("level")}


OF_TABLES = {"probes": of_probes, "decodable_and_used": of_interventions, "generalisation": of_generalisation}
OF_ANALYSIS = {"clusters_summary": of_clusters, "coupling_pairs": of_coupling, "changes_series": of_changes}
