"""What a run's folder `analysis/` holds, and whether it is of the embeddings that lie there now."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from data_gen.storage.store import sha256_of
from launch.baselines import has_flat_vae
from launch.encoders import digests_of
from launch.rundir import JOBS
from launch.schema.analysing import Analysing
from probes.report.analysis import TITLES, Analysis

FOLDER, SUMMARY = "analysis", "summary.json"
AGAIN = "Run python -m launch.explore run={run} again."
NONE = "Clusters, coupling and change points are found by python -m launch.explore run={run}."
DAMAGED = "The analysis in {run}/analysis is not whole: files are cut, missing or of other code. " + AGAIN
STALE = "The analysis in {run}/analysis is of embeddings that are no longer there. " + AGAIN


def stands_for(cfg: Analysing, run: Path, encoder: Path) -> dict[str, Any]:
    """The encoder that is looked at, all embeddings, the flat VAE, and the settings: what an analysis is of."""
    settings = {kind: asdict(getattr(cfg, kind)) for kind in TITLES}
    for part in settings.values():
        part.pop(JOBS, None)
    made = {"encoder": str(encoder.relative_to(run)), "embeddings": digests_of(run), "flat_vae": has_flat_vae(run)}
    return json.loads(json.dumps({**made, "settings": settings}))


def is_current(cfg: Analysing, run: Path, encoder: Path) -> bool:
    """Whether this very analysis lies there, whole."""
    note, wanted = summary_of_analysis(run), stands_for(cfg, run, encoder)
    return note is not None and {name: note.get(name) for name in wanted} == wanted


def contents_of(run: Path) -> dict[str, str]:
    """A checksum of every table and figure of the analysis, by the file's name."""
    folder = run / FOLDER
    return {file.name: sha256_of(file) for file in sorted((*folder.glob("*.csv"), *folder.glob("*.png")))}


def summary_of_analysis(run: Path) -> dict[str, Any] | None:
    """What was analysed and found; None where no analysis has ended, or not all of its files are as it left them."""
    try:
        note = json.loads((run / FOLDER / SUMMARY).read_text())
        made = note["files"].items()
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return note if made <= contents_of(run).items() else None


def is_newer_than_report(run: Path) -> bool:
    """Whether an analysis ended after the report was written, which then does not show it: the job was killed."""
    report, summary = run / "report.html", run / FOLDER / SUMMARY
    return report.exists() and summary.exists() and summary.stat().st_mtime_ns > report.stat().st_mtime_ns


def present_analysis(run: Path) -> tuple[dict[str, Any] | None, str]:
    """What was found of the embeddings that lie there now, or why there is nothing."""
    note = summary_of_analysis(run)
    if note is None:
        return None, (DAMAGED if (run / FOLDER / SUMMARY).exists() else NONE).format(run=run)
    return (note, "") if note["embeddings"] == digests_of(run) else (None, STALE.format(run=run))


def analysis_files(run: Path) -> list[Path]:
    """Tables and figures of what was found; none of an analysis that did not end, or is of other embeddings."""
    note, _ = present_analysis(run)
    return [run / FOLDER / name for name in note["files"]] if note else []


def analysis_of(run: Path) -> tuple[Analysis | None, str]:
    """What the report shows, or why there is nothing to show."""
    note, why_not = present_analysis(run)
    if note is None:
        return None, why_not
    return Analysis(
        of="the first encoder seed" if note["encoder"] == "." else f"the encoder in {note['encoder']}",
        sentences=note["sentences"],
        pictures={
            kind: [(run / FOLDER / f"{name}.png").read_bytes() for name in names]
            for kind, names in note["figures"].items()
        },
    ), ""


def clusters_in(run: Path) -> dict[str, np.ndarray]:
    """The clusters of every level and method by name, from the analysis's table."""
    ids = pd.read_csv(run / FOLDER / "clusters_ids.csv")
    return {name.replace(":", ", "): ids[name].to_numpy() for name in ids.columns if ":" in name}
