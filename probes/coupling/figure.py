"""Figures of coupling: pairs against their null, regions by spread and return, and which clusters meet.

Pure: the tables of docs/coupling.md in, a matplotlib Figure out.
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from probes.levels import title_of
from probes.report.figures import DARK, PALE, PALETTE, new_figure, records, tidy

MARKS = ("o", "D", "s", "^", "v", "P", "X")
MOST_PAIRS, COLUMNS = 6, 3


def coupling_figure(pairs: pd.DataFrame, images: pd.DataFrame) -> Figure:
    """Left: NMI of each pair, with what permuted groups give. Right: each region's spread against its mean return."""
    figure = new_figure(max(3.6, 1.4 + 0.42 * len(pairs)))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.15])
    _pairs(left, pairs)
    _regions(right, images)
    return figure


def _pairs(ax: Axes, pairs: pd.DataFrame) -> None:
    tidy(ax)
    for y, row in enumerate(records(pairs)):
        if np.isnan(row["nmi"]):
            ax.annotate("not evaluated", (0.02, y), fontsize=9, va="center", color=DARK)
            continue
        ax.plot([row["null_mean"], row["null_high"]], [y, y], color=DARK, linewidth=1.8)
        ax.plot(row["null_mean"], y, color=DARK, marker="x", linestyle="")
        colour = PALETTE[1] if row["kind"] == "agents" else PALETTE[0]
        face = colour if row["p_holm"] < 0.05 else "white"
        ax.plot(row["nmi"], y, color=colour, marker="o", markersize=7, linestyle="", mfc=face)
    names = [f"{title_of(row['first'])} and {title_of(row['second'])}" for row in records(pairs)]
    ax.set_yticks(range(len(pairs)), [name.replace(" of ", ", ") for name in names])
    ax.set_ylim(len(pairs) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("normalised mutual information")
    handles = [
        Line2D([], [], color=PALETTE[0], marker="o", linestyle="", label="team and agent; hollow: p ≥ .05 after Holm"),
        Line2D([], [], color=PALETTE[1], marker="o", linestyle="", label="two agents, likewise"),
        Line2D([], [], color=DARK, marker="x", label="permuted groups: mean, 95 % quantile"),
    ]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=9)


def _regions(ax: Axes, images: pd.DataFrame) -> None:
    tidy(ax)
    found = pd.DataFrame(images[images["spread"].notna()])
    for row in records(found):
        look = _look(row["agent"], row["image"])
        ax.plot([row["ci_low"], row["ci_high"]], [row["return_mean"]] * 2, color=look["color"], linewidth=1, alpha=0.5)
        ax.plot([row["spread"]] * 2, [row["return_low"], row["return_high"]], color=look["color"], lw=1, alpha=0.5)
        ax.plot(row["spread"], row["return_mean"], linestyle="", markersize=6, **look)
    ax.axvline(1, color=DARK, linewidth=1, linestyle=(0, (4, 3)))
    ax.annotate("all episodes", (1, 1), xycoords=("data", "axes fraction"), va="bottom", ha="center", fontsize=9)
    ax.set_xlim(left=0)
    ax.set_xlabel("spread of the region's image in the other agent's latent")
    ax.set_ylabel("mean team return of the region")
    kinds = dict.fromkeys(zip(found["agent"], found["image"], strict=True))
    handles = [Line2D([], [], linestyle="", label=f"agent {a} in agent {b}", **_look(a, b)) for a, b in list(kinds)[:9]]
    if handles:
        ax.legend(handles=handles, frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _look(agent: int, image: int) -> dict[str, Any]:
    """Colour by the region's agent, mark by the other."""
    return {"color": PALETTE[agent % len(PALETTE)], "marker": MARKS[image % len(MARKS)]}


def contingency_figure(contingency: pd.DataFrame, pairs: pd.DataFrame) -> Figure:
    """Heat maps of the pairs with the largest NMI, six at most: of each cluster's episodes, the share in each other."""
    ranked = pd.DataFrame(pairs[pairs["nmi"].notna()]).sort_values("nmi", ascending=False, kind="stable")
    shown = records(ranked.head(MOST_PAIRS))
    n_rows = max(-(-len(shown) // COLUMNS), 1)
    figure = new_figure(3.4 * n_rows)
    axes = figure.subplots(n_rows, COLUMNS, squeeze=False).ravel()
    for ax, pair in zip(axes, shown, strict=False):
        here = (contingency["first"] == pair["first"]) & (contingency["second"] == pair["second"])
        shares = pd.DataFrame(contingency[here]).pivot(index="cluster", columns="meets", values="share")
        image = ax.imshow(shares.to_numpy(float), cmap="cividis", vmin=0, vmax=1, aspect="auto")
        ax.set_yticks(range(len(shares)), shares.index)
        ax.set_xticks(range(shares.shape[1]), shares.columns)
        ax.set_ylabel(f"cluster of {title_of(pair['first'])}", fontsize=9)
        ax.set_xlabel(f"cluster of {title_of(pair['second'])}", fontsize=9)
        ax.set_title(f"NMI {pair['nmi']:.2f}, permuted {pair['null_mean']:.2f}", fontsize=10, loc="left")
        ax.tick_params(color=PALE, labelcolor=DARK, labelsize=9)
    if shown:
        figure.colorbar(image, ax=axes.tolist(), label="share of the row's episodes", shrink=0.8)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    return figure
