"""Figures of a run that have no place in the plane: how agents learned, how the model trained, what the probes found.

Each function is pure: arrays and rows in, a matplotlib Figure out. S training seeds, U learner updates.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from probes.labels import CONFOUNDS

# Okabe and Ito's palette without its yellow, which is lost on white; told apart under the common colour blindnesses.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4D4D4D")
PALE, DARK, MARKED = "#B8B8B8", "#333333", "#D55E00"
WIDTH = 11.0
LEVELS = {"omega": ("z_ω (team)", PALETTE[0]), "alpha": ("z_α (agents)", PALETTE[1])}
FEATURES = {
    "z_omega": "z_ω",
    "z_alpha": "z_α pooled",
    "z_both": "z_ω and z_α",
    "random_encoder": "random encoder",
    "pca": "PCA, same width",
    "raw": "raw, reduced",
    "hand": "hand features",
    "majority": "majority",
    "flat_vae": "flat VAE",
    "supervised": "supervised ceiling",
}
PROBES = {
    "linear": ("o", PALETTE[0], -0.17),
    "mlp": ("D", PALETTE[1], 0.17),
    "end_to_end": ("s", PALETTE[2], 0.0),
}
LOWEST_SHOWN = -0.3  # R² has no lower end; what lies below is an arrow at the edge


def new_figure(height: float) -> Figure:
    """An empty figure of the report's width, outside pyplot's global state."""
    return Figure(figsize=(WIDTH, height), layout="constrained")


def tidy(ax: Axes) -> None:
    """A light frame and grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(PALE)
    ax.tick_params(color=PALE, labelcolor=DARK, labelsize=9)
    ax.grid(color="#EBEBEB", linewidth=0.8)
    ax.set_axisbelow(True)


def normalise(curves: Float[np.ndarray, "S U"], baselines: dict[str, float]) -> Float[np.ndarray, "S U"] | None:
    """(R − random) / (scripted − random); None where a baseline is not known or the two are equal."""
    if not {"random", "scripted"} <= baselines.keys() or baselines["scripted"] == baselines["random"]:
        return None
    return (curves - baselines["random"]) / (baselines["scripted"] - baselines["random"])


