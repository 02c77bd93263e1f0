"""Running counts of what was measured, so that a survey needs one recording in memory. N slots, C columns, T frames."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int, Int64

from data_gen.ingest.order import role_of
from data_gen.ingest.recording import Layout, Recording

SHOWN = 20


class Lines(NamedTuple):
    """How many things were said, and the first of them."""

    count: int = 0
    first: tuple[str, ...] = ()


def more(lines: Lines, said: tuple[str, ...]) -> Lines:
    """The lines with further ones."""
    return Lines(lines.count + len(said), (*lines.first, *said)[:SHOWN])


class Tally(NamedTuple):
    """Of each slot: frames of the recordings that have it, frames in which its agent was there, and how many of those
    lack a column's value. Of each column: the range and the sum of the values that are there, NaN where there is none.
    """

    frames: Int64[np.ndarray, " N"]
    there: Int64[np.ndarray, " N"]
    missing: Int64[np.ndarray, "N C"]
    low: Float64[np.ndarray, " C"]
    high: Float64[np.ndarray, " C"]
    total: Float64[np.ndarray, " C"]


def empty(n_columns: int) -> Tally:
    """Nothing counted yet."""
    none, nan = np.zeros(0, np.int64), np.full(n_columns, np.nan)
    return Tally(none, none, np.zeros((0, n_columns), np.int64), low=nan, high=nan, total=np.zeros(n_columns))


def add(
    tally: Tally,
    slots: Int[np.ndarray, " n"],
    present: Bool[np.ndarray, "T n"],
    values: Float32[np.ndarray, "T n C"],
) -> Tally:
    """The tally with another recording; a value that is not finite is not there."""
    tally = _widened(tally, int(slots.max(initial=-1)) + 1)
    there = present.sum(0)
    tally.frames[slots] += len(present)
    tally.there[slots] += there
    columns = np.ascontiguousarray(np.moveaxis(values, 2, 0))  # NumPy is slow in sums over a short last axis
    seen = np.isfinite(columns) & present
    if not seen.all():
        tally.missing[slots] += there[:, None] - seen.sum(1).T
    least, most, zero = (columns if seen.all() else np.where(seen, columns, other) for other in (np.inf, -np.inf, 0))
    some = seen.any((1, 2))
    low = np.where(some, least.min((1, 2), initial=np.inf), np.nan)
    high = np.where(some, most.max((1, 2), initial=-np.inf), np.nan)
    total = tally.total + zero.sum((1, 2), dtype=np.float64)
    return tally._replace(low=np.fmin(tally.low, low), high=np.fmax(tally.high, high), total=total)


def mean_of(tally: Tally) -> Float64[np.ndarray, " C"]:
    """Mean of each column's values, NaN where there is none."""
    counts = tally.there.sum() - tally.missing.sum(0)
    return np.where(counts > 0, tally.total / np.maximum(counts, 1), np.nan)


def _widened(tally: Tally, n_slots: int) -> Tally:
    extra = max(0, n_slots - len(tally.frames))
    frames, there = (np.pad(one, (0, extra)) for one in (tally.frames, tally.there))
    return tally._replace(frames=frames, there=there, missing=np.pad(tally.missing, ((0, extra), (0, 0))))


def measured(recording: Recording) -> Float32[np.ndarray, "T N C"]:
    """The columns of `column_names`, side by side."""
    places = recording.position.reshape(*recording.present.shape, -1)
    return np.concatenate([places, recording.features], axis=2)


def slots_of(recording: Recording, layout: Layout) -> Int[np.ndarray, " N"]:
    """Where a recording's agents stand: in their role's place, or as they come where there are no roles.

    Raises InputError where an agent has no role.
    """
    if not layout.agents:
        return np.arange(len(recording.agents))
    return np.array([role_of(recording, layout, name) for name in recording.agents], int)
