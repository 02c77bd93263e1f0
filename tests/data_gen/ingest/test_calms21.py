"""CalMS21: axes in its own order, behaviours by their vocabulary, sequences of one mouse in one group."""

import json
from pathlib import Path

import numpy as np
import pytest

from data_gen.ingest.readers.calms21 import PARTS, CalMS21, CalMS21Reader
from data_gen.ingest.readers.json_members import find_members
from data_gen.ingest.recording import LabelColumn
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import VOCABULARY, calms21_sequence, only, planted, write_calms21

ONE = "task1/train/mouse001_task1_annotator1"
TWO = "task1/train/mouse002_task1_annotator1"


@pytest.mark.parametrize("kind", ["json", "npy"])
def test_sequences_come_back(tmp_path: Path, kind: str) -> None:
    sequences = {ONE: calms21_sequence(5), TWO: calms21_sequence(3)}
    if kind == "json":
        write_calms21(tmp_path / "train.json", sequences)
    else:
        arrays = ("keypoints", "scores", "annotations")
        content = {name: value | {key: np.array(value[key]) for key in arrays} for name, value in sequences.items()}
        np.save(tmp_path / "train.npy", np.array({"annotator-id_0": content}, dtype=object), allow_pickle=True)
    reader = CalMS21Reader(tmp_path, CalMS21(allow_pickle=kind == "npy"))
    assert (
        reader.layout.agents == ("resident", "intruder") and reader.layout.parts == PARTS and reader.layout.rate == 30
    )
    assert reader.layout.labels == (LabelColumn("behavior", "frame", "class", tuple(VOCABULARY)),)
    for _ in range(2):
        one, two = reader.recordings()
        np.testing.assert_array_equal(one.position, planted(5, 2, 7).astype(np.float32))
        np.testing.assert_array_equal(two.position, planted(3, 2, 7).astype(np.float32))
        assert one.labels["behavior"].tolist() == [0, 1, 2, 3, 0] and one.present.all()
        assert (one.name, one.group, two.group) == (ONE, "mouse001", "mouse002")


def test_one_mouse_is_one_group_and_another_name_its_own(tmp_path: Path) -> None:
    names = [ONE, "task2/train/mouse001_task2_annotator3", "unlabeled/session_9"]
    write_calms21(tmp_path / "a.json", {name: calms21_sequence(3) for name in names})
    groups = [found.group for found in CalMS21Reader(tmp_path, CalMS21()).recordings()]
    assert groups == ["mouse001", "mouse001", "unlabeled/session_9"]
    with pytest.raises(InputError, match="a.json: group='.*' finds nothing in the name 'unlabeled/session_9'"):
        list(CalMS21Reader(tmp_path, CalMS21(group=r"mouse(\d+)")).recordings())


def test_sequences_without_labels_are_unknown(tmp_path: Path) -> None:
    plain = calms21_sequence(4)
    del plain["annotations"]
    write_calms21(tmp_path / "a.json", {ONE: calms21_sequence(5), TWO: plain})
    one, two = CalMS21Reader(tmp_path, CalMS21()).recordings()
    assert two.labels["behavior"].tolist() == [-1] * 4 and one.labels["behavior"].tolist() == [0, 1, 2, 3, 0]
    write_calms21(tmp_path / "a.json", {TWO: plain})
    reader = CalMS21Reader(tmp_path, CalMS21())
    assert reader.layout.labels == () and only(reader).labels == {}


def test_vocabularies_and_annotators_are_told_apart(tmp_path: Path) -> None:
    groom = calms21_sequence(3, metadata={"vocab": {"other": 0, "groom": 1}}, annotations=[0, 1, 1])
    sniff = calms21_sequence(3, metadata={"vocab": {"sniff": 1, "other": 0}}, annotations=[1, 0, 1])
    content = {"groom": {"mouse001_a": groom}, "sniff": {"mouse002_a": sniff, "mouse001_a": sniff}}
    (tmp_path / "task3.json").write_text(json.dumps(content))
    reader = CalMS21Reader(tmp_path, CalMS21())
    assert [(label.name, label.classes) for label in reader.layout.labels] == [
        ("behavior_groom", ("other", "groom")),
        ("behavior_sniff", ("other", "sniff")),
        ("annotator", ("groom", "sniff")),
    ]
    found = {recording.name: recording.labels for recording in reader.recordings()}
    assert list(found) == ["mouse001_a", "mouse002_a", "sniff/mouse001_a"]
    assert found["mouse001_a"]["behavior_groom"].tolist() == [0, 1, 1]
    assert found["mouse001_a"]["behavior_sniff"].tolist() == [-1] * 3
    assert found["sniff/mouse001_a"]["behavior_sniff"].tolist() == [1, 0, 1]
    assert [int(labels["annotator"]) for labels in found.values()] == [0, 1, 1]


def test_low_scores_and_nulls_are_missing(tmp_path: Path) -> None:
    sequence = calms21_sequence(5)
    sequence["scores"][2][1][4] = 0.1
    sequence["keypoints"][3][0][0][6] = sequence["keypoints"][3][0][1][6] = None
    write_calms21(tmp_path / "a.json", {ONE: sequence})
    found = only(CalMS21Reader(tmp_path, CalMS21(least_likelihood=0.3)))
    assert np.argwhere(np.isnan(found.position[..., 0])).tolist() == [[2, 1, 4], [3, 0, 6]]
    assert found.dropped == ("1 of 69 points scored below least_likelihood=0.3 and are taken as missing",)


def test_members_are_found_whatever_the_texts_hold(tmp_path: Path) -> None:
    content = {"a {": {'b "}\\': {"text": "} {", "inner": {"deep": {"x": 1}}, "é": [1, {"y": 2}]}, "c": {}}}
    for indent in (None, 2):
        (tmp_path / "a.json").write_text(json.dumps(content, indent=indent, ensure_ascii=False))
        first, second = find_members(tmp_path / "a.json")
        raw = (tmp_path / "a.json").read_bytes()
        assert (first.outer, first.inner, second.inner) == ("a {", 'b "}\\', "c")
        assert json.loads(raw[first.span]) == content["a {"]['b "}\\'] and json.loads(raw[second.span]) == {}
        assert json.loads(raw[first.objects["inner"]]) == {"deep": {"x": 1}} and second.objects == {}
