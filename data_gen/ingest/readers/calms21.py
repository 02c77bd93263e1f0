"""CalMS21: pairs of mice, resident and intruder, with a behaviour a frame (Sun et al., NeurIPS 2021 data sets).

{annotator: {sequence: {"keypoints", "scores", "annotations", "metadata": {"vocab": {name: number}}}}} in JSON, or
the same as a pickled .npy. Keypoints are (T, mouse, xy, part), which is not the order of other formats, and scores are
(T, mouse, part). Letters: T frames, N mice, P body parts, D axes.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int32

from data_gen.ingest.readers.json_members import find_members, read_span
from data_gen.ingest.readers.pickles import load_pickled_npy
from data_gen.ingest.readers.tracking import Scored, files_of, group_of, layout_of, likely, recording_of
from data_gen.ingest.recording import LabelColumn, Recording
from data_gen.trajectory import InputError

SUFFIXES = (".json", ".npy")
MICE = ("resident", "intruder")
PARTS = ("nose", "left_ear", "right_ear", "neck", "left_hip", "right_hip", "tail_base")
LABEL = "behavior"
ANNOTATOR = "annotator"


@dataclass
class CalMS21(Scored):
    """`allow_pickle` is needed for .npy files alone. Without `group`, sequences of one "mouse001" are one group."""

    rate: float = 30.0
    allow_pickle: bool = False


class Outlined(NamedTuple):
    """What is known of a sequence before its numbers are read.

    `span` is where a JSON file holds it, `vocabulary` is empty where it has no labels.
    """

    file: Path
    annotator: str
    name: str
    span: slice | None
    vocabulary: tuple[str, ...]


class CalMS21Reader:
    """Each sequence is a recording; the resident is always the first agent."""

    def __init__(self, path: str | Path, settings: CalMS21) -> None:
        self.settings = settings
        self.sequences: dict[str, Outlined] = {}
        for file in files_of(path, settings, SUFFIXES).values():
            for outlined in self._outlined(file):
                _add(self.sequences, outlined)
        self.columns = _label_columns(list(self.sequences.values()))
        self.annotators = tuple(sorted({outlined.annotator for outlined in self.sequences.values()}))
        labels = [LabelColumn(name, "frame", "class", words) for words, name in self.columns.items()]
        if len(self.annotators) > 1:
            labels.append(LabelColumn(ANNOTATOR, "recording", "class", self.annotators))
        self.layout = layout_of(
            "calms21", settings, PARTS, ("x", "y"), labels=labels, agents=MICE,
            provenance={"least_likelihood": settings.least_likelihood},
        )  # fmt: skip

    def recordings(self) -> Iterator[Recording]:
        """See `Reader`."""
        pickled: tuple[Path, Any] | None = None
        for name, outlined in self.sequences.items():
            if outlined.span:
                value = read_span(outlined.file, outlined.span, f"{outlined.file}, {name}")
            else:
                if pickled is None or pickled[0] != outlined.file:
                    pickled = (outlined.file, load_pickled_npy(outlined.file, self.settings.allow_pickle))
                value = pickled[1][outlined.annotator][outlined.name]
            yield self._recording(name, outlined, value)

    def _outlined(self, file: Path) -> Iterator[Outlined]:
        if file.suffix.lower() == ".json":
            for member in find_members(file):
                where, at = f"{file}, {member.inner}", member.objects.get("metadata")
                metadata = read_span(file, at, where) if at else None
                yield Outlined(
                    file, member.outer, member.inner, member.span, _vocabulary(member.texts, metadata, where)
                )
            return
        found = load_pickled_npy(file, self.settings.allow_pickle)
        if not isinstance(found, dict) or not all(isinstance(sequences, dict) for sequences in found.values()):
            raise InputError(f"{file} is no dictionary of annotators' sequences, which CalMS21 is.")
        for annotator, sequences in found.items():
            for name, value in sequences.items():
                where = f"{file}, {name}"
                if not isinstance(value, dict) or not isinstance(name, str) or not isinstance(annotator, str):
                    raise InputError(f"{where}: this is no dictionary with keypoints under the names of its sequence.")
                yield Outlined(file, annotator, name, None, _vocabulary(value, value.get("metadata"), where))

    def _recording(self, name: str, outlined: Outlined, value: Mapping[str, Any]) -> Recording:
        where = f"{outlined.file}, {name}"
        position = _numbers(value, "keypoints", 4, where)
        if position.shape[1:] != (len(MICE), 2, len(PARTS)):
            raise InputError(
                f"{where}: keypoints are {list(position.shape)}; they must be [frames, {len(MICE)} mice, 2 axes, "
                f"{len(PARTS)} parts]. Is this another format?"
            )
        position, told = position.transpose(0, 1, 3, 2), ()
        if "scores" in value:
            scores = _numbers(value, "scores", 3, where)
            if scores.shape != position.shape[:3]:
                raise InputError(f"{where}: scores are {list(scores.shape)}; they must be {list(position.shape[:3])}.")
            position, told = likely(position, scores, self.settings.least_likelihood)
        elif self.settings.least_likelihood:
            raise InputError(f"{where} has no scores to compare with least_likelihood; set it to 0.")
        return recording_of(
            position,
            name=name,
            group=self._group(name, str(outlined.file)),
            file=str(outlined.file),
            agents=MICE,
            layout=self.layout,
            settings=self.settings,
            labels=self._labels(outlined, value, len(position), where),
            dropped=told,
        )

    def _labels(self, outlined: Outlined, value: Mapping[str, Any], length: int, where: str) -> dict[str, np.ndarray]:
        labels: dict[str, np.ndarray] = {name: np.full(length, -1, np.int32) for name in self.columns.values()}
        if outlined.vocabulary:
            labels[self.columns[outlined.vocabulary]] = _annotations(value, outlined.vocabulary, length, where)
        if len(self.annotators) > 1:
            labels[ANNOTATOR] = np.asarray(self.annotators.index(outlined.annotator), np.int32)
        return labels

    def _group(self, name: str, file: str) -> str:
        mouse = re.search(r"mouse\d+", name)
        return mouse[0] if mouse and not self.settings.group else group_of(name, self.settings, file)


def _add(sequences: dict[str, Outlined], outlined: Outlined) -> None:
    """By its name, with the annotator where another's sequence has the same; InputError where it is there twice."""
    name = outlined.name
    name = f"{outlined.annotator}/{name}" if name in sequences else name
    if name in sequences:
        raise InputError(
            f"{outlined.file} and {sequences[name].file} both have a sequence {name!r}. Remove one of them."
        )
    sequences[name] = outlined


