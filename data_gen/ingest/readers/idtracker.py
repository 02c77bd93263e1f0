"""Text of idTracker (Pérez-Escudero et al., Nature Methods 2014) and of trackers that write alike: X1 Y1 ProbId1 X2 …

One row a frame, and in the .csv of idtracker.ai a first column of seconds. ProbId is the probability that the identity
is right; below 0 the place is an estimate: -1 where the animal was hidden and found by segmenting the image again, -2
where that failed too. Letters: T frames, C columns.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64

from data_gen.ingest.readers.number_table import read_lines, read_numbers
from data_gen.ingest.readers.tracking import Tracking, files_of, group_of, layout_of, recording_of
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError

SUFFIXES = (".txt", ".csv", ".tsv")
ESTIMATES = ("keep", "mask", "drop")
COLUMN = re.compile(r"(x|y|probid)(\d+)", re.IGNORECASE)
SECONDS = "seconds"
# How far the seconds of a file may be from the rate that the user gave, as a share of it.
RATE_TOLERANCE = 0.01


@dataclass
class IdTracker(Tracking):
    """`estimates`: keep what the tracker estimated, mask it as missing, or drop each frame in which there is one."""

    estimates: str = "keep"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.estimates not in ESTIMATES:
            raise InputError(f"estimates={self.estimates!r} must be one of {', '.join(ESTIMATES)}.")


class IdTrackerReader:
    """Each file is a recording."""

    def __init__(self, path: str | Path, settings: IdTracker) -> None:
        self.settings = settings
        self.files = files_of(path, settings, SUFFIXES)
        _check_gaps(self.files)
        for file in self.files.values():
            _columns(file)
        self.layout = layout_of(
            "idtracker", settings, ("body",), ("x", "y"), provenance={"estimates": settings.estimates}
        )

    def recordings(self) -> Iterator[Recording]:
        """See `Reader`."""
        for name, file in self.files.items():
            yield self._recording(name, file)

    def _recording(self, name: str, file: Path) -> Recording:
        separator, columns = _columns(file)
        values, told = read_numbers(file, columns, 1, separator)
        at = {column.lower(): number for number, column in enumerate(columns)}
        if SECONDS in at:
            _check_rate(values[:, at[SECONDS]], self.settings.rate, file)
        animals = sorted({int(column[1:]) for column in at if column[0] == "x"})
        place = np.stack([values[:, [at[f"x{n}"], at[f"y{n}"]]] for n in animals], axis=1)
        estimated = np.stack([_below_zero(values, at.get(f"probid{n}")) for n in animals], axis=1)
        kept, frames = np.ones(len(values), bool), np.arange(len(values), dtype=np.float64)
        estimated &= ~np.isnan(place).all(-1)
        if estimated.any():
            told += (
                f"{estimated.sum()} places of {estimated.size} are the tracker's estimates ({_done(self.settings)})",
            )
            if self.settings.estimates == "mask":
                place = np.where(estimated[..., None], np.nan, place)
            elif self.settings.estimates == "drop":
                kept = ~np.any(estimated, axis=1)
                told += (f"{(~kept).sum()} frames of {len(kept)} are left out for them",)
        return recording_of(
            place[kept][:, :, None],
            name=name,
            group=group_of(name, self.settings, str(file)),
            file=str(file),
            agents=[f"animal_{n}" for n in animals],
            layout=self.layout,
            settings=self.settings,
            frames=frames[kept],
            dropped=told,
        )


def _done(settings: IdTracker) -> str:
    return {"keep": "kept", "mask": "taken as missing", "drop": "dropped with their frames"}[settings.estimates]


def _below_zero(values: Float64[np.ndarray, "T C"], column: int | None) -> Bool[np.ndarray, " T"]:
    """NaN is no estimate: it is what files without gaps filled have in every row."""
    return np.zeros(len(values), bool) if column is None else values[:, column] < 0


def _check_rate(seconds: Float64[np.ndarray, " T"], rate: float, file: Path) -> None:
    """Raise InputError where the file's own time does not go on, or not at the rate that the user gave."""
    steps = np.diff(seconds)
    wrong = np.flatnonzero(~(steps > 0))
    if len(wrong):
        raise InputError(
            f"{file}: seconds go from {seconds[wrong[0]]} to {seconds[wrong[0] + 1]} at row {wrong[0] + 1}."
        )
    if len(steps) and rate and abs(np.median(steps) * rate - 1) > RATE_TOLERANCE:
        raise InputError(f"{file}: its seconds say {1 / np.median(steps):.4g} frames a second, and rate={rate}.")


def _columns(file: Path) -> tuple[str, list[str]]:
    """The separator and the columns; InputError where the header is not that of the format."""
    lines = read_lines(file, 2)
    header = lines[0] if lines else ""
    separator = "\t" if "\t" in header else ","
    columns = [column.strip() for column in header.split(separator)]
    if columns and not columns[-1]:
        raise InputError(f"{file}, line 1: the header ends with a separator. Remove it there and in every row.")
    for column in columns[columns[0].lower() == SECONDS :]:
        if not COLUMN.fullmatch(column):
            raise InputError(
                f"{file}, line 1: {column[:40]!r} is no column of this format, which has X1, Y1, ProbId1, X2, … "
                f"separated by tabs or commas. Choose the files of positions with files=."
            )
    names = [column.lower() for column in columns]
    if len(set(names)) < len(names):
        raise InputError(f"{file}, line 1: {next(n for n in names if names.count(n) > 1)} stands there twice.")
    for name in names:
        number = COLUMN.fullmatch(name)
        if number and not {f"x{number[2]}", f"y{number[2]}"} <= set(names):
            raise InputError(
                f"{file}, line 1: animal {number[2]} has {name} but not both of x{number[2]} and y{number[2]}."
            )
    if len(lines) < 2:
        raise InputError(f"{file} has no frame below its header: nothing was tracked. Leave the file out.")
    return separator, columns


def _check_gaps(files: dict[str, Path]) -> None:
    """idTracker writes each session twice, with gaps and with gaps filled; InputError where both are here."""
    for name, file in files.items():
        if name.endswith("_nogaps") and name.removesuffix("_nogaps") in files:
            raise InputError(
                f"{file} is {files[name.removesuffix('_nogaps')]} with its gaps filled, and no other recording. Choose "
                f"one of the two: files='**/*_nogaps{file.suffix}' or files='**/trajectories{file.suffix}'."
            )
