"""A recording on a regular grid of steps: resampled to one rate, short gaps filled, nothing made up across long ones.

Letters: S frames, T steps, N agents, P body parts, D axes, F features, C columns.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from data_gen.ingest.clean import Cleaned, only_where
from data_gen.ingest.recording import Layout, Recording
from data_gen.trajectory import InputError

# Stamps are often rounded: where every one is this near to a step (in steps), the frames are the steps.
ROUNDED = 0.1
SAME = 1e-6  # in steps: what rounding of sums and products may do
# Measurements this many of the recording's own intervals apart are neighbours: no frame is missing between them.
NEXT = 1.5
# More steps than this to a frame, or to a frame of the whole recording, and the unit of time is surely wrong.
MOST_STEPS, MOST_SPAN = 4, 1000


class Grid(NamedTuple):
    """Where frames lie on the steps 0..`n`-1, which are `rate` to a unit of time; `interval` is the usual distance of
    two frames and `reach` the largest over which measurements are interpolated, all in steps."""

    at: Float64[np.ndarray, " S"]
    n: int
    rate: float
    interval: float
    reach: float

    @property
    def is_frames(self) -> bool:
        """Whether every step is a frame."""
        return len(self.at) == self.n and bool((self.at == np.arange(self.n)).all())


class Track(NamedTuple):
    """A recording by steps, NaN (or -1 for a class or a choice) where nothing is known. `jumps` counts teleports.

    `team` is the mean reward of the agents that are there; `filled` says where a value was interpolated over missing
    frames.
    """

    present: Bool[np.ndarray, "T N"]
    position: Float[np.ndarray, "T N P D"]
    features: Float[np.ndarray, "T N F"]
    actions: Shaped[np.ndarray, "T N ..."]
    rewards: Float64[np.ndarray, "T N"]
    team: Float64[np.ndarray, " T"]
    labels: Mapping[str, Shaped[np.ndarray, "..."]]
    jumps: Int[np.ndarray, "T N"]
    filled: Bool[np.ndarray, "T N"]


class Bracket(NamedTuple):
    """The frames between which each step lies: `left` and `right` (the same on a frame), and how far it is to `right`.

    `joined` says whether the two may be interpolated, `far` whether frames are missing between them.
    """

    left: Int[np.ndarray, " T"]
    right: Int[np.ndarray, " T"]
    weight: Float64[np.ndarray, " T"]
    joined: Bool[np.ndarray, " T"]
    far: Bool[np.ndarray, " T"]


def grid_of(recording: Recording, layout: Layout, rate: float, gap: float) -> Grid:
    """The steps of a recording at `rate` (0: the layout's, or a step a frame), the first at its first frame.

    `gap` is in the unit of time. Raises InputError where frames are so far apart that the unit must be wrong.
    """
    rate, time = rate or layout.rate or 1.0, recording.time - recording.time[0]
    interval = float(np.median(np.diff(time))) * rate if len(time) > 1 else 1.0
    where = f"{recording.file}: recording {recording.name!r}"
    if not rate_is_plausible(interval, layout.rate):
        unit = "second" if layout.rate else "frame number"
        raise InputError(
            f"{where}: frames are {interval / rate:g} {unit}(s) apart, but there are to be {rate:g} steps a {unit}. "
            f"Correct the unit of time, or set treatment.rate={rate / interval:g}."
        )
    if time[-1] * rate > MOST_SPAN * (len(time) + 1):
        raise InputError(
            f"{where}: its {len(time)} frames span {time[-1]:g} units of time, or {time[-1] * rate:.0f} steps. Correct "
            f"the stamps, or make two recordings of it."
        )
    at = _snapped(time * rate)
    reach = max(NEXT * interval, interval + gap * rate) + SAME
    return Grid(at=at, n=int(at[-1]) + 1, rate=rate, interval=interval, reach=reach)


def rate_is_plausible(interval: float, rate: float) -> bool:
    """Whether frames may be `interval` steps apart: where no rate is known, they are numbered one by one."""
    return interval <= (MOST_STEPS if rate else NEXT)


def _snapped(at: Float64[np.ndarray, " S"]) -> Float64[np.ndarray, " S"]:
    near = np.rint(at)
    if (np.abs(at - near) <= ROUNDED).all() and (np.diff(near) > 0).all():
        return near
    return np.where(np.abs(at - near) <= SAME, near, at)


def resample(cleaned: Cleaned, layout: Layout, grid: Grid) -> Track:
    """Measurements and continuous actions linearly between frames, choices and labels held from the frame before.

    Measurements are interpolated over missing frames as far as the grid reaches; actions and labels never are, since
    what nobody did or said must not be learned or tested. Rewards of the frames from one step to the next are summed.
    A value between two frames foresees the second; one that is on a frame foresees nothing.
    """
    recording, jumps = cleaned.recording, cleaned.jumps
    near = grid._replace(reach=NEXT * grid.interval + SAME)
    now, held = _last_frame(grid, near.reach)
    n_frames, n_agents, *parts = recording.position.shape
    places = recording.position.reshape(n_frames, n_agents, int(np.prod(parts)))
    (places, moved), (features, drawn) = (_interpolated(one, jumps, grid) for one in (places, recording.features))
    rewards = only_where(np.isfinite(recording.rewards), recording.rewards, np.float32(np.nan))
    rewards = only_where(recording.present, rewards, 0).astype(np.float64)
    team = rewards.sum(1) / np.maximum(recording.present.sum(1), 1)
    return Track(
        present=recording.present[now] & held[:, None],
        position=places.reshape(grid.n, n_agents, *parts),
        features=features,
        actions=_actions(recording, jumps, layout, near, now, held),
        rewards=_summed(rewards, grid),
        team=_summed(team, grid),
        labels={
            label.name: _held(recording.labels[label.name], now, held, label.kind)
            for label in layout.labels
            if label.scope.startswith("frame")
        },
        jumps=jumps[now],
        filled=moved | drawn,
    )


def _last_frame(grid: Grid, reach: float) -> tuple[Int[np.ndarray, " T"] | slice, Bool[np.ndarray, " T"]]:
    """The last frame up to each step, and whether what it says holds there: on it, or until the next within reach."""
    if grid.is_frames:
        return slice(None), np.ones(grid.n, bool)
    now = np.searchsorted(grid.at, np.arange(grid.n), side="right") - 1
    return now, (grid.at[now] == np.arange(grid.n)) | (np.append(np.diff(grid.at), np.inf)[now] <= reach)


def _interpolated(
    values: Float[np.ndarray, "S N C"], jumps: Int[np.ndarray, "S N"], grid: Grid
) -> tuple[Float[np.ndarray, "T N C"], Bool[np.ndarray, "T N"]]:
    """The values by steps, and where one of an agent's was interpolated over missing frames."""
    filled = np.zeros((grid.n, values.shape[1]), bool)
    if grid.is_frames and grid.reach < 2 * grid.interval:
        return values, filled
    known = np.isfinite(values)
    if grid.is_frames and known.all():
        return values, filled
    found = np.full((grid.n, *values.shape[1:]), np.nan)
    for n in range(values.shape[1]):
        for pattern in np.unique(known[:, n], axis=1).T:
            columns = (known[:, n] == pattern[:, None]).all(0)
            if pattern.any():
                found[:, n, columns], far = _between(values[:, n, columns], pattern, jumps[:, n], grid)
                filled[:, n] |= far
    return found, filled


def _between(
    values: Float[np.ndarray, "S C"], known: Bool[np.ndarray, " S"], jumps: Int[np.ndarray, " S"], grid: Grid
) -> tuple[Float64[np.ndarray, "T C"], Bool[np.ndarray, " T"]]:
    """x(t) = (1 - w) x_left + w x_right at each step, NaN where the two are too far apart; and where frames lacked."""
    bracket = _bracket(known, jumps, grid)
    left, right = (values[side].astype(np.float64) for side in (bracket.left, bracket.right))
    found = left + bracket.weight[:, None] * (right - left)
    return np.where(bracket.joined[:, None], found, np.nan), bracket.joined & bracket.far


def _bracket(known: Bool[np.ndarray, " S"], jumps: Int[np.ndarray, " S"], grid: Grid) -> Bracket:
    frames, steps = np.flatnonzero(known), np.arange(grid.n)
    at = grid.at[frames]
    before = np.searchsorted(at, steps, side="right") - 1
    after = np.searchsorted(at, steps, side="left")
    inside = (before >= 0) & (after < len(at))
    left, right = frames[np.maximum(before, 0)], frames[np.minimum(after, len(at) - 1)]
    apart = grid.at[right] - grid.at[left]
    return Bracket(
        left=left,
        right=right,
        weight=np.where(apart > 0, (steps - grid.at[left]) / np.where(apart > 0, apart, 1), 0.0),
        joined=inside & (apart <= grid.reach) & (jumps[left] == jumps[right]),
        far=apart > NEXT * grid.interval + SAME,
    )


def _actions(
    recording: Recording,
    jumps: Int[np.ndarray, "S N"],
    layout: Layout,
    near: Grid,
    now: Int[np.ndarray, " T"] | slice,
    held: Bool[np.ndarray, " T"],
) -> Shaped[np.ndarray, "T N ..."]:
    there = recording.present
    if layout.action.kind == "discrete":
        return _held(only_where(there, recording.actions, -1), now, held, "class")
    return _interpolated(only_where(there, recording.actions, np.float32(np.nan)), jumps, near)[0]


def _held(
    values: Shaped[np.ndarray, "S ..."],
    now: Int[np.ndarray, " T"] | slice,
    held: Bool[np.ndarray, " T"],
    kind: str,
) -> Shaped[np.ndarray, "T ..."]:
    """The value of the last frame, which is not known where the next frame is missing."""
    return only_where(held, values[now], -1 if kind == "class" else np.float32(np.nan))


def _summed(values: Float64[np.ndarray, "S ..."], grid: Grid) -> Float64[np.ndarray, "T ..."]:
    """What the frames from each step to the next add up to."""
    if grid.is_frames:
        return values
    found = np.zeros((grid.n, *values.shape[1:]))
    np.add.at(found, np.floor(grid.at + SAME).astype(int), values)
    return found


def describe_grid(recording: Recording, grid: Grid) -> tuple[str, ...]:
    """What became of the frames, where they are not the steps."""
    if grid.is_frames:
        return ()
    whole = (grid.at == np.rint(grid.at)).all()
    if whole and grid.interval < NEXT:
        return (f"{grid.n - len(grid.at)} of {grid.n} steps have no frame",)
    usual = grid.interval / grid.rate
    return (
        f"{len(grid.at)} frames, one every {usual:g}, are resampled to {grid.n} steps, one every {1 / grid.rate:g}",
    )
