"""SLEAP's analysis files: HDF5 with tracks (tracks, 2, nodes, frames), as SLEAP writes them for MATLAB.

sleap-io writes other orders as well and names the axes in an attribute `dims` of tracks. Letters: T frames, N tracks,
P nodes, D axes.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
from jaxtyping import Float

from data_gen.ingest.readers.hdf5 import dataset, opened, texts
from data_gen.ingest.readers.tracking import (
    Scored,
    check_axes,
    files_of,
    group_of,
    layout_of,
    likely,
    recording_of,
    same_parts,
)
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError

SUFFIXES = (".h5", ".hdf5")
WANTED = ("frame", "track", "node", "xy")
MATLAB = ("track", "xy", "node", "frame")
# What SLEAP wrote with transpose=False, before axes were named.
PLAIN = ("frame", "node", "xy", "track")


class SleapReader:
    """Each file is a recording, and each track an animal."""

    def __init__(self, path: str | Path, settings: Scored) -> None:
        self.settings = settings
        self.files = files_of(path, settings, SUFFIXES)
        parts, first = None, next(iter(self.files.values()))
        for file in self.files.values():
            with opened(file) as found:
                here = _check(found, file)
            parts = here if parts is None else parts
            same_parts(here, parts, file, first)
        self.layout = layout_of(
            "sleap", settings, parts or (), ("x", "y"), provenance={"least_likelihood": settings.least_likelihood}
        )

    def recordings(self) -> Iterator[Recording]:
        """See `Reader`."""
        for name, file in self.files.items():
            yield self._recording(name, file)

    def _recording(self, name: str, file: Path) -> Recording:
        with opened(file) as found:
            parts, axes = _check(found, file), _axes(found, file)
            position = _ordered(found, "tracks", axes, WANTED, file)
            agents = _agents(found, position.shape[1], file)
            told = _occupied(found, position, file)
            if self.settings.least_likelihood:
                score = _ordered(found, "point_scores", [axis for axis in axes if axis != "xy"], WANTED[:3], file)
                if score.shape != position.shape[:3]:
                    raise InputError(f"{file}: point_scores have other sizes than tracks, {list(score.shape)}.")
                position, below = likely(position, score, self.settings.least_likelihood)
                told += below
        return recording_of(
            position[:, :, [parts.index(part) for part in self.layout.parts]],
            name=name,
            group=group_of(name, self.settings, str(file)),
            file=str(file),
            agents=agents,
            layout=self.layout,
            settings=self.settings,
            dropped=told,
        )


def _check(found: h5py.File, file: Path) -> list[str]:
    """The nodes; InputError where the file is not what SLEAP writes, or nothing was tracked."""
    tracks, parts = dataset(found, "tracks", file), texts(dataset(found, "node_names", file), file)
    if tracks.ndim != 4 or tracks.dtype.kind != "f":
        raise InputError(f"{file}: tracks are {tracks.dtype}{list(tracks.shape)}; they must be four axes of fractions.")
    size = dict(zip(_axes(found, file), tracks.shape, strict=True))
    check_axes(size["frame"], size["track"], size["node"], str(file))
    if size["xy"] != 2 or size["node"] != len(parts):
        raise InputError(
            f"{file}: tracks are {list(tracks.shape)}, read as {', '.join(size)}; there must be 2 axes of the plane "
            f"and {len(parts)} nodes, as in node_names."
        )
    if len(set(parts)) < len(parts):
        raise InputError(f"{file}: node_names names a node twice, {parts}.")
    return parts


def _axes(found: h5py.File, file: Path) -> tuple[str, ...]:
    """The names of the axes of tracks, in their order in the file."""
    named = found["tracks"].attrs.get("dims")
    if named is None:
        return MATLAB if found.attrs.get("transpose", True) else PLAIN
    try:
        axes = tuple(json.loads(named))
    except (ValueError, TypeError):
        axes = ()
    if sorted(axes, key=str) != sorted(WANTED):
        raise InputError(f"{file}: tracks names its axes {named!r}; they must be {', '.join(WANTED)} in any order.")
    return axes


def _ordered(
    found: h5py.File, name: str, axes: Sequence[str], wanted: Sequence[str], file: Path
) -> Float[np.ndarray, "..."]:
    values = dataset(found, name, file)
    if values.ndim != len(axes) or values.dtype.kind != "f":
        raise InputError(
            f"{file}: {name} are {values.dtype}{list(values.shape)}; they must be {len(axes)} axes of fractions."
        )
    return values[()].transpose([axes.index(axis) for axis in wanted])


def _agents(found: h5py.File, number: int, file: Path) -> list[str]:
    """The names of the tracks, numbered where they have none or share one."""
    names = texts(dataset(found, "track_names", file), file)
    if len(names) not in (0, number):
        raise InputError(f"{file}: track_names has {len(names)} names for {number} tracks.")
    known = len(set(names)) == number and all(names)
    return names if known else [f"track_{n}" for n in range(number)]


def _occupied(found: h5py.File, position: Float[np.ndarray, "T N P D"], file: Path) -> tuple[str, ...]:
    """What is to be told where SLEAP says that a track is there and no node has a place."""
    occupied = dataset(found, "track_occupancy", file)[()]
    if occupied.shape != position.shape[:2] and occupied.T.shape != position.shape[:2]:
        raise InputError(
            f"{file}: track_occupancy is {list(occupied.shape)}; tracks have {position.shape[0]} frames and "
            f"{position.shape[1]} tracks."
        )
    occupied = occupied if occupied.shape == position.shape[:2] else occupied.T
    empty = (occupied != 0) & np.isnan(position).all((2, 3))
    return (f"{empty.sum()} instances have no node with a place and are taken as missing",) if empty.any() else ()