def learning_curves(
    curves: Float[np.ndarray, "S U"], baselines: dict[str, float], snapshots: Sequence[int] = ()
) -> Figure:
    """Mean team return of each training seed over its updates, with the median over seeds.

    NaN where no episode ended in an update: a line goes on to the next update in which one did.
    """
    figure = new_figure(3.6)
    ax = figure.subplots()
    tidy(ax)
    shown = normalise(curves, baselines)
    if shown is None:
        shown = curves
        ax.set_ylabel("team return")
    else:
        ax.set_ylabel("(R − random) / (scripted − random)")
        for height, name in ((0, "random team"), (1, "scripted team")):
            ax.axhline(height, color=DARK, linewidth=1, linestyle=(0, (4, 3)))
            ax.annotate(name, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=9)
    updates = np.arange(1, shown.shape[1] + 1)
    known = np.isfinite(shown)
    for seed, where in zip(shown, known, strict=True):
        ax.plot(updates[where], seed[where], color=PALETTE[4], linewidth=0.7, alpha=0.45)
    some = known.any(axis=0)
    ax.plot(updates[some], np.nanmedian(shown[:, some], axis=0), color=PALETTE[0], linewidth=2.4)
    for snapshot in snapshots:
        ax.axvline(snapshot, color=MARKED, linewidth=1, alpha=0.5, linestyle=":")
    handles = [
        Line2D([], [], color=PALETTE[4], linewidth=1, label=f"one training seed ({len(shown)})"),
        Line2D([], [], color=PALETTE[0], linewidth=2.4, label="median over seeds"),
    ]
    if len(snapshots):
        handles.append(Line2D([], [], color=MARKED, linestyle=":", label="checkpoint whose episodes were recorded"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    ax.set_xlabel("learner update")
    return figure


def series(metrics: Sequence[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values of the rows that hold a finite `name`."""
    pairs = [(row["step"], row[name]) for row in metrics if row.get(name) is not None and np.isfinite(row[name])]
    steps, values = zip(*pairs, strict=True) if pairs else ((), ())
    return np.asarray(steps, float), np.asarray(values, float)


def cycle_ends(metrics: Sequence[dict[str, Any]]) -> list[int]:
    """Steps at which a cycle of β ended and checkpoints were compared."""
    return [row["step"] for row in metrics if row.get("cycle_end")]


def chosen_step(metrics: Sequence[dict[str, Any]]) -> int | None:
    """Step of the checkpoint that was kept as best, by the last row that names one."""
    named = [row["best_step"] for row in metrics if row.get("best_step") is not None]
    return int(named[-1]) if named else None


def training_curves(metrics: Sequence[dict[str, Any]]) -> Figure:
    """β, bound, KL and active units over training steps; cycle ends and the chosen checkpoint marked."""
    figure = new_figure(8.4)
    axes = figure.subplots(4, 1, sharex=True, height_ratios=[1, 2, 2, 1.2])
    for ax, draw in zip(axes, (_beta, _bound, _divergence, _active), strict=True):
        tidy(ax)
        draw(ax, metrics)
        _mark_cycles(ax, metrics)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    chosen = chosen_step(metrics)
    if chosen is not None:
        axes[0].set_title(f"chosen checkpoint: step {chosen}", color=MARKED, fontsize=10, loc="left")
    axes[-1].set_xlabel("training step")
    figure.align_ylabels()
    return figure


def _line(ax: Axes, metrics: Sequence[dict[str, Any]], name: str, **style: Any) -> None:
    """A figure over steps; nothing, and no legend, where the rows hold none (a model may lack a level)."""
    steps, values = series(metrics, name)
    if len(steps):
        ax.plot(steps, values, **style)


def _beta(ax: Axes, metrics: Sequence[dict[str, Any]]) -> None:
    for key, (label, colour) in LEVELS.items():
        width, style = (3.2, "-") if key == "omega" else (1.6, "--")  # both are seen where they are equal
        _line(ax, metrics, f"beta_{key}", color=colour, linewidth=width, linestyle=style, label=f"β of {label}")
    ax.set_ylabel("β")
    ax.set_ylim(bottom=0)


def _bound(ax: Axes, metrics: Sequence[dict[str, Any]]) -> None:
    _line(ax, metrics, "recon", color=PALE, linewidth=1.2, label="data term, training")
    training = {"color": PALETTE[0], "linewidth": 1.2, "alpha": 0.7}
    _line(ax, metrics, "train_bound", **training, label="bound at β = 1, training")
    chooses = {"val_bound": "bound at β = 1, validation", "val_recon": "data term, validation"}
    for name, label in chooses.items():
        _line(ax, metrics, name, color=PALETTE[5], linewidth=1.8, marker="o", markersize=3.5, label=label)
    values = np.concatenate([series(metrics, name)[1] for name in ("recon", "train_bound", *chooses)])
    if values.size:
        # The first steps lie far below all others and would flatten them.
        low, high = np.percentile(values, 5), values.max()
        if high > low:
            ax.set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    ax.set_ylabel("nats an episode")


def _divergence(ax: Axes, metrics: Sequence[dict[str, Any]]) -> None:
    for key, (label, colour) in LEVELS.items():
        steps, values = series(metrics, f"kl_{key}")
        if len(steps):
            ax.plot(steps, np.maximum(values, 1e-3), color=colour, linewidth=1.6, label=f"KL of {label}")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(LogFormatter())
    ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    ax.tick_params(which="both", color=PALE, labelcolor=DARK, labelsize=9)
    ax.set_ylabel("KL, nats (log)")


def _active(ax: Axes, metrics: Sequence[dict[str, Any]]) -> None:
    for key, (label, colour) in LEVELS.items():
        _line(ax, metrics, f"active_{key}", color=colour, marker="o", markersize=3, linewidth=1.4, label=label)
    ax.set_ylabel("active units")
    ax.set_ylim(bottom=0)


def _mark_cycles(ax: Axes, metrics: Sequence[dict[str, Any]]) -> None:
    ends = cycle_ends(metrics)
    for start, end in list(zip([0, *ends], ends, strict=False))[1::2]:
        ax.axvspan(start, end, color="#F4F4F4", zorder=0)
    for end in ends:
        ax.axvline(end, color=PALE, linewidth=1, linestyle=":")
    chosen = chosen_step(metrics)
    if chosen is not None:
        ax.axvline(chosen, color=MARKED, linewidth=1.6)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dictionaries."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]


def probed_labels(table: pd.DataFrame) -> list[str]:
    """Labels with at least one value, in the table's order, confounds last."""
    names = list(dict.fromkeys(table.loc[table["value"].notna(), "label"]))
    return [name for name in names if name not in CONFOUNDS] + [name for name in names if name in CONFOUNDS]


def probe_panels(table: pd.DataFrame) -> Figure:
    """One panel a label: value with its interval for each feature set and probe, chance, and the negative control."""
    labels = probed_labels(table)
    n_rows = -(-len(labels) // 3)
    figure = new_figure(0.6 + 2.9 * n_rows)
    axes = figure.subplots(n_rows, 3, squeeze=False, sharey=True).ravel()
    found = list(dict.fromkeys(table["features"]))
    features = [name for name in FEATURES if name in found] + [name for name in found if name not in FEATURES]
    for ax, label in zip(axes, labels, strict=False):
        _panel(ax, pd.DataFrame(table[table["label"] == label]), features)
        title = f"confound: {label}" if label in CONFOUNDS else label
        ax.set_title(title, fontsize=10.5, loc="left", color=MARKED if label in CONFOUNDS else "black")
    for ax in axes[len(labels) :]:
        ax.set_axis_off()
    handles = [
        Line2D([], [], color=c, marker=m, label=f"{name.replace('_', ' ')}, 95 % interval")
        for name, (m, c, _) in PROBES.items()
        if name in set(table["probe"])
    ]
    handles.append(Line2D([], [], color=DARK, marker="x", linestyle="", label="its negative control"))
    handles.append(Line2D([], [], color=DARK, linestyle="--", linewidth=1, label="chance"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, features: list[str]) -> None:
    tidy(ax)
    ax.axhspan(-0.5, 0.5, color="#EEF5FA", zorder=0)
    for row in records(rows):
        if pd.isna(row["value"]):
            continue
        marker, colour, offset = PROBES[row["probe"]]
        y = features.index(row["features"]) + offset
        ax.plot([row["ci_low"], row["ci_high"]], [y, y], color=colour, linewidth=1.8, solid_capstyle="butt")
        below = row["value"] < LOWEST_SHOWN
        x, shape = (LOWEST_SHOWN, "<") if below else (row["value"], marker)
        ax.plot(x, y, color=colour, marker=shape, markersize=5, linestyle="")
        ax.plot(row["control"], y, color=DARK, marker="x", markersize=5, linestyle="", markeredgewidth=1)
    ax.axvline(rows["chance"].dropna().iloc[0], color=DARK, linestyle="--", linewidth=1)
    ax.set_yticks(range(len(features)), [FEATURES.get(name, name) for name in features])
    ax.set_ylim(len(features) - 0.5, -0.5)
    low = np.nanmin(rows[["value", "ci_low", "control", "chance"]].to_numpy(float))
    high = np.nanmax(rows[["value", "ci_high", "control", "chance"]].to_numpy(float))
    low, margin = max(low, LOWEST_SHOWN), 0.05
    ax.set_xlim(low - margin, min(high, 1.0) + margin)
    ax.set_xlabel(str(rows["metric"].dropna().iloc[0]).replace("_", " "), fontsize=9)
