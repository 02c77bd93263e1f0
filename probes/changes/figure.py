"""Change points on the learning curve, and the share of seeds that change between two checkpoints.

Pure: the tables of docs/changes.md in, a matplotlib Figure out. C checkpoints.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from probes.levels import title_of
from probes.report.figures import DARK, MARKED, PALETTE, new_figure, records, tidy

MARKS = ("o", "D", "s", "^", "v", "P", "X")


def change_figure(returns: pd.DataFrame, changes: pd.DataFrame, edges: pd.DataFrame, group: str) -> Figure:
    """Above: every group's mean return by checkpoint, its changes marked. Below: the share of groups that change.

    Changes above are those of the first level that could be evaluated, z_omega where it can.
    """
    figure = new_figure(6.4)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.3, 1])
    levels = list(dict.fromkeys(edges["level"]))
    numbers = np.unique(returns["checkpoint"])
    _curves(above, returns, pd.DataFrame(changes[changes["level"].isin(levels[:1])]))
    _rates(below, edges, levels)
    below.set_xticks(numbers if len(numbers) <= 30 else numbers[:: len(numbers) // 15])
    below.set_xlabel("checkpoint")
    n_groups = returns["group"].nunique()
    handles = [
        Line2D([], [], color=PALETTE[4], linewidth=1, label=f"one {group} ({n_groups})"),
        Line2D([], [], color=PALETTE[0], linewidth=2.4, label=f"median over {group}s"),
    ]
    if levels:
        words = f"change of {title_of(levels[0])} in that {group}"
        handles.append(Line2D([], [], color=MARKED, marker="o", linestyle="", markersize=3.5, label=words))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def _curves(ax: Axes, returns: pd.DataFrame, changes: pd.DataFrame) -> None:
    tidy(ax)
    table = returns.pivot(index="checkpoint", columns="group", values="return_mean")
    x = table.index.to_numpy(float)
    curves = table.to_numpy(float)
    for group, y in zip(table.columns, curves.T, strict=True):
        known = np.isfinite(y)
        ax.plot(x[known], y[known], color=PALETTE[4], linewidth=0.7, alpha=0.45)
        mine = records(pd.DataFrame(changes[changes["group"] == group]))
        at = [(row["before"] + row["after"]) / 2 for row in mine]
        on = np.interp(at, x[known], y[known])
        ax.plot(at, on, color=MARKED, marker="o", markersize=3.5, linestyle="", alpha=0.8)
    ax.plot(x, np.nanmedian(curves, axis=1), color=PALETTE[0], linewidth=2.4)
    ax.set_ylabel("mean team return")


def _rates(ax: Axes, edges: pd.DataFrame, levels: list[str]) -> None:
    tidy(ax)
    for i, level in enumerate(levels):
        rows = records(pd.DataFrame(edges[edges["level"] == level]))
        apart = 0.06 * (i - (len(levels) - 1) / 2)
        x = [(row["before"] + row["after"]) / 2 + apart for row in rows]
        shares, colour, mark = [row["share"] for row in rows], PALETTE[i % len(PALETTE)], MARKS[i % len(MARKS)]
        ax.plot(x, shares, color=colour, marker=mark, markersize=5, linewidth=1.4, label=title_of(level))
        for at, row in zip(x, rows, strict=True):
            ax.plot([at, at], [row["ci_low"], row["ci_high"]], color=colour, linewidth=1, alpha=0.6)
    if levels:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    else:
        ax.annotate("not evaluated", (0.5, 0.5), xycoords="axes fraction", ha="center", color=DARK)
    ax.set_ylim(0, 1)
    ax.set_ylabel("share of seeds that change")
