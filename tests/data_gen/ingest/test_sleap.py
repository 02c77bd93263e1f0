"""SLEAP's analysis files come back in every order of their axes."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers.sleap import SleapReader
from data_gen.ingest.readers.tracking import Scored
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import only, planted, write_sleap

SURE = np.full((7, 2, 3), 0.9)
ORDERS = (("track", "xy", "node", "frame"), ("frame", "track", "node", "xy"), ("node", "xy", "frame", "track"))


@pytest.mark.parametrize("dims", ORDERS)
def test_tracks_come_back(tmp_path: Path, dims) -> None:
    position = planted()
    position[2:4, 1] = np.nan
    position[5, 0, 1] = np.nan
    write_sleap(tmp_path / "video.h5", position, SURE, dims=dims)
    reader = SleapReader(tmp_path / "video.h5", Scored(rate=25.0))
    found = only(reader)
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert found.agents == ("ann", "bob") and reader.layout.parts == ("nose", "mid", "tail")
    assert found.present.T.tolist() == [[True] * 7, [True, True, False, False, True, True, True]]
    np.testing.assert_allclose(found.time, np.arange(7) / 25)
    assert found.dropped == ()


def test_files_of_sleap_itself_name_no_axes(tmp_path: Path) -> None:
    write_sleap(tmp_path / "video.h5", planted(), SURE)
    with h5py.File(tmp_path / "video.h5", "a") as found:
        del found["tracks"].attrs["dims"]
    np.testing.assert_array_equal(only(SleapReader(tmp_path, Scored())).position, planted().astype(np.float32))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 9), animals=st.integers(1, 4), missing=st.floats(0, 0.9), dims=st.permutations(ORDERS[0]),
    seed=st.integers(0, 2**16),
)  # fmt: skip
def test_any_tracks_come_back(tmp_path: Path, length: int, animals: int, missing: float, dims, seed: int) -> None:
    random = np.random.default_rng(seed)
    position = random.normal(500, 300, (length, animals, 3, 2))
    position[random.random((length, animals, 3)) < missing] = np.nan
    position[0, 0, 0] = 1.5
    names = [f"track {n}" for n in random.permutation(animals)]
    score = random.random((length, animals, 3))
    write_sleap(tmp_path / "video.h5", position, score, names, dims=dims)
    found = only(SleapReader(tmp_path / "video.h5", Scored(least_likelihood=0.0)))
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert found.agents == tuple(names)
    score[0, 0, 0] = 1.0
    write_sleap(tmp_path / "video.h5", position, score, names, dims=dims)
    found = only(SleapReader(tmp_path / "video.h5", Scored(least_likelihood=0.5)))
    position[score < 0.5] = np.nan
    np.testing.assert_array_equal(found.position, position.astype(np.float32))


def test_nodes_of_another_order_are_matched_by_name(tmp_path: Path) -> None:
    write_sleap(tmp_path / "a.h5", planted(), SURE)
    write_sleap(tmp_path / "b.h5", planted()[:, :, [2, 0, 1]], SURE, nodes=("tail", "nose", "mid"))
    for found in SleapReader(tmp_path, Scored()).recordings():
        np.testing.assert_array_equal(found.position, planted().astype(np.float32))
    write_sleap(tmp_path / "c.h5", planted(), SURE, nodes=("nose", "mid", "ear"))
    with pytest.raises(InputError, match=r"c\.h5 and .*a\.h5 do not track the same body parts: ear"):
        SleapReader(tmp_path, Scored())


def test_the_number_of_animals_may_differ_and_tracks_without_names_are_numbered(tmp_path: Path) -> None:
    write_sleap(tmp_path / "a.h5", planted(4, 3), np.ones((4, 3, 3)), ("", "", ""))
    write_sleap(tmp_path / "b.h5", planted(5, 1), np.ones((5, 1, 3)), ("ann",))
    a, b = SleapReader(tmp_path, Scored()).recordings()
    assert a.agents == ("track_0", "track_1", "track_2") and b.agents == ("ann",)
    np.testing.assert_array_equal(a.position, planted(4, 3).astype(np.float32))
    assert a.position.shape[:2] == (4, 3) and b.position.shape[:2] == (5, 1)


def test_an_instance_without_places_is_missing(tmp_path: Path) -> None:
    position = planted()
    position[3, 0] = np.nan
    write_sleap(tmp_path / "video.h5", position, SURE)
    with h5py.File(tmp_path / "video.h5", "a") as found:
        found["track_occupancy"][3, 0] = 1
    found = only(SleapReader(tmp_path, Scored()))
    assert not found.present[3, 0] and found.dropped[0].startswith("1 instances have no node")
