"""What the readers of tracking formats share: their settings, the files of a folder, and a recording of positions.

Letters: T frames, N animals, P body parts, D axes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Shaped

from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec, InputError

LARGEST = float(np.finfo(np.float32).max)


@dataclass
class Tracking:
    """What a file of positions does not say. `rate` is in frames a second, 0 where it is not known.

    Positions are divided by `pixels_per_unit` and are then in `unit`. `group` is a regular expression with one group in
    parentheses, searched for in a recording's name; without one, each recording is a group of its own. `files` is a
    pattern that chooses among the files of a folder, such as "**/*_filtered.csv"; without one, all of the format are
    read.
    """

    rate: float = 0.0
    unit: str = "pixel"
    pixels_per_unit: float = 1.0
    group: str = ""
    files: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.rate < np.inf:
            raise InputError(f"rate={self.rate} must be frames a second, or 0 where it is not known.")
        if not 0 < self.pixels_per_unit < np.inf:
            raise InputError(f"pixels_per_unit={self.pixels_per_unit} must be above 0; leave it at 1 to keep pixels.")
        if self.pixels_per_unit != 1 and self.unit == "pixel":
            raise InputError(
                f"pixels_per_unit={self.pixels_per_unit} gives another unit than the pixel: name it, unit=cm."
            )
        try:
            groups = re.compile(self.group).groups
        except re.error as error:
            raise InputError(f"group={self.group!r} is not a regular expression ({error}).") from None
        if self.group and groups != 1:
            raise InputError(f"group={self.group!r} must have one group in parentheses, as in '(mouse[0-9]+)'.")


@dataclass
class Scored(Tracking):
    """A tracker that scores its points: those that score below `least_likelihood` are taken as missing."""

    least_likelihood: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.least_likelihood <= 1:
            raise InputError(f"least_likelihood={self.least_likelihood} must lie in 0..1; 0 keeps every point.")


def files_of(path: str | Path, settings: Tracking, suffixes: Sequence[str]) -> dict[str, Path]:
    """The files to read by the names of their recordings: a file, or those of a folder and the folders in it.

    Raises InputError where there is none, and where two would have one name.
    """
    root, what = Path(path).expanduser(), " or ".join(suffixes)
    if root.is_file():
        if root.suffix.lower() not in suffixes:
            raise InputError(f"{root} is no {what} file, which this format is. Name another file, or another source.")
        return {root.stem: root}
    if not root.is_dir():
        raise InputError(f"{root} does not exist. Name a {what} file, or a folder of such files.")
    try:
        matching = sorted(root.glob(settings.files or "**/*"))
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"files={settings.files!r} is no pattern of files below {root} ({error}).") from None
    found: dict[str, Path] = {}
    for file in matching:
        if file.suffix.lower() in suffixes and file.is_file():
            name = file.relative_to(root).with_suffix("").as_posix()
            if name in found:
                raise InputError(
                    f"{found[name]} and {file} have one name, as two files of one recording have. Choose one of them: "
                    f"files='**/*{file.suffix}'."
                )
            found[name] = file
    if not found:
        raise InputError(f"{root} holds no {what} file that matches files={settings.files or '**/*'!r}.")
    return found


def check_versions(files: Mapping[str, Path], ending: str) -> None:
    """Raise InputError where a file lies beside a version of itself, whose name has the ending.

    Both would be recordings, and one could train what the other tests.
    """
    for name, file in files.items():
        if f"{name}{ending}" in files:
            other = files[f"{name}{ending}"]
            raise InputError(
                f"{other} is another version of {file}. Choose one of the two: files='**/*{ending}{file.suffix}' reads "
                f"the versions alone."
            )


def group_of(name: str, settings: Tracking, file: str) -> str:
    """The unit that a recording is split by; InputError where the settings' expression does not find one."""
    if not settings.group:
        return name
    found = re.search(settings.group, name)
    if not found or not found[1]:
        raise InputError(
            f"{file}: group={settings.group!r} finds nothing in the name {name!r}. Let it match every name."
        )
    return found[1]


def same_parts(parts: Sequence[str], wanted: Sequence[str], file: Path, first: Path) -> None:
    """Raise InputError where two files of one source track different body parts."""
    if set(parts) != set(wanted):
        differ = sorted(set(parts) ^ set(wanted))
        raise InputError(
            f"{file} and {first} do not track the same body parts: {', '.join(differ[:4])} is in one of them only. "
            f"Read them as two sources, or choose among the files with files=."
        )


