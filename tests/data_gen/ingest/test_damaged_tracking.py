"""Damaged tracking files end in a message that names file and place, or in a recording that says what it lacks."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest

from data_gen.ingest.readers.calms21 import CalMS21, CalMS21Reader
from data_gen.ingest.readers.deeplabcut import DeepLabCutReader
from data_gen.ingest.readers.idtracker import IdTracker, IdTrackerReader
from data_gen.ingest.readers.mabe import MABe, MABeReader
from data_gen.ingest.readers.sleap import SleapReader
from data_gen.ingest.readers.tracking import Scored
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError
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
READ: dict[str, Callable[[Path], Any]] = {
    "idtracker": lambda path: IdTrackerReader(path, IdTracker()),
    "calms21": lambda path: CalMS21Reader(path, CalMS21(allow_pickle=True)),
    "deeplabcut": lambda path: DeepLabCutReader(path, Scored()),
    "sleap": lambda path: SleapReader(path, Scored()),
    "mabe": lambda path: MABeReader(path, MABe(allow_pickle=True, missing="nan")),
}


def read(source: str, file: Path) -> list[Recording]:
    return list(READ[source](file).recordings())


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
    elif source == "deeplabcut":
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
# Source, file, damage, and what the message or the recording has to say beside the file's name.
DAMAGED: dict[str, tuple[str, str, Callable[[Path], Any], str]] = {
    "idtracker: empty": ("idtracker", "t.txt", lambda file: file.write_text(""), "line 1"),
    "idtracker: header alone": ("idtracker", "t.txt", lines(lambda rows: rows[:1]), "no frame"),
    "idtracker: no header": ("idtracker", "t.txt", lines(lambda rows: rows[1:]), "line 1: '100.25'"),
    "idtracker: a word": ("idtracker", "t.txt", text(lambda all: all.replace("103.25", "left")), "column X1.*line 5.*left"),
    "idtracker: a row too short": ("idtracker", "t.txt", text(lambda all: all.replace("\t1.0\n", "\n", 3)), "line 2.*6 columns"),
    "idtracker: cut in a row": ("idtracker", "t.txt", lambda file: cut(file, 0.9), "TOLD the last line"),
    "idtracker: cut in the first row": ("idtracker", "t.txt", lambda file: cut(file, 0.2), "no frame"),
    "idtracker: X2 without Y2": ("idtracker", "t.txt", text(lambda all: all.replace("Y2", "Z2")), "line 1: 'Z2'"),
    "idtracker: a column twice": ("idtracker", "t.txt", text(lambda all: all.replace("X2", "X1")), "x1 stands there twice"),
    "idtracker: infinite": ("idtracker", "t.txt", text(lambda all: all.replace("10203.25", "inf")), "animal_2 is inf at frame 3"),
    "idtracker: all NaN": ("idtracker", "t.txt", text(lambda all: re.sub(r"\d+\.\d+", "NaN", all)), "no position was measured"),
    "idtracker: one animal NaN": ("idtracker", "t.txt", text(lambda all: re.sub(r"\b1?020\d\.25", "NaN", re.sub(r"\b20\d\.25", "NaN", all))), "TOLD animal_2 was never seen"),
    "idtracker: bytes": ("idtracker", "t.txt", lambda file: file.write_bytes(b"\xff\xfe\x00X1"), "as text"),
    "calms21: cut": ("calms21", "a.json", cut, "ends early"),
    "calms21: empty": ("calms21", "a.json", lambda file: file.write_text(""), "as JSON"),
    "calms21: a list": ("calms21", "a.json", lambda file: file.write_text("[1, 2]"), "no JSON object"),
    "calms21: no sequence": ("calms21", "a.json", lambda file: write_calms21(file, {}), "no JSON object"),
    "calms21: no keypoints": ("calms21", "a.json", sequence(keypoints=None), "mouse001 has no keypoints"),
    "calms21: other axes": ("calms21", "a.json", sequence(keypoints=planted(5, 2, 7).tolist()), "mouse001: keypoints are .5, 2, 7, 2."),
    "calms21: ragged": ("calms21", "a.json", sequence(keypoints=[POINTS[0].tolist(), [[1]]]), "mouse001: keypoints are no array"),
    "calms21: words": ("calms21", "a.json", sequence(keypoints=[[["a"]]]), "mouse001: keypoints are no array"),
    "calms21: no frames": ("calms21", "a.json", sequence(keypoints=[]), "mouse001: keypoints are .0."),
    "calms21: fewer labels": ("calms21", "a.json", sequence(annotations=[0, 1]), "mouse001 has 2 annotations and 5 frames"),
    "calms21: an unknown label": ("calms21", "a.json", sequence(annotations=[0, 1, 7, 0, 0]), "annotation is 7.0 at frame 2"),
    "calms21: no vocabulary": ("calms21", "a.json", sequence(metadata={}), "mouse001 has annotations but no metadata.vocab"),
    "calms21: broken within": ("calms21", "a.json", text(lambda all: all.replace("[0.9", "[0.9.9", 1)), "mouse001: this is no JSON"),
    "calms21: NaN block": ("calms21", "a.json", sequence(keypoints=some(POINTS.copy(), slice(None), 1).tolist()), "TOLD intruder was never seen"),
    "deeplabcut: cut": ("deeplabcut", "v.csv", lambda file: cut(file, 0.9), "TOLD the last line"),
    "deeplabcut: cut in the header": ("deeplabcut", "v.csv", lambda file: cut(file, 0.2), "first column begins with"),
    "deeplabcut: no frames": ("deeplabcut", "v.csv", lines(lambda rows: rows[:4]), "no frame"),
    "deeplabcut: shuffled rows": ("deeplabcut", "v.csv", lines(lambda rows: [*rows[:4], rows[6], rows[5]]), "row 1 is frame 1"),
    "deeplabcut: a row twice": ("deeplabcut", "v.csv", lines(lambda rows: [*rows[:6], rows[5], *rows[6:]]), "row 2 is frame 1"),
    "deeplabcut: a word": ("deeplabcut", "v.csv", text(lambda all: all.replace("103.25", "-")), "ann/nose/x: line 8"),
    "deeplabcut: no y": ("deeplabcut", "v.csv", text(lambda all: all.replace(",y,", ",likelihood,")), "stands there twice"),
    "deeplabcut: another coordinate": ("deeplabcut", "v.csv", text(lambda all: all.replace(",y,", ",w,")), "'w'"),
    "deeplabcut: a header row of another length": ("deeplabcut", "v.csv", text(lambda all: all.replace("tail\n", "tail,\n")), "header rows have"),
    "deeplabcut: a part all NaN": ("deeplabcut", "v.csv", lambda file: write_deeplabcut(file, some(planted(), slice(None), slice(None), 2), SURE, individuals=("ann", "bob")), "TOLD tail of ann, bob"),
    "deeplabcut h5: cut": ("deeplabcut", "v.h5", cut, "as HDF5"),
    "deeplabcut h5: text": ("deeplabcut", "v.h5", lambda file: file.write_text("scorer"), "as HDF5"),
    "deeplabcut h5: no table": ("deeplabcut", "v.h5", hdf(lambda found: found.__delitem__("df_with_missing")), "holds 0 tables"),
    "deeplabcut h5: no names": ("deeplabcut", "v.h5", hdf(lambda found: found["df_with_missing/table"].attrs.__delitem__("values_block_0_kind")), "no attribute values_block_0_kind"),
    "deeplabcut h5: code in the names": ("deeplabcut", "v.h5", hdf(lambda found: found["df_with_missing/table"].attrs.__setitem__("values_block_0_kind", np.bytes_(b"cos\nsystem\n(S'true'\ntR."))), "posix.system|os.system"),
    "deeplabcut h5: plain columns": ("deeplabcut", "v.h5", as_floats(["x", "y"]), "no levels"),
    "deeplabcut h5: no frames": ("deeplabcut", "v.h5", hdf(lambda found: found["df_with_missing/table"].resize((0,))), "no frame"),
    "sleap: cut": ("sleap", "v.h5", cut, "as HDF5"),
    "sleap: empty": ("sleap", "v.h5", lambda file: file.write_bytes(b""), "as HDF5"),
    "sleap: no tracks": ("sleap", "v.h5", hdf(lambda found: found.__delitem__("tracks")), "lacks tracks"),
    "sleap: no node names": ("sleap", "v.h5", hdf(lambda found: found.__delitem__("node_names")), "lacks node_names"),
    "sleap: no occupancy": ("sleap", "v.h5", hdf(lambda found: found.__delitem__("track_occupancy")), "lacks track_occupancy"),
    "sleap: whole numbers": ("sleap", "v.h5", instead("tracks", TRACKS.astype(int)), "tracks are int64"),
    "sleap: three axes": ("sleap", "v.h5", instead("tracks", TRACKS[0]), "four axes"),
    "sleap: no frames": ("sleap", "v.h5", instead("tracks", TRACKS[..., :0]), "no frame"),
    "sleap: no tracks left": ("sleap", "v.h5", instead("tracks", TRACKS[:0]), "no animal"),
    "sleap: axes swapped": ("sleap", "v.h5", instead("tracks", TRACKS.swapaxes(1, 2)), "2 axes of the plane"),
    "sleap: other names of axes": ("sleap", "v.h5", hdf(lambda found: found["tracks"].attrs.__setitem__("dims", '["a"]')), "names its axes"),
    "sleap: more names than tracks": ("sleap", "v.h5", instead("track_names", np.array([b"a", b"b", b"c"])), "3 names for 2 tracks"),
    "sleap: occupancy of another size": ("sleap", "v.h5", instead("track_occupancy", np.ones((9, 2))), "track_occupancy is .9, 2."),
    "sleap: all NaN": ("sleap", "v.h5", instead("tracks", np.full_like(TRACKS, np.nan)), "no position was measured"),
    "sleap: half a point": ("sleap", "v.h5", instead("tracks", some(TRACKS.copy(), 0, 1, 2, 3)), "TOLD 1 points lack an axis"),
    "mabe: cut": ("mabe", "a.npy", cut, "pickle that cannot be read"),
    "mabe: cut in the header": ("mabe", "a.npy", lambda file: cut(file, 0.05), "no .npy file"),
    "mabe: text": ("mabe", "a.npy", lambda file: file.write_text("sequences"), "no .npy file"),
    "mabe: a plain array": ("mabe", "a.npy", lambda file: np.save(file, planted()), "array of float64"),
    "mabe: no sequences": ("mabe", "a.npy", lambda file: np.save(file, np.array({"x": 1}, dtype=object), allow_pickle=True), "no sequences"),
    "mabe: no sequence": ("mabe", "a.npy", lambda file: write_mabe(file, {}), "no sequences"),
    "mabe: no keypoints": ("mabe", "a.npy", lambda file: write_mabe(file, {"AB": {"annotations": np.ones((1, 3))}}), "AB has no keypoints"),
    "mabe: a list": ("mabe", "a.npy", keypoints([[1.0]]), "AB: keypoints are list"),
    "mabe: words": ("mabe", "a.npy", keypoints(np.array([[[["a", "b"]]]])), "AB: keypoints are <U1"),
    "mabe: no frames": ("mabe", "a.npy", keypoints(planted()[:0]), "AB has no frame"),
    "mabe: no animals": ("mabe", "a.npy", keypoints(planted()[:, :0]), "AB has no animal"),
    "mabe: axes of CalMS21": ("mabe", "a.npy", keypoints(POINTS), "source=calms21"),
    "mabe: flat": ("mabe", "a.npy", keypoints(planted().reshape(7, -1)), r"float64.7, 12."),
    "mabe: infinite": ("mabe", "a.npy", keypoints(np.where(planted() == 203.25, np.inf, planted())), "animal_1 is inf at frame 3"),
    "mabe: labels of another length": ("mabe", "a.npy", keypoints(planted(), annotations=np.ones((1, 3))), "AB: annotations are .1, 3."),
    "mabe: labels without a name": ("mabe", "a.npy", keypoints(planted(), annotations=np.ones((2, 7))), "annotations have .2. rows"),
    "mabe: NaN block": ("mabe", "a.npy", keypoints(some(planted(), slice(2, 7), slice(None), 1)), "OK"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "name", "damage", "said"), DAMAGED.values(), ids=DAMAGED)
def test_damage_has_a_message(tmp_path: Path, source: str, name: str, damage: Callable[[Path], Any], said: str) -> None:
    file = tmp_path / name
    whole(source, file)
    assert all(not recording.dropped for recording in read(source, file)), "nothing is told of a file without fault"
    damage(file)
    if said == "OK":
        (found,) = read(source, file)
        assert found.dropped == () and np.isnan(found.position[2:, :, 1]).all() and found.present.all()
    elif said.startswith("TOLD "):
        (found,) = read(source, file)
        assert any(line.startswith(said[5:]) for line in found.dropped), found.dropped
    else:
        with pytest.raises(InputError, match=re.compile(f"{re.escape(name)}.*{said}", re.DOTALL)):
            read(source, file)


@pytest.mark.parametrize(("source", "name"), dict.fromkeys((row[0], row[1]) for row in DAMAGED.values()))
def test_a_file_cut_anywhere_or_with_a_wrong_byte_never_ends_otherwise(tmp_path: Path, source: str, name: str) -> None:
    file, random = tmp_path / name, np.random.default_rng(0)
    whole(source, file)
    content = file.read_bytes()
    hdf5 = file.suffix == ".h5"  # only cut: a wrong byte in its own tables can end the HDF5 library, and Python with it
    for _ in range(40):
        damaged = bytearray(content[: random.integers(len(content))] if hdf5 or random.random() < 0.5 else content)
        for place in random.integers(0, max(len(damaged), 1), 0 if hdf5 else random.integers(1, 4)):
            damaged[place : place + 1] = bytes([random.integers(256)])
        file.write_bytes(damaged)
        try:
            read(source, file)
        except InputError as error:
            assert name in str(error)


@pytest.mark.parametrize("source", READ)
def test_a_path_without_files_has_a_message(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match="does not exist"):
        READ[source](tmp_path / "none")
    (tmp_path / "notes.md").write_text("")
    with pytest.raises(InputError, match="notes.md is no"):
        READ[source](tmp_path / "notes.md")
    with pytest.raises(InputError, match="holds no"):
        READ[source](tmp_path)


def test_one_wrong_file_of_a_folder_is_named(tmp_path: Path) -> None:
    for day in range(3):
        write_deeplabcut(tmp_path / f"day{day}.csv", planted(), SURE, individuals=("ann", "bob"))
    (tmp_path / "day1.csv").write_text("time,x,y\n0,1,2\n")
    with pytest.raises(InputError, match="day1.csv"):
        read("deeplabcut", tmp_path)
    assert json.dumps(DeepLabCutReader(tmp_path, Scored(files="day[02].csv")).layout.provenance)
