"""Curves of interventions: what the rollouts do as z_omega goes from one episode to another, or along a direction."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from probes.report.figures import DARK, PALETTE, new_figure, tidy

KINDS = {
    "interpolate": (PALETTE[0], "o", "z_ω from an episode's own (0) to another's (1)"),
    "same": (DARK, "x", "z_ω of an episode of the own class"),
    "local": (PALETTE[1], "D", "z_α of the episodes instead"),
    "probe": (PALETTE[2], "o", "along the probe's direction"),
    "random": (DARK, "x", "as far in a random direction"),
}
PANELS = {
    ("interpolate", "same", "local"): "weight of the other episode",
    ("probe", "random"): "shift, training deviations",
}


def intervention_figure(curves: pd.DataFrame) -> Figure:
    """A row a label: interpolation with the swaps, and shifts along directions; intervals over test groups."""
    labels = list(dict.fromkeys(curves["label"]))
    figure = new_figure(0.8 + 2.6 * len(labels))
    axes = figure.subplots(len(labels), len(PANELS), squeeze=False)
    for row, label in zip(axes, labels, strict=True):
        for ax, (kinds, axis) in zip(row, PANELS.items(), strict=True):
            tidy(ax)
            for kind in kinds:
                _curve(ax, pd.DataFrame(curves[(curves["label"] == label) & (curves["kind"] == kind)]), kind)
            ax.set_xlabel(axis, fontsize=9)
        row[0].set_title(label, fontsize=10.5, loc="left")
        row[0].set_ylabel("outcome (docs/intervention.md)", fontsize=9)
    handles = [Line2D([], [], color=colour, marker=mark, label=text) for colour, mark, text in KINDS.values()]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _curve(ax: Axes, rows: pd.DataFrame, kind: str) -> None:
    colour, mark, _ = KINDS[kind]
    rows = rows.sort_values("at")
    ax.plot(rows["at"], rows["value"], color=colour, marker=mark, markersize=5, linewidth=1.4 if len(rows) > 2 else 0)
    ax.vlines(rows["at"], rows["ci_low"], rows["ci_high"], color=colour, linewidth=1.4)
