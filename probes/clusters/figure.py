"""The figure of one level's clusters: what each is made of, and how stable they are.

Pure: tables in, a matplotlib Figure out.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from probes.clusters.clusters import ClusterTables
from probes.clusters.summary import UNSTABLE
from probes.report.figures import DARK, MARKED, PALE, PALETTE, new_figure, tidy

REST = "all other classes"
METHODS = {"mixture": ("Gaussian mixture", PALETTE[0], "o"), "hdbscan": ("HDBSCAN", PALETTE[1], "D")}


def cluster_figure(tables: ClusterTables, level: str, label: str) -> Figure:
    """Shares of a label's classes in each cluster of the mixture, beside those of all episodes; and the stability of
    both methods. Beyond six classes the rarest are one.
    """
    makeup = _of(tables.makeup, level=level, method="mixture", label=label)
    clusters = list(dict.fromkeys(makeup["cluster"]))
    figure = new_figure(2.4 + 0.34 * max(len(clusters), 4))
    left, right = figure.subplots(1, 2, width_ratios=[1.7, 1])
    shares = shares_of(makeup)
    _bars(left, shares, [int(_of(makeup, cluster=k)["count"].to_numpy().sum()) for k in clusters])
    _stability(right, _of(tables.stability, level=level))
    handles = [Patch(color=colour, label=name) for name, colour in zip(shares.columns, _colours(shares), strict=True)]
    figure.legend(handles=handles, loc="outside upper center", ncols=7, frameon=False, fontsize=9)
    left.set_title(f"{level}: share of each {label}", fontsize=10.5, loc="left")
    right.set_title("stability", fontsize=10.5, loc="left")
    return figure


def shares_of(makeup: pd.DataFrame) -> pd.DataFrame:
    """Clusters by classes, the last row that of all episodes; the commonest six classes, then the rest as one."""
    shares = makeup.pivot(index="cluster", columns="class", values="share")
    base = pd.Series(makeup.drop_duplicates("class").set_index("class")["base"])
    order = list(dict.fromkeys(makeup["class"]))
    if len(order) > len(PALETTE) - 1:
        common = base.index[np.argsort(-base.to_numpy(), kind="stable")[: len(PALETTE) - 1]]
        rest = [name for name in order if name not in set(common)]
        shares[REST], base[REST] = shares[rest].sum(axis=1), base[rest].sum()
        order = [name for name in order if name in set(common)] + [REST]
    shares.loc["all"] = base
    return pd.DataFrame(shares[order])


def _of(table: pd.DataFrame, **values: object) -> pd.DataFrame:
    for name, value in values.items():
        table = pd.DataFrame(table[table[name] == value])
    return table


def _colours(shares: pd.DataFrame) -> list[str]:
    return [PALE if name == REST else PALETTE[i] for i, name in enumerate(shares.columns)]


def _bars(ax: Axes, shares: pd.DataFrame, sizes: list[int]) -> None:
    tidy(ax)
    places, left = np.arange(len(shares), dtype=float), np.zeros(len(shares))
    places[-1] += 0.4  # all episodes stand apart from the clusters
    for (_, column), colour in zip(shares.items(), _colours(shares), strict=True):
        values = column.to_numpy(float)
        ax.barh(places, values, left=left, color=colour, height=0.78, edgecolor="white", linewidth=0.6)
        left += values
    names = [f"{k} (n={n})" for k, n in zip(shares.index, sizes, strict=False)]
    ax.set_yticks(places, [*names, f"all (n={sum(sizes)})"])
    ax.set_ylabel("cluster")
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of the episodes")


def _stability(ax: Axes, stability: pd.DataFrame) -> None:
    """Mean and middle 90 % of each comparison; what was not measured has a word in its place."""
    tidy(ax)
    rows = stability.to_dict("records")
    overs = list(dict.fromkeys(row["over"] for row in rows))
    for row in rows:
        name, colour, marker = METHODS[row["method"]]
        place = overs.index(row["over"]) + (0.16 if row["method"] == "hdbscan" else -0.16)
        if np.isnan(row["mean"]):
            ax.annotate(f"{name}: not measured", (0.02, place), va="center", fontsize=9, color=DARK)
            continue
        ax.plot([row["low"], row["high"]], [place, place], color=colour, linewidth=2)
        ax.plot(row["mean"], place, color=colour, marker=marker, markersize=8)
    ax.axvline(UNSTABLE, color=MARKED, linewidth=1, linestyle=(0, (4, 3)))
    ax.annotate("unstable", (UNSTABLE, 1.0), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=9)
    ax.set_yticks(range(len(overs)), [f"over {over}" for over in overs])
    ax.set_ylim(len(overs), -0.6)  # room for the legend
    ax.set_xlim(min(0.0, *(row["low"] for row in rows if np.isfinite(row["low"])), 0.0) - 0.02, 1.02)
    ax.set_xlabel("adjusted Rand index, mean and middle 90 %")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="", label=name)
        for name, colour, marker in METHODS.values()
    ]
    ax.legend(handles=handles, loc="lower left", frameon=False, fontsize=9)
