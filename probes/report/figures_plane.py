"""Figures in two dimensions: the joint latent by its principal components, and agents' paths in their plane.

Letters: B episodes, T steps, N agents, Z latent, K picked episodes.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from data_gen.trajectory import Labels, LabelSpec
from probes.labels import class_name
from probes.report.figures import DARK, PALE, PALETTE, new_figure, tidy

COLUMNS = 3


class Plane(NamedTuple):
    """Rows projected on their first C principal components, and the share of variance that each explains."""

    points: Float[np.ndarray, "B C"]
    explained: Float[np.ndarray, " C"]


class Colour(NamedTuple):
    """What a panel is coloured by: class codes with their names, or numbers where `classes` is empty."""

    title: str
    values: np.ndarray
    classes: tuple[str, ...]


class Track(NamedTuple):
    """One episode in the plane; `present` is False where an agent was not there."""

    title: str
    xy: Float[np.ndarray, "T N 2"]
    present: Bool[np.ndarray, "T N"]


def project(z: Float[np.ndarray, "B Z"], n_components: int = 2) -> Plane:
    """Principal components by the singular values of the centred rows; axes of zeros where Z is smaller."""
    centred = z.astype(np.float64) - z.mean(0, dtype=np.float64)
    left, scale, right = np.linalg.svd(centred, full_matrices=False)
    # A component's sign is arbitrary: the largest loading points up, so that a run gives one picture.
    signs = np.sign(right[np.arange(len(right)), abs(right).argmax(1)])
    total = max((scale**2).sum(), np.finfo(float).tiny)
    points, explained = np.zeros((len(z), n_components)), np.zeros(n_components)
    k = min(n_components, len(scale))
    points[:, :k] = left[:, :k] * scale[:k] * signs[:k]
    explained[:k] = scale[:k] ** 2 / total
    return Plane(points=points, explained=explained)


def colours_of(labels: Labels) -> list[Colour]:
    """One colouring a label, and one an agent where each agent has its own; quantile labels show their source."""
    return [colour for spec in labels.specs for colour in _colours(spec, labels.values[spec.source])]


def _colours(spec: LabelSpec, values: np.ndarray) -> list[Colour]:
    title, classes = spec.name, ()
    if spec.kind == "class":
        codes = np.unique(values).astype(int)
        classes = tuple(class_name(spec, code) for code in codes.tolist())
        values = np.searchsorted(codes, values)
    elif spec.name != spec.source:
        title = f"{spec.source} ({spec.name})"
    if values.ndim == 1:
        return [Colour(title, values, classes)]
    return [Colour(f"{title}, agent {agent}", column, classes) for agent, column in enumerate(values.T)]


def in_order(classes: tuple[str, ...]) -> bool:
    """True where the names are one word followed by growing numbers, as in "checkpoint 0", "checkpoint 1"."""
    parts = [re.fullmatch(r"(.*?)(\d+)", name) for name in classes]
    found = [(part[1], int(part[2])) for part in parts if part]
    words, numbers = {word for word, _ in found}, [number for _, number in found]
    return len(found) == len(classes) > 2 and len(words) == 1 and numbers == sorted(numbers)


def latent_maps(plane: Plane, colours: Sequence[Colour]) -> Figure:
    """The rows' first two principal components, one panel a colouring."""
    n_rows = -(-len(colours) // COLUMNS)
    figure = new_figure(0.2 + 2.9 * n_rows)
    axes = figure.subplots(n_rows, COLUMNS, squeeze=False, sharex=True, sharey=True)
    order = np.random.default_rng(0).permutation(len(plane.points))  # no class is drawn on top of all others
    for ax, colour in zip(axes.ravel(), colours, strict=False):
        tidy(ax)
        ax.set_title(colour.title, fontsize=10.5, loc="left")
        if colour.classes:
            _scatter_classes(ax, plane.points[order], colour.values[order], colour.classes)
        else:
            _scatter_numbers(figure, ax, plane.points[order], colour.values[order])
    for ax in axes.ravel()[len(colours) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel(f"PC 2 ({plane.explained[1]:.0%} of variance)", fontsize=9)
    for column in range(min(COLUMNS, len(colours))):
        last = (len(colours) - 1 - column) // COLUMNS
        axes[last, column].set_xlabel(f"PC 1 ({plane.explained[0]:.0%} of variance)", fontsize=9)
        axes[last, column].tick_params(labelbottom=True)
    return figure


def class_colours(codes: Int[np.ndarray, " B"], classes: tuple[str, ...]) -> tuple[list[Any], list[str]]:
    """A colour for each class, and the legend's names: viridis in order, else the palette for the most frequent."""
    if in_order(classes):
        return list(colormaps["viridis"](np.linspace(0, 0.95, len(classes)))), list(classes)
    return frequent_colours(codes, classes)


def frequent_colours(codes: Int[np.ndarray, " B"], classes: tuple[str, ...]) -> tuple[list[Any], list[str]]:
    """The palette for the most frequent classes; the others are pale, and their names empty."""
    frequent = np.argsort(-np.bincount(codes, minlength=len(classes)), kind="stable")[: len(PALETTE)]
    kept = dict(zip(sorted(frequent.tolist()), PALETTE, strict=False))
    names = [name if code in kept else "" for code, name in enumerate(classes)]
    return [kept.get(code, PALE) for code in range(len(classes))], names


def _scatter_classes(ax: Axes, points: np.ndarray, codes: np.ndarray, classes: tuple[str, ...]) -> None:
    colours, names = class_colours(codes, classes)
    ax.scatter(*points.T, s=5, c=[colours[code] for code in codes], alpha=0.65, linewidths=0)
    shown = [(colour, name) for colour, name in zip(colours, names, strict=True) if name]
    if len(shown) < len(classes):
        shown.append((PALE, f"other ({len(classes) - len(shown)})"))
    handles = [Line2D([], [], color=c, marker="o", linestyle="", markersize=5, label=name) for c, name in shown]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1.03), frameon=False, fontsize=8, handletextpad=0.1)


