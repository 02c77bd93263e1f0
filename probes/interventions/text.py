"""Interventions as text for a terminal."""

import math
from typing import Any

import pandas as pd
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from probes.table.findings import WIDTH, number, ranged

LEGEND = (
    "effect of a swap: how much oftener a rollout has the other episode's class under that episode's latent than "
    "under its own (of a number: how far it moves, in training deviations). Of interpolate and direction: the slope of "
    "that with the weight, and with a shift of one training deviation. possible: if rollouts did what their latents' "
    "episodes did. return: before and after."
)

STRANGE = 0.05  # of steps: a rise above it is said


def format_interventions(effects: pd.DataFrame, joined: pd.DataFrame) -> str:
    """Both tables: what each intervention did, and for each label whether it is decodable and whether it is used."""
    title = "What follows when z_omega is another (95 % intervals over test groups)"
    shown = _table(title, ("label", "kind", "effect"), ("control", "possible", "reproduced", "changed", "return"))
    for row in effects.to_dict("records"):
        shown.add_row(str(row["label"]), str(row["kind"]), *_effect_cells(row))
    columns = ("decodable", "used", "along", "reproduced")
    both = _table("Decodable, and used by the model", ("label", *columns[:3]), ("reproduced", "reading"))
    for row in joined.to_dict("records"):
        pairs = (ranged(row[name], row[f"{name}_low"], row[f"{name}_high"], sign="+") for name in columns[:3])
        both.add_row(str(row["label"]), *pairs, number(row["reproduced"]), str(row["reading"]))
    console = Console(width=WIDTH, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(shown)
        console.print(LEGEND)
        console.print(both)
    return capture.get() + "\n".join(sentences(effects))


def _table(title: str, names: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(title=title, box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="left" if name == "reading" else "right")
    return table


def _effect_cells(row: dict[str, Any]) -> list[str]:
    if math.isnan(row["effect"]):
        return [str(row["note"])]
    return [
        ranged(row["effect"], row["ci_low"], row["ci_high"], sign="+"),
        number(row["control"], sign="+"),
        number(row["possible"]),
        number(row["reproduced"]),
        number(row["changed"]),
        f"{row['return_before']:.1f} → {row['return_after']:.1f}",
    ]


def sentences(effects: pd.DataFrame) -> list[str]:
    """The swap of each label in plain words."""
    return [_sentence(row) for row in effects.to_dict("records") if row["kind"] == "swap"]


def _sentence(row: dict[str, Any]) -> str:
    if math.isnan(row["effect"]):
        return f"{row['label']}: {row['note']}."
    said = [f"{row['label']}: swapping z_omega has an effect of {ranged(row['effect'], row['ci_low'], row['ci_high'])}"]
    said.append(f"of {number(row['possible'])} possible, {row['n_pairs']} pairs of {row['n_groups']} test groups")
    if not math.isnan(row["changed"]):
        share = ranged(row["changed"], row["changed_low"], row["changed_high"])
        recorded = f"the recorded team's own episodes repeat it in {number(row['repeatable'])}"
        said.append(f"{number(row['reproduced'])} of the rollouts have their own episode's class ({recorded})")
        changed = f"and of those the swap changes {share} to the other episode's"
        said.append(f"{changed}, while {number(row['stayed'])} stay")
    if row["outside_after"] > row["outside_before"] + STRANGE:
        strange = f"{number(row['outside_after'])} after the swap, {number(row['outside_before'])} before"
        said.append(f"steps with observations beyond the training episodes': {strange}")
    if row["failed"] > 0:
        said.append(f"physics failed in {row['failed']:.1%} of the rollouts")
    return "; ".join([*said, *([f"note: {row['note']}"] if row["note"] else [])]) + "."
