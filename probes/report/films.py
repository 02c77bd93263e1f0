"""Film strips: a few frames of a few episodes, drawn elsewhere. K episodes, F frames of each, Nu actuators."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from data_gen.trajectory import Dataset
from probes.report.episodes import Picked, pick_episodes
from probes.report.figures import DARK, WIDTH, new_figure
from probes.report.figures_plane import agent_colour
from probes.report.page import Section

FRAMES = 8
GAP = 0.03  # between frames, in widths of a frame


class Shots(NamedTuple):
    """Which steps of which rows are to be drawn. Steps repeat where an episode has fewer than F."""

    rows: Int[np.ndarray, " K"]
    steps: Int[np.ndarray, "K F"]
    titles: tuple[str, ...]


class Films(NamedTuple):
    """`metres` is the way forward since the episode's start. Where nothing could be drawn, K is 0 and `absent` why."""

    images: UInt8[np.ndarray, "K F H W 3"]
    titles: tuple[str, ...]
    seconds: Float[np.ndarray, "K F"]
    metres: Float[np.ndarray, "K F"]
    absent: str = ""


def no_films(reason: str) -> Films:
    """Nothing, for this reason."""
    return Films(np.zeros((0, 0, 1, 1, 3), np.uint8), (), np.zeros((0, 0)), np.zeros((0, 0)), absent=reason)


def pick_films(dataset: Dataset) -> Shots:
    """Shots of the episodes of `pick_episodes`."""
    return shots_of(dataset, pick_episodes(dataset))


def shots_of(dataset: Dataset, picked: Sequence[Picked]) -> Shots:
    """FRAMES steps of each episode from the first real one to the last, evenly apart."""
    present = np.asarray(np.any(dataset.batch.mask, axis=2))
    steps = []
    for episode in picked:
        real = np.flatnonzero(present[episode.row])
        steps.append(real[np.linspace(0, len(real) - 1, FRAMES).round().astype(int)])
    ended = np.asarray(np.any(dataset.outcomes.terminated & present, axis=1))
    return Shots(
        rows=np.array([episode.row for episode in picked]),
        steps=np.stack(steps),
        titles=tuple(f"{title}, terminated" if ended[row] else title for row, title in picked),
    )


def paint_of(owners: Int[np.ndarray, " Nu"]) -> Float[np.ndarray, "Nu 3"]:
    """The report's colour, RGB in 0..1, of the agent that drives each actuator."""
    return np.array([to_rgb(agent_colour(agent)) for agent in owners.tolist()])


def film_strips(films: Films, n_agents: int) -> Figure:
    """One strip an episode: frames from left to right, the time and the way forward under each."""
    height, width = films.images.shape[2:4]
    across = films.images.shape[1] * (1 + GAP) - GAP
    figure = new_figure(0.4 + len(films.titles) * (WIDTH / across * height / width + 0.5))
    axes = figure.subplots(len(films.titles), 1, squeeze=False).ravel()
    for number, ax in enumerate(axes):
        _draw_strip(ax, films, number)
    handles = [Line2D([], [], color=agent_colour(i), linewidth=5, label=f"agent {i}") for i in range(n_agents)]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(8, n_agents), frameon=False, fontsize=9)
    return figure


def _draw_strip(ax: Axes, films: Films, number: int) -> None:
    images, seconds, metres = films.images[number], films.seconds[number], films.metres[number]
    tall = images.shape[1] / images.shape[2]
    shown = np.unique(seconds, return_index=True)[1].tolist()  # a step that repeats is drawn once
    for place, frame in enumerate(shown):
        left = place * (1 + GAP)
        ax.imshow(images[frame], extent=(left, left + 1, 0, tall))
        under = f"{seconds[frame]:.2f} s · {metres[frame].round(1) + 0.0:.1f} m"  # + 0 so that −0 is 0
        ax.text(left + 0.5, -0.03, under, ha="center", va="top", fontsize=8.5, color=DARK)
    ax.set_xlim(0, len(images) * (1 + GAP) - GAP)
    ax.set_ylim(-0.16, tall)
    ax.set_title(films.titles[number], fontsize=10, loc="left", pad=3)
    ax.set_axis_off()


def film_section(films: Films, n_agents: int) -> Section:
    """Film strips of what the agents do, or why there are none."""
    return Section(
        name="films",
        title="What the agents do",
        caption="Episodes of the first and of the last checkpoint with low, median and high return among that "
        "checkpoint's (5th, 50th and 95th percentile); a group is a training seed. Limbs have the colour of the agent "
        "that drives them. Under each frame stand its time and the way forward since the start: the camera goes along, "
        "and the floor's pattern repeats. They are single episodes of single training seeds: do not take one for its "
        "checkpoint, let alone for the body. Between two frames many steps are left out, so do not read a gait or its "
        "speed from them.",
        figure=film_strips(films, n_agents) if len(films.titles) else None,
        absent=films.absent,
    )
