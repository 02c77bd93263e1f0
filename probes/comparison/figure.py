"""Runs side by side in one figure: what each one's joint latent holds, and how far that is from the reference."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from probes.report.figures import DARK, PALE, PALETTE, new_figure, tidy

VALUE = ("value", "ci_low", "ci_high")
DIFFERENCE = ("minus_reference", "minus_low", "minus_high")
LONGEST = 41  # characters of a run's name
TAKEN_OFF = 0.8  # inches for titles, axes and legends of a row


def comparison_figure(table: pd.DataFrame) -> Figure:
    """A row a label and a line a run: its value with chance dashed, and its paired difference to the reference."""
    evaluated = table[table["value"].notna()]
    labels, runs = list(dict.fromkeys(evaluated["label"])), list(dict.fromkeys(table["run"]))
    figure = new_figure(max(len(labels), 1) * (TAKEN_OFF + 0.28 * len(runs)))
    axes = figure.subplots(max(len(labels), 1), 2, squeeze=False)
    for row, label in zip(axes, labels, strict=False):
        of_label = pd.DataFrame(evaluated[evaluated["label"] == label]).set_index("run").reindex(runs)
        reference = str(of_label["reference"].dropna().iloc[0])
        _lines(row[0], of_label, VALUE, PALETTE[0])
        row[0].axvline(float(of_label["chance"].dropna().iloc[0]), color=DARK, linestyle="--", linewidth=1)
        row[0].set_yticks(range(len(runs)), [shortened(run) for run in runs], fontsize=8)
        row[0].set_title(label, fontsize=10.5, loc="left")
        row[0].set_xlabel(f"{of_label['metric'].dropna().iloc[0].replace('_', ' ')} (dashed: chance)", fontsize=9)
        _lines(row[1], of_label, DIFFERENCE, PALETTE[5])
        row[1].axvline(0, color=DARK, linewidth=1)
        row[1].set_yticks(range(len(runs)), [""] * len(runs))
        row[1].set_xlabel(f"difference to {reference}, paired, 95 %", fontsize=9)
    return figure


def shortened(name: str) -> str:
    """A name of at most LONGEST characters, its middle left out; a sweep's folders have long ones."""
    half = (LONGEST - 1) // 2
    return name if len(name) <= LONGEST else f"{name[:half]}…{name[-half:]}"


def _lines(ax: Axes, rows: pd.DataFrame, names: tuple[str, str, str], colour: str) -> None:
    tidy(ax)
    value, low, high = (rows[name].to_numpy(float) for name in names)
    places = np.arange(len(rows))
    ax.hlines(places, low, high, color=colour, linewidth=2)
    ax.plot(value, places, "o", color=colour, markersize=6)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(axis="y", color=PALE, linewidth=0.4)