def _scatter_numbers(figure: Figure, ax: Axes, points: np.ndarray, values: np.ndarray) -> None:
    real = np.isfinite(values)
    low, high = np.percentile(values[real], [2, 98]) if real.any() else (0, 1)
    norm = Normalize(low, high)
    ax.scatter(*points[real].T, s=5, c=values[real], cmap="viridis", norm=norm, alpha=0.65, linewidths=0)
    bar = figure.colorbar(ScalarMappable(norm, "viridis"), ax=ax, extend="both", aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)


def tracks(picked: Sequence[Track], landmarks: Sequence[dict[str, Any]], n_columns: int) -> Figure:
    """Agents' paths, a colour an agent, hollow at the start and filled at the end, over the landmarks."""
    n_rows = -(-len(picked) // n_columns)
    figure = new_figure(0.5 + 3.5 * n_rows)
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True).ravel()
    for ax, track in zip(axes, picked, strict=False):
        tidy(ax)
        _draw_landmarks(ax, landmarks)
        _draw_track(ax, track)
        ax.set_title(track.title, fontsize=10, loc="left")
        ax.set_aspect("equal")
    for ax in axes[len(picked) :]:
        ax.set_axis_off()
    n_agents = picked[0].xy.shape[1]
    handles = [Line2D([], [], color=agent_colour(i), linewidth=2, label=f"agent {i}") for i in range(n_agents)]
    for name, face in (("start", "white"), ("end", DARK)):
        handles.append(Line2D([], [], color=DARK, marker="o", markerfacecolor=face, linestyle="", label=name))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(8, len(handles)), frameon=False, fontsize=9)
    return figure


def agent_colour(agent: int) -> str:
    """The palette in turn."""
    return PALETTE[agent % len(PALETTE)]


def _draw_landmarks(ax: Axes, landmarks: Sequence[dict[str, Any]]) -> None:
    heights = [mark.get("height", 1.0) for mark in landmarks]
    for mark, height in zip(landmarks, heights, strict=True):
        strength = abs(height) / (max(map(abs, heights)) or 1.0)
        centre, radius = (mark["x"], mark["y"]), mark["radius"]
        for share in (1.0, 0.66, 0.33):
            face = (0.45, 0.45, 0.45, 0.12 * strength)
            ax.add_patch(Circle(centre, radius * share, facecolor=face, edgecolor="#BBBBBB", linewidth=0.6, zorder=1))
        text = f"{mark['name']}: {height:g}" if len(set(heights)) > 1 else str(mark["name"])
        ax.annotate(text, (mark["x"], mark["y"] + radius), ha="center", va="bottom", fontsize=8, color="#777777")


def _draw_track(ax: Axes, track: Track) -> None:
    shown = np.where(track.present[..., None], track.xy, np.nan)  # a line breaks where the agent was not there
    for agent in range(shown.shape[1]):
        seen = np.flatnonzero(track.present[:, agent])
        if not seen.size:
            continue
        colour = agent_colour(agent)
        ax.plot(*shown[:, agent].T, color=colour, linewidth=1.6, marker=".", markersize=3, zorder=3)
        for step, face in ((seen[0], "white"), (seen[-1], colour)):
            ax.plot(*shown[step, agent], color=colour, marker="o", markersize=6, markerfacecolor=face, zorder=4)
