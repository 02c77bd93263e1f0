"""What an agent sees, in a frame of reference: the world's, its own, or relative to its teammates.

Letters: T steps, N agents, P body parts, D axes, F features, M teammates, K teammates that are seen, Do observation.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64

from data_gen.ingest.clean import all_known, place_names
from data_gen.ingest.recording import Layout
from data_gen.ingest.resample import Track

FRAMES = ("world", "egocentric", "teammates")


class Bodies(NamedTuple):
    """Where the agents are: their `place`, the mean of their parts (NaN unless all are known), and `linked`: whether
    an agent was there one step before too, without a teleport in between. `facing` is the direction that it faces."""

    place: Float64[np.ndarray, "T N D"]
    linked: Bool[np.ndarray, "T N"]
    facing: Float64[np.ndarray, "T N 2"] | None


def bodies_of(track: Track, frame: str, heading: tuple[int, int] | None) -> Bodies:
    """Places and, in the egocentric frame, headings: from one body part to the other, or else by the way gone."""
    n_parts = track.position.shape[2]
    place = track.position.sum(2, dtype=np.float64) / max(1, n_parts)
    there = all_known(place)
    linked = np.zeros_like(there)
    linked[1:] = there[1:] & there[:-1] & (track.jumps[1:] == track.jumps[:-1])
    facing = _facing(track, place, linked, heading) if frame == "egocentric" else None
    return Bodies(place, linked, facing)


def _facing(
    track: Track,
    place: Float64[np.ndarray, "T N D"],
    linked: Bool[np.ndarray, "T N"],
    heading: tuple[int, int] | None,
) -> Float64[np.ndarray, "T N 2"]:
    """u(t) = v(t) / |v(t)|, where v(t) is the way from t-1 to t, or from one part to the other at t.

    Where v is 0 the last direction is held, as long as the agent stays; before there is one, it is not known. Nothing
    after t is looked at.
    """
    if heading:
        ends = track.position[..., list(heading), :2].astype(np.float64)
        way = ends[:, :, 1] - ends[:, :, 0]
    else:
        way = np.zeros((*linked.shape, 2))
        way[1:] = np.where(linked[1:, :, None], place[1:, :, :2] - place[:-1, :, :2], 0)
    way = np.where(np.isfinite(place[..., :1]), np.nan_to_num(way), 0)
    length = np.linalg.norm(way, axis=-1)
    steps = np.arange(len(way))[:, None]
    turned = np.maximum.accumulate(np.where(length > 0, steps, -1), axis=0)
    came = np.maximum.accumulate(np.where(linked, -1, steps), axis=0)
    unit = np.divide(way, length[..., None], out=np.full(way.shape, np.nan), where=length[..., None] > 0)
    held = np.take_along_axis(unit, np.maximum(turned, 0)[..., None], axis=0)
    return np.where((turned >= came)[..., None], held, np.nan)


def turn(vectors: Float[np.ndarray, "T ... D"], facing: Float64[np.ndarray, "T 2"]) -> Float64[np.ndarray, "T ... D"]:
    """Vectors in the frame of an agent: the first axis is ahead, the second to its left, further ones are as they were.

    (x', y') = (c x + s y, -s x + c y) for a heading (c, s).
    """
    c, s = (facing[:, k].reshape(-1, *[1] * (vectors.ndim - 2)) for k in (0, 1))
    x, y = vectors[..., 0], vectors[..., 1]
    ahead, left = c * x + s * y, c * y - s * x
    return np.concatenate([ahead[..., None], left[..., None], vectors[..., 2:]], axis=-1)


def axes_in(layout: Layout, frame: str) -> tuple[str, ...]:
    """Names of the axes in a frame of reference."""
    return ("ahead", "left", *layout.axes[2:]) if frame == "egocentric" else layout.axes


def observation_names(layout: Layout, frame: str, n_seen: int) -> tuple[str, ...]:
    """Names of the columns that `observe` makes."""
    if frame == "world":
        return (*place_names(layout.parts, layout.axes), *layout.features)
    axes = axes_in(layout, frame)
    own = place_names(layout.parts, axes) if len(layout.parts) > 1 else ()
    seen = [name for k in range(n_seen) for name in (f"mate {k} there", *(f"mate {k} {axis}" for axis in axes))]
    return (*own, *layout.features, *seen)


def observe(track: Track, bodies: Bodies, frame: str, n_seen: int) -> Float[np.ndarray, "T N Do"]:
    """What each agent sees at each step, NaN where it is not known.

    World: all body parts where they are, then the features. Otherwise: the parts relative to the agent's own place
    (none where the place is all there is), the features, and the `n_seen` nearest teammates, each with 1 and its place
    relative to the agent's, or with zeros where there is none. Egocentric turns all of that to the agent's heading.
    Features are given as they are.
    """
    n_steps, n_agents = track.present.shape
    if frame == "world":
        return np.concatenate([track.position.reshape(n_steps, n_agents, -1), track.features], axis=2)
    seen = [_seen_by(n, track, bodies, n_seen) for n in range(n_agents)]
    return np.stack(seen, axis=1)


def _seen_by(n: int, track: Track, bodies: Bodies, n_seen: int) -> Float64[np.ndarray, "T Do"]:
    place, n_steps = bodies.place[:, n], len(bodies.place)
    parts = track.position[:, n].astype(np.float64) - place[:, None]
    mates, there = nearest(np.delete(bodies.place, n, axis=1) - place[:, None], n_seen)
    if bodies.facing is not None:
        parts, mates = turn(parts, bodies.facing[:, n]), turn(mates, bodies.facing[:, n])
    flagged = np.concatenate([there[..., None], np.where(there[..., None], mates, 0)], axis=-1)
    # Without a place of its own, or a heading, an agent sees nothing, also where there is no teammate to show it.
    known = np.asarray(np.isfinite(place).all(axis=-1))
    if bodies.facing is not None:
        known = known & np.isfinite(bodies.facing[:, n]).all(axis=-1)
    flagged = np.where(known[:, None, None], flagged, np.nan)
    own = parts if parts.shape[1] > 1 else parts[:, :0]
    seen = np.concatenate([own.reshape(n_steps, -1), track.features[:, n], flagged.reshape(n_steps, -1)], axis=1)
    return np.where(known[:, None], seen, np.nan)


def nearest(
    relative: Float64[np.ndarray, "T M D"], n_seen: int
) -> tuple[Float64[np.ndarray, "T K D"], Bool[np.ndarray, "T K"]]:
    """The `n_seen` nearest, and whether there are so many. Of two that are equally far, the one with the smaller first
    coordinate comes first, then the second, ...: two that are still alike show the same numbers in either order, so
    that the order in which agents are stored never matters.
    """
    there = all_known(relative)
    way = np.where(there[..., None], relative, 0)
    far = np.where(there, np.linalg.norm(way, axis=-1), np.inf)
    order = np.lexsort((*np.moveaxis(way, -1, 0)[::-1], far), axis=-1)[:, :n_seen]
    way = np.take_along_axis(way, order[..., None], axis=1)
    there = np.take_along_axis(there, order, axis=1)
    lacking = [(0, 0), (0, n_seen - order.shape[1])]
    return np.pad(way, [*lacking, (0, 0)]), np.pad(there, lacking)
