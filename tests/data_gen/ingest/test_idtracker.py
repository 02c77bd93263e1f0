"""idTracker's text comes back, its estimates as the user wants them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers.idtracker import IdTracker, IdTrackerReader
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import idtracker_text, only, planted


def planted_places(length: int = 7, animals: int = 3) -> np.ndarray:
    return planted(length, animals, 1)[:, :, 0]


def test_places_come_back(tmp_path: Path) -> None:
    place, probability = planted_places(), np.full((7, 3), 0.97)
    place[2:4, 1] = np.nan
    probability[1] = np.nan  # files with gaps have no probabilities
    (tmp_path / "trajectories.txt").write_text(idtracker_text(place, probability))
    found = only(IdTrackerReader(tmp_path / "trajectories.txt", IdTracker(rate=32.0, unit="bl", pixels_per_unit=4.0)))
    np.testing.assert_array_equal(found.position[:, :, 0], (place / 4).astype(np.float32))
    assert found.agents == ("animal_1", "animal_2", "animal_3") and found.dropped == ()
    assert found.present[:, 1].tolist() == [True, True, False, False, True, True, True] and found.present[:, 0].all()
    np.testing.assert_allclose(found.time, np.arange(7) / 32)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 9), animals=st.integers(1, 12), missing=st.floats(0, 0.9), separator=st.sampled_from("\t,"),
    seed=st.integers(0, 2**16),
)  # fmt: skip
def test_any_text_comes_back(
    tmp_path: Path, length: int, animals: int, missing: float, separator: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    place = random.normal(500, 300, (length, animals, 2))
    place[random.random((length, animals)) < missing] = np.nan
    place[0, 0] = 1.5
    (tmp_path / "t.txt").write_text(idtracker_text(place, random.random((length, animals)), separator))
    found = only(IdTrackerReader(tmp_path / "t.txt", IdTracker()))
    np.testing.assert_array_equal(found.position[:, :, 0], place.astype(np.float32))
    np.testing.assert_array_equal(found.present, ~np.isnan(place[..., 0]))


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("seconds,y2,x2,x1,y1\n0.0,22,21,11,12\n0.1,24,23,13,14\n")
    found = only(IdTrackerReader(tmp_path / "t.csv", IdTracker(rate=10.0)))
    assert found.position[:, :, 0].tolist() == [[[11, 12], [21, 22]], [[13, 14], [23, 24]]]
    with pytest.raises(InputError, match="seconds say 10 frames a second, and rate=30"):
        only(IdTrackerReader(tmp_path / "t.csv", IdTracker(rate=30.0)))


@pytest.mark.parametrize("estimates", ["keep", "mask", "drop"])
def test_estimates(tmp_path: Path, estimates: str) -> None:
    place, probability = planted_places(), np.full((7, 3), 0.97)
    probability[2, 0], probability[4, 1], probability[5, 2] = -1, -2, -1
    probability[0, 0] = 0  # improbable, and measured
    place[5, 2] = np.nan  # no place: nothing was estimated
    (tmp_path / "t.txt").write_text(idtracker_text(place, probability))
    found = only(IdTrackerReader(tmp_path / "t.txt", IdTracker(rate=2.0, estimates=estimates)))
    kept = [0, 1, 3, 5, 6] if estimates == "drop" else list(range(7))
    if estimates == "mask":
        place[2, 0] = place[4, 1] = np.nan
    np.testing.assert_array_equal(found.position[:, :, 0], place[kept].astype(np.float32))
    np.testing.assert_array_equal(found.time, np.array(kept) / 2)
    assert found.dropped[0].startswith("2 places of 21 are the tracker's estimates")
    assert ("2 frames of 7 are left out for them" in found.dropped) == (estimates == "drop")


def test_a_session_with_and_without_gaps_is_one_recording(tmp_path: Path) -> None:
    for session in ("s1", "s2"):
        (tmp_path / session).mkdir()
        for kind in ("trajectories", "trajectories_nogaps"):
            (tmp_path / session / f"{kind}.txt").write_text(idtracker_text(planted_places(), np.ones((7, 3))))
    with pytest.raises(InputError, match="its gaps filled"):
        IdTrackerReader(tmp_path, IdTracker())
    reader = IdTrackerReader(tmp_path, IdTracker(files="**/*_nogaps.txt", group="^(s[0-9])/"))
    assert [(found.name, found.group) for found in reader.recordings()] == [
        ("s1/trajectories_nogaps", "s1"),
        ("s2/trajectories_nogaps", "s2"),
    ]


def test_a_line_that_was_cut_is_told(tmp_path: Path) -> None:
    text = idtracker_text(planted_places(), np.ones((7, 3)))
    (tmp_path / "t.txt").write_text(text[:-4])
    found = only(IdTrackerReader(tmp_path / "t.txt", IdTracker()))
    np.testing.assert_array_equal(found.position[:, :, 0], planted_places()[:6].astype(np.float32))
    assert found.dropped[0].startswith("the last line") and "cut" in found.dropped[0]
