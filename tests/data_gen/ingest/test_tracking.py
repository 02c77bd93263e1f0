"""Settings of tracking readers are checked before any file is, and a reader holds one recording at a time."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from data_gen.ingest.readers.calms21 import CalMS21, CalMS21Reader
from data_gen.ingest.readers.deeplabcut import DeepLabCutReader
from data_gen.ingest.readers.idtracker import IdTracker
from data_gen.ingest.readers.mabe import MABe
from data_gen.ingest.readers.sleap import SleapReader
from data_gen.ingest.readers.tracking import Scored, Tracking, files_of, layout_of, recording_of
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import calms21_sequence, planted, write_calms21, write_deeplabcut, write_sleap

WRONG = {
    "rate=-1": (Tracking, {"rate": -1.0}),
    "rate=nan": (Tracking, {"rate": float("nan")}),
    "pixels_per_unit=0.0": (Tracking, {"pixels_per_unit": 0.0}),
    "name it, unit=cm": (Tracking, {"pixels_per_unit": 4.0}),
    "is not a regular expression": (Tracking, {"group": "(mouse"}),
    "one group in parentheses": (Tracking, {"group": "mouse[0-9]+"}),
    "must lie in 0..1": (Scored, {"least_likelihood": 60.0}),
    "keep, mask, drop": (IdTracker, {"estimates": "no"}),
    "nan, zero": (MABe, {"missing": "0"}),
    "names a body part twice": (MABe, {"parts": ["a", "a"]}),
    "least_likelihood=-0.1": (CalMS21, {"least_likelihood": -0.1}),
}


@pytest.mark.parametrize("said", WRONG)
def test_wrong_settings_have_a_message(said: str) -> None:
    kind, given = WRONG[said]
    with pytest.raises(InputError, match=said):
        kind(**given)


def test_a_group_that_is_not_in_every_name_is_refused(tmp_path: Path) -> None:
    for name in ("m1_a", "m2_a", "control"):
        write_sleap(tmp_path / f"{name}.h5", planted(), np.ones((7, 2, 3)))
    with pytest.raises(InputError, match=r"control\.h5: group='\^\(m\.\)' finds nothing in the name 'control'"):
        list(SleapReader(tmp_path, Scored(group="^(m.)")).recordings())
    found = list(SleapReader(tmp_path, Scored(group="^(m.)", files="m*.h5")).recordings())
    assert [(recording.name, recording.group) for recording in found] == [("m1_a", "m1"), ("m2_a", "m2")]


def test_files_are_in_one_order_and_named_below_the_folder(tmp_path: Path) -> None:
    for name in ("b/2.csv", "a/10.CSV", "a/9.csv", "c.txt", "z.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(files_of(tmp_path, Tracking(), (".csv",))) == ["a/10", "a/9", "b/2", "z"]
    assert list(files_of(tmp_path, Tracking(files="a/*"), (".csv",))) == ["a/10", "a/9"]
    with pytest.raises(InputError, match="is no pattern of files"):
        files_of(tmp_path, Tracking(files="/a/*"), (".csv",))


def recorded(position: np.ndarray):
    made = layout_of("test", Tracking(), ("nose", "mid", "tail"), ("x", "y"), provenance={})
    return recording_of(
        position, name="one", group="one", file="one.csv", agents=["ann", "bob"], layout=made, settings=Tracking()
    )


def test_what_was_never_measured_is_told_and_half_a_point_is_none() -> None:
    position = planted()
    position[:, 1, 2] = np.nan
    position[3, 0, 1, 0] = np.nan
    found = recorded(position)
    position[3, 0, 1] = np.nan
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert found.dropped == (
        "1 points lack an axis and are taken as missing",
        "tail of bob was never measured and stays missing",
    )
    position = planted()
    position[:, 1] = np.nan
    found = recorded(position)
    assert found.dropped == ("bob was never seen",) and not found.present[:, 1].any() and found.present[:, 0].all()
    assert found.actions.shape == (7, 2, 0) and not found.rewards.any() and not found.terminated


def test_a_value_that_float32_cannot_hold_is_refused() -> None:
    position = planted()
    position[4, 1, 2, 1] = 1e39
    with pytest.raises(InputError, match=r"one\.csv: the position of tail of bob is 1e\+39 at frame 4"):
        recorded(position)


@pytest.mark.parametrize("source", ["sleap", "deeplabcut", "calms21"])
def test_one_recording_is_held_at_a_time(tmp_path: Path, source: str) -> None:
    """Eight recordings take little more memory than two of the same length."""
    peaks = []
    for number in (2, 8):
        folder = tmp_path / str(number)
        folder.mkdir()
        for n in range(1 if source == "calms21" else number):
            if source == "sleap":
                write_sleap(folder / f"{n}.h5", planted(4_000), np.ones((4_000, 2, 3)))
            elif source == "deeplabcut":
                write_deeplabcut(
                    folder / f"{n}.h5", planted(4_000), np.ones((4_000, 2, 3)), individuals=("a", "b"), layout="fixed"
                )
            else:
                write_calms21(folder / "a.json", {f"mouse{n}": calms21_sequence(200) for n in range(number)})
        tracemalloc.start()
        kinds = {"sleap": SleapReader, "deeplabcut": DeepLabCutReader}
        reader = CalMS21Reader(folder, CalMS21()) if source == "calms21" else kinds[source](folder, Scored())
        assert sum(1 for _ in reader.recordings()) == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0], peaks