def _vocabulary(keys: Collection[str], metadata: Any, where: str) -> tuple[str, ...]:
    """The names of the classes by number; none where there are no labels."""
    if "keypoints" not in keys:
        raise InputError(f"{where} has no keypoints, which every sequence of CalMS21 has. Is this another format?")
    if "annotations" not in keys:
        return ()
    vocabulary = metadata.get("vocab") if isinstance(metadata, dict) else None
    if not isinstance(vocabulary, dict):
        raise InputError(f"{where} has annotations but no metadata.vocab, which says what their numbers mean.")
    if sorted(vocabulary.values(), key=str) != sorted(range(len(vocabulary)), key=str):
        raise InputError(f"{where}: metadata.vocab is {vocabulary}; it must number its names from 0 on.")
    return tuple(sorted(vocabulary, key=lambda name: vocabulary[name]))


def _label_columns(sequences: list[Outlined]) -> dict[tuple[str, ...], str]:
    """The name of each vocabulary's label column; several, as those of task 3, are told apart by who labelled."""
    first: dict[tuple[str, ...], str] = {}
    for outlined in sequences:
        if outlined.vocabulary:
            first.setdefault(outlined.vocabulary, outlined.annotator)
    if len(first) <= 1:
        return dict.fromkeys(first, LABEL)
    if len(set(first.values())) < len(first):
        return {words: f"{LABEL}_{'_'.join(words)}" for words in first}
    return {words: f"{LABEL}_{outer}" for words, outer in first.items()}


def _numbers(value: Mapping[str, Any], key: str, axes: int, where: str) -> Float64[np.ndarray, "..."]:
    """An array of numbers; null stands for NaN."""
    try:
        found = np.asarray(value[key], np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{where}: {key} are no array of numbers ({error}).") from None
    if found.ndim != axes:
        raise InputError(f"{where}: {key} are {list(found.shape)}; they must have {axes} axes, frames first.")
    return found


def _annotations(
    value: Mapping[str, Any], vocabulary: tuple[str, ...], length: int, where: str
) -> Int32[np.ndarray, " T"]:
    found = _numbers(value, "annotations", 1, where)
    if len(found) != length:
        raise InputError(f"{where} has {len(found)} annotations and {length} frames.")
    wrong = np.flatnonzero(~np.isin(found, np.arange(len(vocabulary))))
    if len(wrong):
        raise InputError(
            f"{where}: the annotation is {found[wrong[0]]} at frame {wrong[0]}; metadata.vocab has {len(vocabulary)} "
            f"classes, numbered from 0."
        )
    return found.astype(np.int32)
