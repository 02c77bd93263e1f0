"""DeepLabCut's tables of poses, .csv and .h5: columns (scorer, [individuals,] bodyparts, coords), one row a frame.

Coords are x, y (and z after triangulation) and likelihood.
Letters: T frames, N animals, P body parts, D axes, C columns.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from data_gen.ingest.readers.hdf5 import opened
from data_gen.ingest.readers.number_table import read_lines, read_numbers
from data_gen.ingest.readers.pandas_hdf5 import find_table, read_table
from data_gen.ingest.readers.tracking import (
    Scored,
    check_axes,
    check_versions,
    files_of,
    group_of,
    layout_of,
    likely,
    recording_of,
    same_parts,
)
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError

SUFFIXES = (".csv", ".h5")
AXES = ("x", "y", "z")
LIKELIHOOD = "likelihood"
# The header rows of a .csv, named in the first column; single animals have no individuals.
ROWS = (("scorer", "bodyparts", "coords"), ("scorer", "individuals", "bodyparts", "coords"))
# What DeepLabCut calls the owner of parts that no animal has, such as corners of the arena.
NOBODY = "single"
ONE = "animal"


class Header(NamedTuple):
    """The columns of a file as (individual, body part, coordinate), and the rows above the values."""

    columns: tuple[tuple[str, str, str], ...]
    rows: int

    def values(self, level: int) -> list[str]:
        """The names on a level, each once, in the order of the file."""
        return list(dict.fromkeys(column[level] for column in self.columns))


class DeepLabCutReader:
    """Each file is a recording; a table of one animal is a recording of one agent."""

    def __init__(self, path: str | Path, settings: Scored) -> None:
        self.settings = settings
        self.files = files_of(path, settings, SUFFIXES)
        check_versions(self.files, "_filtered")
        parts: list[str] = []
        axes: tuple[str, ...] = ()
        first = next(iter(self.files.values()))
        for file in self.files.values():
            here, own = _animals(_header(file))[1], _axes(_header(file), settings, file)
            parts, axes = parts or here, axes or own
            same_parts(here, parts, file, first)
            if own != axes:
                raise InputError(f"{file} has the axes {own} and {first} {axes}. Read them as two sources.")
        self.layout = layout_of(
            "deeplabcut", settings, parts, axes, provenance={"least_likelihood": settings.least_likelihood}
        )

    def recordings(self) -> Iterator[Recording]:
        """See `Reader`."""
        for name, file in self.files.items():
            yield self._recording(name, file)

    def _recording(self, name: str, file: Path) -> Recording:
        frames, values, header, told = _read(file)
        animals, parts = _animals(header)
        if NOBODY in header.values(0) and NOBODY not in animals:
            told += (f"the parts of {NOBODY!r}, which are of no animal, are left out",)
        at = {column: number for number, column in enumerate(header.columns)}
        placed = [[[at.get((n, p, d)) for d in self.layout.axes] for p in self.layout.parts] for n in animals]
        position = _gather(values, placed)
        if self.settings.least_likelihood:
            scores = [[[at.get((n, p, LIKELIHOOD))] for p in self.layout.parts] for n in animals]
            position, below = likely(position, _gather(values, scores)[..., 0], self.settings.least_likelihood)
            told += below
        return recording_of(
            position,
            name=name,
            group=group_of(name, self.settings, str(file)),
            file=str(file),
            agents=animals,
            layout=self.layout,
            settings=self.settings,
            frames=frames,
            dropped=told,
        )


def _gather(values: Float64[np.ndarray, "T C"], at: Sequence) -> Float64[np.ndarray, "T N P D"]:
    """The columns at the given places; NaN where an animal does not have that part."""
    places = np.array([[[-1 if d is None else d for d in part] for part in animal] for animal in at])
    return np.where(places >= 0, values[:, places], np.nan)


def _read(file: Path) -> tuple[Float64[np.ndarray, " T"], Float64[np.ndarray, "T C"], Header, tuple[str, ...]]:
    if file.suffix.lower() == ".h5":
        with opened(file) as found:
            blocks, told = find_table(found, file), ()
            header = _header_of(blocks.columns, file, 0)
            frames, values = read_table(blocks, file)
    else:
        header = _header(file)
        values, told = read_numbers(file, ["frame", *("/".join(c) for c in header.columns)], header.rows, ",")
        frames, values = values[:, 0], values[:, 1:]
    _check_frames(frames, file)
    return frames, values, header, told


def _header(file: Path) -> Header:
    """The columns of a file, from its first rows; InputError where they are not those of DeepLabCut."""
    if file.suffix.lower() == ".h5":
        with opened(file) as found:
            blocks = find_table(found, file)
            check_axes(blocks.rows, 1, 1, str(file))
            return _header_of(blocks.columns, file, 0)
    lines = [line.split(",") for line in read_lines(file, 5)]
    for rows in ROWS:
        head = lines[: len(rows)]
        if tuple(line[0] for line in head) == rows:
            if len({len(line) for line in head}) > 1:
                raise InputError(f"{file}: the {len(rows)} header rows have {[len(line) for line in head]} columns.")
            check_axes(len(lines) - len(rows), 1, 1, str(file))
            return _header_of(tuple(zip(*(line[1:] for line in head), strict=True)), file, len(rows))
    raise InputError(
        f"{file}: the first column begins with {[line[0][:20] for line in lines[:4]]}; DeepLabCut's with scorer, "
        f"individuals (where there are several), bodyparts, coords. Choose its files with files=."
    )


def _header_of(columns: Sequence[tuple[str, ...]], file: Path, rows: int) -> Header:
    levels = {len(column) for column in columns}
    if not levels or not levels <= {3, 4} or len(levels) > 1:
        raise InputError(
            f"{file}: the columns have {sorted(levels)} levels; DeepLabCut's have 3, or 4 with individuals."
        )
    named = [column[1:] if len(column) == 4 else (ONE, *column[1:]) for column in columns]
    found = Header(columns=tuple((str(n), str(p), str(c)) for n, p, c in named), rows=rows)
    if unknown := set(found.values(2)) - {*AXES, LIKELIHOOD}:
        raise InputError(f"{file}: the last header row has {sorted(unknown)[0]!r}; it may have x, y, z and likelihood.")
    if len(set(found.columns)) < len(found.columns):
        twice = next(column for column in found.columns if found.columns.count(column) > 1)
        raise InputError(f"{file}: the column {'/'.join(twice)} stands there twice, of two scorers perhaps. Keep one.")
    return found


def _animals(header: Header) -> tuple[list[str], list[str]]:
    """The individuals that are animals, and their body parts."""
    named = header.values(0)
    animals = [name for name in named if name != NOBODY] or named
    return animals, list(dict.fromkeys(part for name, part, _ in header.columns if name in animals))


def _axes(header: Header, settings: Scored, file: Path) -> tuple[str, ...]:
    """The axes of the file; InputError where a part lacks one, or the likelihood that the settings ask for."""
    kinds = header.values(2)
    axes = tuple(axis for axis in AXES if axis in kinds)
    needed = (*axes, LIKELIHOOD) if settings.least_likelihood else axes
    if axes[:2] != ("x", "y"):
        raise InputError(f"{file} has the coordinates {kinds}; it must have x and y.")
    known = set(header.columns)
    for name, part in dict.fromkeys(column[:2] for column in header.columns):
        for kind in needed:
            if (name, part, kind) not in known:
                raise InputError(f"{file}: {part} of {name} has no {kind}. Mend the header, or set least_likelihood=0.")
    return axes


def _check_frames(frames: Float64[np.ndarray, " T"], file: Path) -> None:
    """Raise InputError where rows are not numbered by frame, each once and in order."""
    wrong = np.flatnonzero(np.isnan(frames) | (frames != np.floor(frames)) | (frames < 0))
    if len(wrong):
        raise InputError(
            f"{file}: row {wrong[0]} has the frame {frames[wrong[0]]}; frames are whole numbers from 0 on."
        )
    wrong = np.flatnonzero(np.diff(frames) <= 0)
    if len(wrong):
        t = wrong[0] + 1
        raise InputError(
            f"{file}: row {t} is frame {frames[t]:.0f} and the row above it frame {frames[t - 1]:.0f}. Sort them by "
            f"frame, each once."
        )
