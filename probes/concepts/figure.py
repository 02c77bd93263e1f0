"""The figure of concept completeness against the number of concepts.

Pure: the curve's rows in, a matplotlib Figure out.
"""

from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from probes.report.figures import DARK, PALETTE, new_figure, tidy

Style = Literal["-", "--", ":"]
STYLES: tuple[Style, ...] = ("-", "--", ":")
LOWEST_SHOWN, HIGHEST_SHOWN = -0.25, 1.5  # a ratio over a small gain runs off; what lies beyond is cut at the edge


def completeness_curves(curve: pd.DataFrame) -> Figure:
    """A panel for each g, a line for each label; the number chosen is a filled dot. `curve` as in `ConceptTables`."""
    maps = list(dict.fromkeys(curve["g"]))
    figure = new_figure(3.9)
    axes = figure.subplots(1, max(len(maps), 1), sharey=True, squeeze=False)[0]
    looks = {name: look(i) for i, name in enumerate(dict.fromkeys(curve["label"]))}
    for ax, g in zip(axes, maps, strict=False):
        _panel(ax, pd.DataFrame(curve[curve["g"] == g]), looks)
        ax.set_title(f"g: {g}", fontsize=10.5, loc="left")
    axes[0].set_ylabel("completeness, validation groups")
    handles = [Line2D([], [], color=c, linestyle=s, marker="o", label=name) for name, (c, s) in looks.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, fontsize=9)
    return figure


def look(i: int) -> tuple[str, Style]:
    """Colour and line style of the i-th label; no two of the first 21 are alike."""
    return PALETTE[i % len(PALETTE)], STYLES[i // len(PALETTE) % len(STYLES)]


def _panel(ax: Axes, curve: pd.DataFrame, looks: dict[str, tuple[str, Style]]) -> None:
    tidy(ax)
    undefined = []
    for i, (label, (colour, style)) in enumerate(looks.items()):
        rows = pd.DataFrame(curve[curve["label"] == label])
        values = np.clip(rows["completeness"].to_numpy(float), LOWEST_SHOWN, HIGHEST_SHOWN)
        if np.isnan(values).all():
            undefined.append(label)
            continue
        # Labels stand a little apart, so that equal values are all seen.
        numbers = rows["n_concepts"].to_numpy(int) + 0.07 * (i - (len(looks) - 1) / 2)
        chosen = rows["chosen"].to_numpy(bool)
        ax.plot(numbers, values, color=colour, linestyle=style, linewidth=1.8, marker="o", markersize=5, mfc="white")
        ax.plot(numbers[chosen], values[chosen], color=colour, linestyle="", marker="o", markersize=8)
    for height, name in ((1, "all of z_ω"), (0, "floor")):
        ax.axhline(height, color=DARK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        ax.annotate(name, (0.01, height), xycoords=("axes fraction", "data"), va="bottom", fontsize=9)
    if undefined:
        words = "undefined: " + ", ".join(undefined)
        ax.annotate(words, (0.01, 0.02), xycoords="axes fraction", va="bottom", fontsize=9, color=DARK)
    ax.set_ylim(LOWEST_SHOWN - 0.05, HIGHEST_SHOWN + 0.05)
    ax.set_xticks(sorted(set(curve["n_concepts"])))
    ax.set_xlabel("number of concepts")
