"""A recording before anything is made of it: what cannot be used is refused, what cannot be trusted is not known.

Letters: T frames, N agents, P body parts, D axes, C columns.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Float64, Int, Shaped

from data_gen.ingest.recording import Layout, Recording
from data_gen.ingest.tally import measured
from data_gen.trajectory import InputError


class Cleaned(NamedTuple):
    """`recording` with NaN where nothing is known, and `jumps`: how many teleports each agent made up to each frame."""

    recording: Recording
    jumps: Int[np.ndarray, "T N"]
    lines: tuple[str, ...]


def check_recording(recording: Recording) -> None:
    """Raise InputError where frames are not in order of time, or two agents have one name."""
    where, time = f"{recording.file}: recording {recording.name!r}", recording.time
    if not len(time):
        raise InputError(f"{where} has no frame. Leave it out of the source.")
    wrong = np.flatnonzero(~np.isfinite(time))
    if len(wrong):
        raise InputError(f"{where}: the time of frame {wrong[0]} is {time[wrong[0]]}. Repair the stamps.")
    wrong = np.flatnonzero(np.diff(time) <= 0)
    if len(wrong):
        at = int(wrong[0])
        raise InputError(
            f"{where}: frame {at + 1} has time {time[at + 1]:g} after {time[at]:g}, and {len(wrong)} frame(s) in all "
            f"do not come later than the one before. Sort the frames, and keep one of each time."
        )
    twice = [name for name in recording.agents if recording.agents.count(name) > 1]
    if twice:
        raise InputError(f"{where} has agent {twice[0]!r} more than once. Rename all but one.")


def column_names(layout: Layout) -> tuple[str, ...]:
    """Names of the measured columns: places by part and axis, then features."""
    return (*place_names(layout.parts, layout.axes), *layout.features)


def place_names(parts: tuple[str, ...], axes: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the columns of places; a single part is not named."""
    return tuple(f"{part} {axis}" if len(parts) > 1 else axis for part in parts for axis in axes)


def all_known(values: Float[np.ndarray, "T N D"]) -> Bool[np.ndarray, "T N"]:
    """Where every number is finite. Column by column, since NumPy is slow in sums over a short last axis."""
    known = np.ones(values.shape[:2], bool)
    for column in range(values.shape[2]):
        known &= np.isfinite(values[..., column])
    return known


def clean(recording: Recording, layout: Layout, speed: float) -> Cleaned:
    """Values of absent agents and those on both sides of a teleport become NaN.

    A teleport is a step of any body part, from one measurement to the next, that is faster than `speed` (0: none is).
    Both sides go, since nothing says which of them is wrong: after a swap of two agents both places are right and the
    way between them is not.
    """
    position, features = _known(recording.position, recording.present), _known(recording.features, recording.present)
    whole = position is recording.position and features is recording.features
    lines = () if whole else _missing(position, features, recording, layout)
    jumps = np.zeros(recording.present.shape, int)
    if speed:
        arrive, leave = _teleports(position, recording.time, speed)
        lines += _too_fast(recording, arrive, speed)
        stayed, jumps = ~(arrive | leave), np.cumsum(arrive, axis=0)
        position, features = _known(position, stayed), _known(features, stayed)
    return Cleaned(recording._replace(position=position, features=features), jumps, lines)


def _known(values: Float32[np.ndarray, "T N ..."], there: Bool[np.ndarray, "T N"]) -> Float32[np.ndarray, "T N ..."]:
    """The values, NaN for agents that are not there and for what is infinite."""
    nan = np.float32(np.nan)
    return only_where(there, only_where(np.isfinite(values), values, nan), nan)


def only_where(
    mask: Bool[np.ndarray, "..."], values: Shaped[np.ndarray, "..."], otherwise: int | np.floating
) -> Shaped[np.ndarray, "..."]:
    """The values, and something else outside the mask of their first axes; themselves where that is nowhere."""
    if mask.all():
        return values
    return np.where(mask.reshape(*mask.shape, *[1] * (values.ndim - mask.ndim)), values, otherwise)


def _teleports(
    position: np.ndarray, time: Float64[np.ndarray, " T"], speed: float
) -> tuple[Bool[np.ndarray, "T N"], Bool[np.ndarray, "T N"]]:
    """Frames that an agent reaches by a teleport, and those that it leaves by one."""
    arrive, leave = (np.zeros(position.shape[:2], bool) for _ in range(2))
    for n, p in np.ndindex(position.shape[1:3]):
        path = position[:, n, p].astype(np.float64)
        frames = np.flatnonzero(np.isfinite(path).all(-1))
        way = np.linalg.norm(np.diff(path[frames], axis=0), axis=-1)
        fast = np.flatnonzero(way > speed * np.diff(time[frames]))
        leave[frames[fast], n] = True
        arrive[frames[fast + 1], n] = True
    return arrive, leave


def _too_fast(recording: Recording, arrive: Bool[np.ndarray, "T N"], speed: float) -> tuple[str, ...]:
    found = np.argwhere(arrive)
    if not len(found):
        return ()
    t, n = found[0]
    return (
        f"{len(found)} step(s) of an agent faster than {speed:g}, the first to time {recording.time[t]:g} by agent "
        f"{recording.agents[n]!r}; the agent is masked on both sides",
    )


def _missing(position: np.ndarray, features: np.ndarray, recording: Recording, layout: Layout) -> tuple[str, ...]:
    """What is not measured of agents that are there."""
    known = np.isfinite(measured(recording._replace(position=position, features=features)))
    lost, there = (~known & recording.present[..., None]).sum(0), recording.present.sum(0)
    names = column_names(layout)
    lines = [
        f"agent {recording.agents[n]!r} has no {names[c]!r} in any frame, so that none of its steps can be used; leave "
        f"out the column or the agent"
        for n, c in np.argwhere((lost == there[:, None]) & (there[:, None] > 0))
    ]
    if lost.any():
        counts = ", ".join(f"{name!r} {count}" for name, count in zip(names, lost.sum(0), strict=True) if count)
        lines.append(f"{lost.sum()} value(s) of agents that are there are missing: {counts}")
    return tuple(lines)
