"""MABe's dictionaries: what is missing in mice and flies, labels by their vocabulary, and pickles that are not run."""

import collections
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers.mabe import MABe, MABeReader
from data_gen.ingest.recording import LabelColumn
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import only, planted, write_mabe

PLAIN = MABe(allow_pickle=True)


def test_mice_and_flies_come_back(tmp_path: Path) -> None:
    mice = planted(6, 3, 4)
    mice[2:4, 1] = 0
    mice[5, 0, 2] = 0
    write_mabe(tmp_path / "mice.npy", {"AB12": {"keypoints": mice}})
    found = only(MABeReader(tmp_path / "mice.npy", MABe(allow_pickle=True, missing="zero", rate=30.0)))
    want = np.where((mice == 0).all(-1, keepdims=True), np.nan, mice)
    np.testing.assert_array_equal(found.position, want.astype(np.float32))
    assert found.present[:, 1].tolist() == [True, True, False, False, True, True] and found.present[:, [0, 2]].all()
    assert (found.name, found.group, found.agents[2]) == ("AB12", "AB12", "animal_2")

    write_mabe(tmp_path / "flies.npy", {"CD34": {"keypoints": want}})
    reader = MABeReader(tmp_path / "flies.npy", PLAIN)
    np.testing.assert_array_equal(only(reader).position, want.astype(np.float32))
    assert reader.layout.parts == ("part_0", "part_1", "part_2", "part_3")


def test_zero_is_missing_or_a_place_as_the_user_says(tmp_path: Path) -> None:
    mice = planted(6, 3, 4)
    mice[4, 2, 1] = 0
    mice[0, 0, 0, 0] = 0  # one axis of 0 is a place
    write_mabe(tmp_path / "mice.npy", {"AB12": {"keypoints": mice}})
    with pytest.raises(
        InputError, match="AB12: 1 points lie exactly at 0, the first of them part 1 of animal 2 at frame 4"
    ):
        only(MABeReader(tmp_path, PLAIN))
    found = only(MABeReader(tmp_path, MABe(allow_pickle=True, missing="nan")))
    np.testing.assert_array_equal(found.position, mice.astype(np.float32))
    found = only(MABeReader(tmp_path, MABe(allow_pickle=True, missing="zero")))
    assert np.argwhere(np.isnan(found.position[..., 0])).tolist() == [[4, 2, 1]]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=3), missing=st.floats(0, 0.9),
    protocol=st.integers(0, 5), seed=st.integers(0, 2**16), kind=st.sampled_from(["f4", "f8", "i2"]),
)  # fmt: skip
def test_any_dictionary_comes_back(tmp_path: Path, sizes, missing: float, protocol: int, seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    sequences = {}
    for number, (length, animals) in enumerate(sizes):
        position = random.integers(1, 900, (length, animals, 3, 2)).astype(kind)
        position[random.random((length, animals, 3)) < missing] = 0
        position[0, 0, 0] = 7
        sequences[f"s{number}"] = {"keypoints": position}
    with (tmp_path / "a.npy").open("wb") as stream:  # numpy.save of other versions pickles by other protocols
        np.lib.format.write_array_header_1_0(stream, {"shape": (), "fortran_order": False, "descr": "|O"})
        pickle.dump(np.array({"sequences": sequences}, dtype=object), stream, protocol=protocol)
    found = list(MABeReader(tmp_path, MABe(allow_pickle=True, missing="zero")).recordings())
    assert [recording.name for recording in found] == list(sequences)
    for recording in found:
        position = sequences[recording.name]["keypoints"].astype(np.float32)
        position[(position == 0).all(-1)] = np.nan
        np.testing.assert_array_equal(recording.position, position)
        np.testing.assert_array_equal(recording.present, ~np.isnan(position).all((2, 3)))


def test_labels_by_task(tmp_path: Path) -> None:
    first = {"keypoints": planted(4), "annotations": np.array([[0, 1, 1, 0], [1, 1, 1, 1], [0.5, 2, -1, np.nan]])}
    second = {"keypoints": planted(3), "annotations": np.array([[1, np.nan, 0], [0, 0, 0], [1, 1, 1]])}
    third = {"keypoints": planted(2)}
    write_mabe(tmp_path / "a.npy", {"a": first, "b": second, "c": third}, vocabulary=["chases", "lights", "speed"])
    reader = MABeReader(tmp_path, PLAIN)
    assert reader.layout.labels == (
        LabelColumn("chases", "frame", "class", ("no", "yes")),
        LabelColumn("lights", "frame", "class", ("no", "yes")),
        LabelColumn("speed", "frame", "real"),
    )
    a, b, c = reader.recordings()
    assert a.labels["chases"].tolist() == [0, 1, 1, 0] and b.labels["chases"].tolist() == [1, -1, 0]
    assert c.labels["lights"].tolist() == [-1, -1] and np.isnan(c.labels["speed"]).all()
    np.testing.assert_array_equal(a.labels["speed"], [0.5, 2, np.nan, np.nan])


def test_labels_of_classes(tmp_path: Path) -> None:
    sequence = {"keypoints": planted(4), "annotations": np.array([2, 0, 1, 2])}
    write_mabe(tmp_path / "a.npy", {"a": sequence}, vocabulary={"mount": 2, "attack": 0, "other": 1})
    reader = MABeReader(tmp_path, PLAIN)
    assert reader.layout.labels == (LabelColumn("behavior", "frame", "class", ("attack", "other", "mount")),)
    assert only(reader).labels["behavior"].tolist() == [2, 0, 1, 2]
    write_mabe(tmp_path / "a.npy", {"a": sequence})
    reader = MABeReader(tmp_path, PLAIN)
    assert reader.layout.labels == () and only(reader).dropped == ("annotations without a vocabulary are left out",)


def test_parts_are_named_by_the_user(tmp_path: Path) -> None:
    write_mabe(tmp_path / "a.npy", {"a": {"keypoints": planted()}})
    assert MABeReader(tmp_path, MABe(allow_pickle=True, parts=["nose", "mid", "tail"])).layout.parts[2] == "tail"
    with pytest.raises(InputError, match=r"parts names 2 body parts; .*a\.npy has 3"):
        MABeReader(tmp_path, MABe(allow_pickle=True, parts=["nose", "mid"]))


def test_a_pickle_needs_to_be_allowed(tmp_path: Path) -> None:
    write_mabe(tmp_path / "a.npy", {"a": {"keypoints": planted()}})
    with pytest.raises(InputError, match=r"a\.npy is a pickle.*code.*allow_pickle=true"):
        MABeReader(tmp_path, MABe())


class Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("what", ["code", "a function", "a class", "an array in an array"])
def test_a_pickle_of_more_than_data_is_refused_and_not_run(tmp_path: Path, what: str) -> None:
    evil = {
        "code": Evil(tmp_path / "run"),
        "a function": np.load,
        "a class": collections.Counter("aab"),
        "an array in an array": np.array([Evil(tmp_path / "run")], dtype=object),
    }[what]
    write_mabe(tmp_path / "a.npy", {"a": {"keypoints": evil}})
    with pytest.raises(InputError, match=r"a\.npy holds a pickle.*no plain data"):
        MABeReader(tmp_path, PLAIN)
    assert not (tmp_path / "run").exists()
    np.load(tmp_path / "a.npy", allow_pickle=True)  # as everybody else would
    assert (tmp_path / "run").exists() == (what in ("code", "an array in an array"))