def layout_of(
    source: str,
    settings: Tracking,
    parts: Sequence[str],
    axes: Sequence[str],
    *,
    labels: Sequence[LabelColumn] = (),
    agents: Sequence[str] = (),
    provenance: Mapping[str, Any],
) -> Layout:
    """The layout of a source of positions alone, from which actions have to be derived."""
    return Layout(
        source=source,
        parts=tuple(parts),
        axes=tuple(axes),
        features=(),
        action=ActionSpec("continuous", 0),
        action_names=(),
        agents=tuple(agents),
        rate=settings.rate,
        units={"position": settings.unit, "time": "s" if settings.rate else "frame"},
        labels=tuple(labels),
        provenance=dict(provenance),
    )


def check_axes(length: int, animals: int, parts: int, where: str) -> None:
    """Raise InputError where there is no frame, animal or body part."""
    for number, what in ((length, "frame"), (animals, "animal"), (parts, "body part")):
        if number == 0:
            raise InputError(f"{where} has no {what}: nothing was tracked. Leave the file out, or track it again.")


def likely(
    position: Float[np.ndarray, "T N P D"], score: Float[np.ndarray, "T N P"], least: float
) -> tuple[Float[np.ndarray, "T N P D"], tuple[str, ...]]:
    """The positions without those that score below `least`, and what is to be told. A point without a score stays."""
    seen = ~np.isnan(position).all(-1)
    below = (score < least) & seen
    if not below.any():
        return position, ()
    told = f"{below.sum()} of {seen.sum()} points scored below least_likelihood={least} and are taken as missing"
    return np.where(below[..., None], np.nan, position), (told,)


def recording_of(
    position: Float[np.ndarray, "T N P D"],
    *,
    name: str,
    group: str,
    file: str,
    agents: Sequence[str],
    layout: Layout,
    settings: Tracking,
    frames: Float64[np.ndarray, " T"] | None = None,
    labels: Mapping[str, Shaped[np.ndarray, "..."]] | None = None,
    dropped: Sequence[str] = (),
) -> Recording:
    """A recording of positions in pixels, NaN where a point was not measured.

    An animal is present where one of its points was. Raises InputError, with file and place, where there is no frame or
    animal, where a position is infinite, and where nothing at all was measured.
    """
    length, animals = position.shape[:2]
    where = f"{file}, {name}" if name != Path(file).stem else file
    check_axes(length, animals, position.shape[2], where)
    _check_finite(position, where, agents, layout.parts)
    lacking = np.isnan(position)
    half = np.any(lacking, axis=-1) & ~np.all(lacking, axis=-1)
    told = [f"{half.sum()} points lack an axis and are taken as missing"] if half.any() else []
    measured = ~np.any(lacking, axis=-1)
    if not measured.any():
        raise InputError(
            f"{where}: no position was measured in {length} frames. Leave the file out, or track it again."
        )
    told += _never(measured, agents, layout.parts)
    return Recording(
        name=name,
        group=group,
        file=file,
        agents=tuple(agents),
        time=(np.arange(length, dtype=np.float64) if frames is None else frames) / (settings.rate or 1.0),
        present=np.any(measured, axis=2),
        position=np.where(measured[..., None], position / settings.pixels_per_unit, np.nan).astype(np.float32),
        features=np.zeros((length, animals, 0), np.float32),
        actions=np.zeros((length, animals, 0), np.float32),
        rewards=np.zeros((length, animals), np.float32),
        terminated=False,
        labels=dict(labels or {}),
        dropped=(*dropped, *told),
    )


def _check_finite(
    position: Float[np.ndarray, "T N P D"], where: str, agents: Sequence[str], parts: Sequence[str]
) -> None:
    wrong = np.argwhere(np.abs(position) > LARGEST)
    if len(wrong):
        t, n, p, d = wrong[0]
        raise InputError(
            f"{where}: the position of {parts[p]} of {agents[n]} is {position[t, n, p, d]} at frame {t}, and "
            f"{len(wrong)} value(s) in all are not finite. Write NaN where a point was not measured."
        )


def _never(measured: Bool[np.ndarray, "T N P"], agents: Sequence[str], parts: Sequence[str]) -> list[str]:
    """A line for each animal, and each part of the others, that was never measured."""
    ever = np.any(measured, axis=0)
    told = [f"{agent} was never seen" for agent, seen in zip(agents, np.any(ever, axis=1), strict=True) if not seen]
    for p, part in enumerate(parts):
        without = [agent for n, agent in enumerate(agents) if np.any(ever[n]) and not ever[n, p]]
        if without:
            told.append(f"{part} of {', '.join(without)} was never measured and stays missing")
    return told
