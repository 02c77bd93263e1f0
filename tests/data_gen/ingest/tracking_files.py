"""Files of tracking formats, written without the readers: planted tracks, and what their own libraries would write.

Letters: T frames, N animals, P body parts, D axes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from data_gen.ingest.recording import Reader, Recording


def planted(length: int = 7, animals: int = 2, parts: int = 3, axes: int = 2) -> np.ndarray:
    """[T, N, P, D] where each value says its frame, animal, part and axis, and float32 holds it exactly."""
    t, n, p, d = np.ogrid[:length, :animals, :parts, :axes]
    return t + 0.25 + 100.0 * (n + 1) + 1000.0 * p + 10000.0 * d


def only(reader: Reader) -> Recording:
    """The one recording of a reader."""
    (found,) = reader.recordings()
    return found


def write_deeplabcut(
    file: Path,
    position: np.ndarray,
    likelihood: np.ndarray,
    *,
    individuals: Sequence[str] | None = None,
    parts: Sequence[str] = ("nose", "mid", "tail"),
    layout: str = "table",
    frames: Any = None,
) -> pd.DataFrame:
    """As DeepLabCut does: to_csv, or to_hdf with key df_with_missing; three levels of columns for one animal."""
    coords = [*"xyz"[: position.shape[3]], "likelihood"]
    names = ["scorer", "individuals", "bodyparts", "coords"]
    levels = [["DLC_resnet50"], list(individuals or ("one",)), list(parts), coords]
    columns = pd.MultiIndex.from_product(levels, names=names)
    values = np.concatenate([position, likelihood[..., None]], axis=3).reshape(len(position), -1)
    table = pd.DataFrame(values, columns=columns, index=range(len(values)) if frames is None else frames)
    if individuals is None:
        table.columns = table.columns.droplevel("individuals")
    if file.suffix == ".csv":
        table.to_csv(file)
    else:
        table.to_hdf(file, key="df_with_missing", format=layout, mode="w")
    return table


def write_sleap(
    file: Path,
    position: np.ndarray,
    score: np.ndarray,
    tracks: Sequence[str] = ("ann", "bob"),
    nodes: Sequence[str] = ("nose", "mid", "tail"),
    dims: Sequence[str] = ("track", "xy", "node", "frame"),
) -> None:
    """As sleap-io does (compared once with its own files); `dims` is the order of the axes of tracks."""
    wanted = ("frame", "track", "node", "xy")
    with h5py.File(file, "w") as found:
        places = found.create_dataset(
            "tracks", data=position.transpose([wanted.index(axis) for axis in dims]), compression="gzip"
        )
        places.attrs["dims"] = json.dumps(dims)
        rest = [axis for axis in dims if axis != "xy"]
        found.create_dataset("point_scores", data=score.transpose([wanted.index(axis) for axis in rest]))
        found.create_dataset("track_occupancy", data=(~np.isnan(position).all((2, 3))).astype(np.uint8))
        found.create_dataset("track_names", data=np.array([name.encode() for name in tracks]))
        found.create_dataset("node_names", data=np.array([name.encode() for name in nodes]))
        found.create_dataset("edge_inds", data=np.zeros((0, 2)))
        found.create_dataset("video_path", data="arena.mp4")


def idtracker_text(place: np.ndarray, probability: np.ndarray, separator: str = "\t") -> str:
    """idTracker's text of [T, N, 2] places and [T, N] probabilities."""
    animals = range(place.shape[1])
    lines = [separator.join(f"X{n + 1}{separator}Y{n + 1}{separator}ProbId{n + 1}" for n in animals)]
    for row, likely in zip(place, probability, strict=True):
        cells = [cell for n in animals for cell in (*row[n], likely[n])]
        lines.append(separator.join("NaN" if np.isnan(cell) else repr(float(cell)) for cell in cells))
    return "\n".join(lines) + "\n"


VOCABULARY = {"attack": 0, "investigation": 1, "mount": 2, "other": 3}


def calms21_sequence(length: int = 5, **other: Any) -> dict[str, Any]:
    """A sequence of CalMS21 in plain lists: keypoints (T, mouse, xy, part)."""
    position = planted(length, 2, 7)
    return {
        "keypoints": position.transpose(0, 1, 3, 2).tolist(),
        "scores": np.full((length, 2, 7), 0.9).tolist(),
        "annotations": (np.arange(length) % 4).tolist(),
        "metadata": {"annotator-id": 0, "vocab": VOCABULARY},
    } | other


def write_calms21(file: Path, sequences: dict[str, Any], annotator: str = "annotator-id_0") -> None:
    """JSON of one annotator's sequences."""
    file.write_text(json.dumps({annotator: sequences}))


def write_mabe(file: Path, sequences: dict[str, Any], **other: Any) -> None:
    """A pickled dictionary, as numpy saves it."""
    np.save(file, np.array({"sequences": sequences} | other, dtype=object), allow_pickle=True)
