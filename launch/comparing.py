"""Many runs in one probe table: `python -m launch.probe runs='runs/*'`.

Letters: B episodes, E encoder seeds, Zw joint latent.
"""

import glob
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from data_gen.storage.dataset import digest, read_dataset
from data_gen.trajectory import InputError, seen_rows, select
from launch.data import hold_out_of
from launch.encoders import embeddings_of
from launch.progress import progress
from launch.rundir import data_of
from launch.schema.probe import Probing
from marl_vae.files import write_text
from probes.comparison.comparison import compare, reading, wide
from probes.comparison.figure import comparison_figure
from probes.study.page import markdown


def comparing(cfg: Probing, pattern: str) -> None:
    """Write comparison.csv, .md and .png where the pattern's first wildcard stands, and print the table.

    Without `reference` it is the first run with a finite latent of those that share their data with most others.
    """
    runs, left_out = matching(pattern)
    kinds = [one.kind for one in runs.values()]
    reference = Path(cfg.reference) if cfg.reference else max(runs, key=lambda run: kinds.count(runs[run].kind))
    if reference not in runs:
        raise InputError(f"reference={reference} is none of the runs to compare: {', '.join(map(str, runs))}.")
    same = [run for run in runs if runs[run].kind == runs[reference].kind]
    left_out |= {run: f"not of the data and held-out checkpoints of {reference}" for run in runs if run not in same}
    for run, reason in sorted(left_out.items()):
        print(f"left out {run}: {reason}")
    if len(same) < 2:
        raise InputError(f"runs={pattern}: only {reference} is left, and a comparison wants two runs of one data set.")
    to = folder_of(pattern)
    if not os.access(to, os.W_OK):
        raise InputError(
            f"{to}, where comparison.csv is to lie, cannot be written to. Link the runs from a folder of yours."
        )
    whole = read_dataset(data_of(reference))
    rows = seen_rows(whole, hold_out_of(reference))
    names = {run: run.relative_to(to).as_posix() for run in same}
    latents, seen = {name: runs[run].z_omega[:, rows] for run, name in names.items()}, select(whole, rows)
    first = names[reference]
    if not cfg.reference:
        first = next((name for name, values in latents.items() if np.isfinite(values).all()), first)
    known = {"rows": seen.rows, "split": seen.split, "labels": seen.labels}
    with progress("probe") as tell:
        table = compare(cfg.probe, latents, first, **known, progress=lambda done, n: tell(done / n))
    write_text(to / "comparison.csv", table.to_csv(index=False))
    write_text(to / "comparison.md", "\n\n".join([markdown(wide(table)).strip(), *reading(table)]) + "\n")
    comparison_figure(table).savefig(to / "comparison.png", dpi=120)
    print("\n".join([wide(table).to_string(index=False), *reading(table)]))
    print(f"table {to / 'comparison.csv'}, .md and .png")


class Trained(NamedTuple):
    """A run to compare: what it was trained on, and the joint latent's means, one row an encoder seed."""

    kind: tuple[Any, ...]
    z_omega: Float[np.ndarray, "E B Zw"]


def matching(pattern: str) -> tuple[dict[Path, Trained], dict[Path, str]]:
    """The trained runs of a pattern, and why other runs are left out; InputError where there is none."""
    runs, left_out = {}, {}
    for run in (place for place in matched(pattern) if (place / "config.yaml").exists()):
        try:
            z_omega = np.stack([one["omega_mean"] for one in embeddings_of(run).values()])
            runs[run] = Trained((digest(data_of(run)), *hold_out_of(run)), z_omega)
        except InputError as error:
            left_out[run] = str(error).split(". ")[0]
    if not runs:
        reasons = "".join(f" {run}: {reason}." for run, reason in left_out.items())
        raise InputError(f"runs={pattern} matches no trained run.{reasons} Quote the pattern, as in 'runs=runs/*'.")
    return runs, left_out


def matched(pattern: str) -> list[Path]:
    """What lies under a pattern, sorted.

    A part of it that is the very name of a folder there is that name, whatever brackets in it would mean in a pattern.
    """
    found = [Path()]
    for part in Path(pattern).parts:
        found = [
            base / name
            for base in found
            for name in ([part] if (base / part).exists() else glob.glob(part, root_dir=base))
        ]
    return sorted(found)


def folder_of(pattern: str) -> Path:
    """The folder in which the first part of a pattern stands that is no folder's very name."""
    parts = Path(pattern).parts
    for place in range(len(parts)):
        if not Path(*parts[: place + 1]).exists():
            return Path(*parts[:place])
    return Path(pattern).parent
