"""MABe's dictionaries: .npy with a pickled {"sequences": {id: {"keypoints" [, "annotations"]}} [, "vocabulary"]}.

Mice of 2022 are (1800, 3, 12, 2) at 30 Hz with 0 for a missing point, flies (4500, 11, 24, 2) at 150 Hz with NaN
(Sun et al., MABe22). Annotations are (T,) classes, or (tasks, T) values with a name each in the vocabulary. A pickle is
read whole, so that memory has to hold a file. Letters: T frames, N animals, P body parts, D axes, K tasks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from data_gen.ingest.readers.pickles import load_pickled_npy
from data_gen.ingest.readers.tracking import Tracking, files_of, group_of, layout_of, recording_of
from data_gen.ingest.recording import LabelColumn, Recording
from data_gen.trajectory import InputError

SUFFIXES = (".npy",)
AXES = ("x", "y", "z")
MISSING = ("nan", "zero")
LABEL = "behavior"
BINARY = ("no", "yes")


@dataclass
class MABe(Tracking):
    """`missing` says how the files write a point that was not seen: nan, or zero (mice), or nothing where none is 0.

    `parts` names the body parts, which files do not; without names they are numbered.
    """

    allow_pickle: bool = False
    missing: str = ""
    parts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.missing not in ("", *MISSING):
            raise InputError(f"missing={self.missing!r} must be one of {', '.join(MISSING)}, or left out.")
        if len(set(self.parts)) < len(self.parts):
            raise InputError(f"parts={self.parts} names a body part twice.")


class MABeReader:
    """Each sequence is a recording."""

    def __init__(self, path: str | Path, settings: MABe) -> None:
        self.settings = settings
        self.files = list(files_of(path, settings, SUFFIXES).values())
        seen: dict[str, Path] = {}
        size: tuple[int, int] | None = None
        labels: dict[str, LabelColumn] = {}
        for file in self.files:
            found = _load(file, settings)
            for name, sequence in found["sequences"].items():
                if name in seen:
                    raise InputError(f"{seen[name]} and {file} both have a sequence {name!r}. Remove one of the files.")
                seen[name] = file
                here = _keypoints(sequence, f"{file}, {name}").shape[2:]
                size = size or here
                if here != size:
                    raise InputError(f"{file}, {name}: {here[0]} parts of {here[1]} axes; {self.files[0]} has {size}.")
            _merge(labels, _columns(found, file), file)
        n_parts, n_axes = size or (0, 0)
        if settings.parts and len(settings.parts) != n_parts:
            raise InputError(f"parts names {len(settings.parts)} body parts; {self.files[0]} has {n_parts}.")
        parts = settings.parts or [f"part_{p}" for p in range(n_parts)]
        self.layout = layout_of(
            "mabe",
            settings,
            parts,
            AXES[:n_axes],
            labels=tuple(labels.values()),
            provenance={"missing": settings.missing},
        )

    def recordings(self) -> Iterator[Recording]:
        """See `Reader`."""
        for file in self.files:
            found = _load(file, self.settings)
            columns = _columns(found, file)
            for name, sequence in found["sequences"].items():
                yield self._recording(str(name), sequence, list(columns), file)

    def _recording(self, name: str, sequence: Mapping[str, Any], columns: list[str], file: Path) -> Recording:
        where = f"{file}, {name}"
        position = _keypoints(sequence, where).astype(np.float64)
        labels = {column.name: _unknown(column, len(position)) for column in self.layout.labels}
        if columns and "annotations" in sequence:
            rows = _annotations(sequence, len(position), where)
            for number, column in enumerate(columns):
                real = next(c for c in self.layout.labels if c.name == column).kind == "real"
                labels[column] = rows[number] if real else np.nan_to_num(rows[number], nan=-1).astype(np.int32)
        told = () if columns or "annotations" not in sequence else ("annotations without a vocabulary are left out",)
        return recording_of(
            _without_zeros(position, self.settings, where),
            name=name,
            group=group_of(name, self.settings, str(file)),
            file=str(file),
            agents=[f"animal_{n}" for n in range(position.shape[1])],
            layout=self.layout,
            settings=self.settings,
            labels=labels,
            dropped=told,
        )


def _load(file: Path, settings: MABe) -> dict[str, Any]:
    found = load_pickled_npy(file, settings.allow_pickle)
    sequences = found.get("sequences") if isinstance(found, dict) else None
    if not isinstance(sequences, dict) or not sequences:
        keys = list(found) if isinstance(found, dict) else type(found).__name__
        raise InputError(f"{file} has no sequences: it must be a dictionary with 'sequences', and is {str(keys)[:80]}.")
    return found


def _keypoints(sequence: Any, where: str) -> np.ndarray:
    """Positions (T, N, P, D) as the file has them; InputError where they are anything else."""
    if not isinstance(sequence, dict) or "keypoints" not in sequence:
        raise InputError(f"{where} has no keypoints. A file of labels alone is no recording.")
    found = sequence["keypoints"]
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu" or found.ndim != 4:
        what = f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise InputError(f"{where}: keypoints are {what}; they must be numbers [frames, animals, parts, axes].")
    if found.shape[3] not in (2, 3):
        raise InputError(
            f"{where}: keypoints are {list(found.shape)}, with the axes of the plane not last. CalMS21 has them third: "
            f"source=calms21."
        )
    return found


def _without_zeros(
    position: Float64[np.ndarray, "T N P D"], settings: MABe, where: str
) -> Float64[np.ndarray, "T N P D"]:
    """NaN for points at exactly 0 where the user says that 0 is missing; InputError where they did not say."""
    zero = (position == 0).all(-1)
    if settings.missing == "nan" or not zero.any():
        return position
    if settings.missing == "zero":
        return np.where(zero[..., None], np.nan, position)
    t, n, p = np.argwhere(zero)[0]
    raise InputError(
        f"{where}: {zero.sum()} points lie exactly at 0, the first of them part {p} of animal {n} at frame {t}. Set "
        f"missing=zero where that means that it was not seen (mice of MABe), and missing=nan where it is a place."
    )


def _columns(found: Mapping[str, Any], file: Path) -> dict[str, LabelColumn]:
    """The label columns of a file by name; none where nothing is annotated, or no vocabulary says what it means."""
    vocabulary = found.get("vocabulary")
    rows = [
        _annotations(sequence, len(sequence["keypoints"]), f"{file}, {name}")
        for name, sequence in found["sequences"].items()
        if "annotations" in sequence
    ]
    if vocabulary is None or not rows:
        return {}
    if isinstance(vocabulary, dict):
        return {LABEL: _classes(vocabulary, rows, file)}
    names = [str(name) for name in vocabulary] if isinstance(vocabulary, list | tuple | np.ndarray) else []
    if any(len(row) != len(names) for row in rows) or len(set(names)) < len(names):
        raise InputError(
            f"{file}: the vocabulary names {names}; annotations have {sorted({len(row) for row in rows})} rows."
        )
    binary = [all(np.isin(row[k][~np.isnan(row[k])], (0, 1)).all() for row in rows) for k in range(len(names))]
    return {
        name: LabelColumn(name, "frame", "class", BINARY) if two else LabelColumn(name, "frame", "real")
        for name, two in zip(names, binary, strict=True)
    }


def _classes(vocabulary: Mapping[Any, Any], rows: list[np.ndarray], file: Path) -> LabelColumn:
    if sorted(vocabulary.values(), key=str) != sorted(range(len(vocabulary)), key=str):
        raise InputError(f"{file}: the vocabulary is {dict(vocabulary)}; it must number its names from 0 on.")
    for row in rows:
        known = np.isin(row, np.arange(len(vocabulary))) | np.isnan(row)
        if len(row) != 1 or not known.all():
            raise InputError(
                f"{file}: annotations must be [frames], numbers of the vocabulary 0..{len(vocabulary) - 1}; they are "
                f"{list(row.shape)} with {row[~known][:1]}."
            )
    return LabelColumn(LABEL, "frame", "class", tuple(sorted((str(n) for n in vocabulary), key=_number_in(vocabulary))))


def _number_in(vocabulary: Mapping[Any, Any]):
    return {str(name): number for name, number in vocabulary.items()}.__getitem__


def _annotations(sequence: Mapping[str, Any], length: int, where: str) -> Float64[np.ndarray, "K T"]:
    """Annotations as rows; NaN and -1 are unknown."""
    try:
        found = np.atleast_2d(np.asarray(sequence["annotations"], np.float64))
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: annotations are no numbers ({error}).") from None
    if found.ndim != 2 or found.shape[1] != length:
        raise InputError(
            f"{where}: annotations are {list(found.shape)}; they must be [frames] or [tasks, {length} frames]."
        )
    return np.where(found == -1, np.nan, found)


def _unknown(column: LabelColumn, length: int) -> np.ndarray:
    return np.full(length, np.nan) if column.kind == "real" else np.full(length, -1, np.int32)


def _merge(known: dict[str, LabelColumn], new: Mapping[str, LabelColumn], file: Path) -> None:
    """One column of each name over files; numbers where one of them has more than no and yes."""
    for name, column in new.items():
        old = known.get(name, column)
        if column != old and "real" not in (column.kind, old.kind):
            raise InputError(f"{file}: the classes of {name} are {column.classes}; other files have {old.classes}.")
        known[name] = column if old.kind == "class" else old
