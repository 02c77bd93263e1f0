"""A run's probe table: what it was made with, and whether it is of the embeddings that lie there now."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from data_gen.storage.store import sha256_of
from data_gen.trajectory import InputError
from launch.encoders import digests_of
from launch.rundir import JOBS
from launch.tables import read_table
from marl_vae.files import write_text
from probes.probe import Probe
from probes.table.rows import COLUMNS

TABLE, NOTE = "probes.csv", "probe.yaml"
EMBEDDINGS, CHECKSUM = "embeddings", "table"  # what the note holds beside the settings


def keep_table(cfg: Probe, run: Path, table: pd.DataFrame) -> None:
    """Write probes.csv, then probe.yaml: the settings, a digest of the embeddings and a checksum of the table."""
    write_text(run / TABLE, table.to_csv(index=False))
    write_text(run / NOTE, yaml.safe_dump(note_for(cfg, run), sort_keys=False))


def note_for(cfg: Probe, run: Path) -> dict[str, Any]:
    """What probe.yaml says of the table that lies there, if it was made with these settings just now."""
    return {**asdict(cfg), EMBEDDINGS: digests_of(run), CHECKSUM: sha256_of(run / TABLE)}


def done(cfg: Probe, run: Path) -> bool:
    """Whether the run's report was made with these settings, of the embeddings that lie there now."""
    try:
        same = note_of(run) | {JOBS: cfg.jobs} == note_for(cfg, run)
        return same and (run / "report.html").exists()
    except (InputError, FileNotFoundError):
        return False


def read_probes(run: Path) -> tuple[pd.DataFrame, Probe]:
    """A run's probe table, and the settings that it was made with.

    Raises InputError where it has none, or one that was cut, altered, or made of other embeddings.
    """
    again = f"Run launch.probe run={run} again."
    if not (run / TABLE).exists():
        raise InputError(f"{run} has no probe table to compare with. Run launch.probe run={run} first.")
    note, table = note_of(run), read_table(run / TABLE, again)
    made_of, checksum = note.pop(EMBEDDINGS, None), note.pop(CHECKSUM, None)
    note["concepts"] = None
    try:
        probe = Probe(**note)
    except TypeError as error:
        raise InputError(f"{run / NOTE} is of other code ({error}). {again}") from None
    if lacking := [name for name in COLUMNS if name not in table]:
        raise InputError(f"{run / TABLE} is of other code (it has no {', '.join(lacking)}). {again}")
    if checksum not in (None, sha256_of(run / TABLE)):  # notes of before hold neither of the two
        raise InputError(f"{run / TABLE} is not as launch.probe left it: it was cut or altered since. {again}")
    if made_of not in (None, digests_of(run)):
        raise InputError(f"{run / TABLE} is of embeddings that are no longer there. {again}")
    table["note"] = table["note"].astype(object).where(table["note"].notna(), "")  # a column without any is of NaN
    return table, probe


def probed_files(run: Path) -> tuple[list[Path], str]:
    """Tables, figures and pages in a run's folder; none, and why, where its probe table is not one to believe."""
    try:
        if (run / TABLE).exists():
            read_probes(run)
    except InputError as error:
        return [], str(error)
    return [file for kind in ("*.csv", "*.png", "figures/*.png", "*.html") for file in run.glob(kind)], ""


def note_of(run: Path) -> dict[str, Any]:
    """What probe.yaml says; InputError where it is missing or damaged."""
    again = f"Run launch.probe run={run} again."
    try:
        note = yaml.safe_load((run / NOTE).read_text())
    except FileNotFoundError:
        raise InputError(f"{run / NOTE} is missing, so what {TABLE} was made with is not known. {again}") from None
    except yaml.YAMLError as error:
        raise InputError(f"{run / NOTE} is damaged ({' '.join(str(error).split())}). {again}") from None
    if not isinstance(note, dict):
        raise InputError(f"{run / NOTE} is damaged (it holds no settings). {again}")
    return note
