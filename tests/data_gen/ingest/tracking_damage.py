"""Ways to damage tracking files, and what is to be said of each.

Letters: T frames, N animals, P body parts, D axes.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from tests.data_gen.ingest.tracking_files import (
    calms21_sequence,
    idtracker_text,
    planted,
    write_calms21,
    write_deeplabcut,
    write_mabe,
    write_sleap,
)

SURE = np.full((7, 2, 3), 0.9)
NAMES = {
    "idtracker": "t.txt",
    "calms21": "a.json",
    "deeplabcut": "v.csv",
    "deeplabcut h5": "v.h5",
    "sleap": "v.h5",
    "mabe": "a.npy",
}


def cut(file: Path, share: float = 0.5) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def text(change: Callable[[str], str]) -> Callable[[Path], None]:
    return lambda file: (file.write_text(change(file.read_text())), None)[1]


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    return text(lambda content: "".join(change(content.splitlines(keepends=True))))


def hdf(change: Callable[[h5py.File], None]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        with h5py.File(file, "a") as found:
            change(found)

    return damage


def instead(name: str, values: Any) -> Callable[[Path], None]:
    def change(found: h5py.File) -> None:
        attributes = dict(found[name].attrs)
        del found[name]
        found[name] = values
        found[name].attrs.update(attributes)

    return hdf(change)


def sequence(**other: Any) -> Callable[[Path], None]:
    """One sequence of CalMS21 with other entries; None takes one out."""
    made = {key: value for key, value in calms21_sequence(5, **other).items() if value is not None}
    return lambda file: write_calms21(file, {"mouse001": made})


def keypoints(value: Any, **other: Any) -> Callable[[Path], None]:
    return lambda file: write_mabe(file, {"AB": {"keypoints": value} | other}, vocabulary=["chases"])


def whole(source: str, file: Path) -> None:
    """A file of the format without fault."""
    if source == "idtracker":
        file.write_text(idtracker_text(planted(7, 2, 1)[:, :, 0], np.ones((7, 2))))
    elif source == "calms21":
        sequence()(file)
    elif source.startswith("deeplabcut"):
        write_deeplabcut(file, planted(), SURE, individuals=("ann", "bob"))
    elif source == "sleap":
        write_sleap(file, planted(), SURE)
    else:
        keypoints(planted())(file)


def some(position: np.ndarray, *where: Any) -> np.ndarray:
    position[where] = np.nan
    return position


def as_floats(columns: list[str]) -> Callable[[Path], None]:
    return lambda file: pd.DataFrame(np.ones((3, 2)), columns=columns).to_hdf(file, key="df", format="table", mode="w")


TRACKS = planted().transpose(1, 3, 2, 0)
POINTS = planted(5, 2, 7).transpose(0, 1, 3, 2)
# By format: the damage, and what the message or (TOLD) the recording has to say; OK where there is nothing to say.
DAMAGED: dict[str, dict[str, tuple[Callable[[Path], Any], str]]] = {
    "idtracker": {
        "empty": (lambda file: file.write_text(""), "line 1"),
        "header alone": (lines(lambda rows: rows[:1]), "no frame"),
        "no header": (lines(lambda rows: rows[1:]), "line 1: '100.25'"),
        "a word": (text(lambda all: all.replace("103.25", "left")), "column X1.*line 5.*left"),
        "a row too short": (text(lambda all: all.replace("\t1.0\n", "\n", 3)), "line 2.*6 columns"),
        "cut in a row": (lambda file: cut(file, 0.9), "TOLD the last line"),
        "cut in the first row": (lambda file: cut(file, 0.2), "no frame"),
        "X2 without Y2": (text(lambda all: all.replace("Y2", "Z2")), "line 1: 'Z2'"),
        "a column twice": (text(lambda all: all.replace("X2", "X1")), "x1 stands there twice"),
        "infinite": (text(lambda all: all.replace("10203.25", "inf")), "animal_2 is inf at frame 3"),
        "all NaN": (text(lambda all: re.sub(r"\d+\.\d+", "NaN", all)), "no position was measured"),
        "one animal NaN": (
            text(lambda all: re.sub(r"\b1?020\d\.25", "NaN", re.sub(r"\b20\d\.25", "NaN", all))),
            "TOLD animal_2 was never seen",
        ),
        "bytes": (lambda file: file.write_bytes(b"\xff\xfe\x00X1"), "as text"),
    },
    "calms21": {
        "cut": (cut, "ends early"),
        "empty": (lambda file: file.write_text(""), "as JSON"),
        "a list": (lambda file: file.write_text("[1, 2]"), "no JSON object"),
        "no sequence": (lambda file: write_calms21(file, {}), "no JSON object"),
        "no keypoints": (sequence(keypoints=None), "mouse001 has no keypoints"),
        "other axes": (sequence(keypoints=planted(5, 2, 7).tolist()), "mouse001: keypoints are .5, 2, 7, 2."),
        "ragged": (sequence(keypoints=[POINTS[0].tolist(), [[1]]]), "mouse001: keypoints are no array"),
        "words": (sequence(keypoints=[[["a"]]]), "mouse001: keypoints are no array"),
        "no frames": (sequence(keypoints=[]), "mouse001: keypoints are .0."),
        "fewer labels": (sequence(annotations=[0, 1]), "mouse001 has 2 annotations and 5 frames"),
        "an unknown label": (sequence(annotations=[0, 1, 7, 0, 0]), "annotation is 7.0 at frame 2"),
        "no vocabulary": (sequence(metadata={}), "mouse001 has annotations but no metadata.vocab"),
        "broken within": (text(lambda all: all.replace("[0.9", "[0.9.9", 1)), "mouse001: this is no JSON"),
        "NaN block": (sequence(keypoints=some(POINTS.copy(), slice(None), 1).tolist()), "TOLD intruder was never seen"),
    },
    "deeplabcut": {
        "cut": (lambda file: cut(file, 0.9), "TOLD the last line"),
        "cut in the header": (lambda file: cut(file, 0.2), "first column begins with"),
        "no frames": (lines(lambda rows: rows[:4]), "no frame"),
        "shuffled rows": (lines(lambda rows: [*rows[:4], rows[6], rows[5]]), "row 1 is frame 1"),
        "a row twice": (lines(lambda rows: [*rows[:6], rows[5], *rows[6:]]), "row 2 is frame 1"),
        "a word": (text(lambda all: all.replace("103.25", "-")), "ann/nose/x: line 8"),
        "no y": (text(lambda all: all.replace(",y,", ",likelihood,")), "stands there twice"),
        "another coordinate": (text(lambda all: all.replace(",y,", ",w,")), "'w'"),
        "a header row of another length": (text(lambda all: all.replace("tail\n", "tail,\n")), "header rows have"),
        "a part all NaN": (
            lambda file: write_deeplabcut(
                file, some(planted(), slice(None), slice(None), 2), SURE, individuals=("ann", "bob")
            ),
            "TOLD tail of ann, bob",
        ),
    },
    "deeplabcut h5": {
        "cut": (cut, "as HDF5"),
        "text": (lambda file: file.write_text("scorer"), "as HDF5"),
        "no table": (hdf(lambda found: found.__delitem__("df_with_missing")), "holds 0 tables"),
        "no names": (
            hdf(lambda found: found["df_with_missing/table"].attrs.__delitem__("values_block_0_kind")),
            "no attribute values_block_0_kind",
        ),
        "code in the names": (
            hdf(
                lambda found: found["df_with_missing/table"].attrs.__setitem__(
                    "values_block_0_kind", np.bytes_(b"cos\nsystem\n(S'true'\ntR.")
                )
            ),
            "posix.system|os.system",
        ),
        "plain columns": (as_floats(["x", "y"]), "no levels"),
        "no frames": (hdf(lambda found: found["df_with_missing/table"].resize((0,))), "no frame"),
    },
    "sleap": {
        "cut": (cut, "as HDF5"),
        "empty": (lambda file: file.write_bytes(b""), "as HDF5"),
        "no tracks": (hdf(lambda found: found.__delitem__("tracks")), "lacks tracks"),
        "no node names": (hdf(lambda found: found.__delitem__("node_names")), "lacks node_names"),
        "no occupancy": (hdf(lambda found: found.__delitem__("track_occupancy")), "lacks track_occupancy"),
        "whole numbers": (instead("tracks", TRACKS.astype(int)), "tracks are int64"),
        "three axes": (instead("tracks", TRACKS[0]), "four axes"),
        "no frames": (instead("tracks", TRACKS[..., :0]), "no frame"),
        "no tracks left": (instead("tracks", TRACKS[:0]), "no animal"),
        "axes swapped": (instead("tracks", TRACKS.swapaxes(1, 2)), "2 axes of the plane"),
        "other names of axes": (
            hdf(lambda found: found["tracks"].attrs.__setitem__("dims", '["a"]')),
            "names its axes",
        ),
        "more names than tracks": (instead("track_names", np.array([b"a", b"b", b"c"])), "3 names for 2 tracks"),
        "occupancy of another size": (instead("track_occupancy", np.ones((9, 2))), "track_occupancy is .9, 2."),
        "all NaN": (instead("tracks", np.full_like(TRACKS, np.nan)), "no position was measured"),
        "half a point": (instead("tracks", some(TRACKS.copy(), 0, 1, 2, 3)), "TOLD 1 points lack an axis"),
    },
    "mabe": {
        "cut": (cut, "pickle that cannot be read"),
        "cut in the header": (lambda file: cut(file, 0.05), "no .npy file"),
        "text": (lambda file: file.write_text("sequences"), "no .npy file"),
        "a plain array": (lambda file: np.save(file, planted()), "array of float64"),
        "no sequences": (
            lambda file: np.save(file, np.array({"x": 1}, dtype=object), allow_pickle=True),
            "no sequences",
        ),
        "no sequence": (lambda file: write_mabe(file, {}), "no sequences"),
        "no keypoints": (
            lambda file: write_mabe(file, {"AB": {"annotations": np.ones((1, 3))}}),
            "AB has no keypoints",
        ),
        "a list": (keypoints([[1.0]]), "AB: keypoints are list"),
        "words": (keypoints(np.array([[[["a", "b"]]]])), "AB: keypoints are <U1"),
        "no frames": (keypoints(planted()[:0]), "AB has no frame"),
        "no animals": (keypoints(planted()[:, :0]), "AB has no animal"),
        "axes of CalMS21": (keypoints(POINTS), "source=calms21"),
        "flat": (keypoints(planted().reshape(7, -1)), r"float64.7, 12."),
        "infinite": (keypoints(np.where(planted() == 203.25, np.inf, planted())), "animal_1 is inf at frame 3"),
        "labels of another length": (keypoints(planted(), annotations=np.ones((1, 3))), "AB: annotations are .1, 3."),
        "labels without a name": (keypoints(planted(), annotations=np.ones((2, 7))), "annotations have .2. rows"),
        "NaN block": (keypoints(some(planted(), slice(2, 7), slice(None), 1)), "OK"),
    },
}
