"""DeepLabCut's tables come back as they were written, by pandas, in every layout that it writes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers.deeplabcut import DeepLabCutReader
from data_gen.ingest.readers.tracking import Scored
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_files import only, planted, write_deeplabcut

SURE = np.full((7, 2, 3), 0.9)
FILES = (("video.csv", "table"), ("video.h5", "table"), ("video.h5", "fixed"))


@pytest.mark.parametrize(("file", "layout"), FILES)
def test_several_animals_come_back(tmp_path: Path, file: str, layout: str) -> None:
    position = planted()
    position[2:4, 1] = np.nan
    position[5, 0, 1] = np.nan
    write_deeplabcut(tmp_path / file, position, SURE, individuals=("ann", "bob"), layout=layout)
    reader = DeepLabCutReader(tmp_path / file, Scored(rate=30.0))
    found = only(reader)
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert found.agents == ("ann", "bob") and reader.layout.parts == ("nose", "mid", "tail")
    assert found.present.T.tolist() == [[True] * 7, [True, True, False, False, True, True, True]]
    np.testing.assert_allclose(found.time, np.arange(7) / 30)
    assert found.name == found.group == "video" and found.dropped == ()
    assert reader.layout.axes == ("x", "y") and reader.layout.rate == 30 and reader.layout.units["time"] == "s"


@pytest.mark.parametrize(("file", "layout"), FILES)
def test_one_animal_in_three_axes_comes_back(tmp_path: Path, file: str, layout: str) -> None:
    position = planted(4, 1, 3, 3)
    write_deeplabcut(tmp_path / file, position, np.ones((4, 1, 3)), layout=layout)
    reader = DeepLabCutReader(tmp_path / file, Scored())
    found = only(reader)
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert reader.layout.axes == ("x", "y", "z") and found.agents == ("animal",)
    np.testing.assert_array_equal(found.time, np.arange(4))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    length=st.integers(1, 9), animals=st.integers(1, 4), missing=st.floats(0, 0.9), kind=st.sampled_from(FILES),
    seed=st.integers(0, 2**16),
)  # fmt: skip
def test_any_table_comes_back(tmp_path: Path, length: int, animals: int, missing: float, kind, seed: int) -> None:
    random = np.random.default_rng(seed)
    position = random.normal(500, 300, (length, animals, 3, 2))
    position[random.random((length, animals, 3)) < missing] = np.nan
    position[0, 0, 0] = 1.5
    names = [f"m{n}" for n in random.permutation(animals)]
    write_deeplabcut(tmp_path / kind[0], position, np.ones(position.shape[:3]), individuals=names, layout=kind[1])
    found = only(DeepLabCutReader(tmp_path / kind[0], Scored()))
    np.testing.assert_array_equal(found.position, position.astype(np.float32))
    assert found.agents == tuple(names)
    np.testing.assert_array_equal(found.present, ~np.isnan(position).all((2, 3)))


def test_unlikely_points_are_missing(tmp_path: Path) -> None:
    likelihood = SURE.copy()
    likelihood[3, 1, 2], likelihood[0, 0, 0] = 0.4, 0.5
    write_deeplabcut(tmp_path / "video.csv", planted(), likelihood, individuals=("ann", "bob"))
    found = only(DeepLabCutReader(tmp_path / "video.csv", Scored(least_likelihood=0.5)))
    assert np.isnan(found.position[3, 1, 2]).all() and np.isnan(found.position).sum() == 2
    assert found.dropped == ("1 of 42 points scored below least_likelihood=0.5 and are taken as missing",)


def test_parts_of_nobody_and_parts_never_seen_are_told(tmp_path: Path) -> None:
    position = planted(7, 3)
    position[:, 0, 1] = np.nan
    position[:, 2, 0] = np.nan  # the arena's corners
    write_deeplabcut(tmp_path / "video.csv", position, np.ones((7, 3, 3)), individuals=("ann", "bob", "single"))
    found = only(DeepLabCutReader(tmp_path / "video.csv", Scored()))
    np.testing.assert_array_equal(found.position, position[:, :2].astype(np.float32))
    assert found.agents == ("ann", "bob") and found.present.all()
    assert [line.split(" ")[0] for line in found.dropped] == ["the", "mid"] and "ann" in found.dropped[1]


@pytest.mark.parametrize("file", ["video.csv", "video.h5"])
def test_a_part_that_an_animal_does_not_have_is_missing(tmp_path: Path, file: str) -> None:
    table = write_deeplabcut(tmp_path / file, planted(), SURE, individuals=("ann", "bob"))
    table = table[[column for column in table.columns if column[1:3] != ("ann", "mid")]]
    if file.endswith("csv"):
        table.to_csv(tmp_path / file)
    else:
        table.to_hdf(tmp_path / file, key="tracks", format="table", mode="w")
    reader = DeepLabCutReader(tmp_path / file, Scored(least_likelihood=0.5))
    position = planted()
    position[:, 0, 1] = np.nan
    found = only(reader)
    order = [reader.layout.parts.index(part) for part in ("nose", "mid", "tail")]
    np.testing.assert_array_equal(found.position[:, :, order], position.astype(np.float32))
    assert found.dropped == ("mid of ann was never measured and stays missing",)


def test_frames_keep_their_numbers(tmp_path: Path) -> None:
    frames = [3, 4, 8, 9, 10, 11, 20]
    for file in ("video.csv", "video.h5"):
        write_deeplabcut(tmp_path / file, planted(), SURE, individuals=("ann", "bob"), frames=frames)
        found = only(DeepLabCutReader(tmp_path / file, Scored(rate=10.0)))
        np.testing.assert_allclose(found.time, np.array(frames) / 10)


def test_a_folder_holds_recordings_of_different_animals(tmp_path: Path) -> None:
    for animal in ("m1", "m2"):
        (tmp_path / animal).mkdir()
        for day in (1, 2):
            names = ("ann", "bob")[:day]
            position = planted(3, day) * day
            parts = ("nose", "mid", "tail") if animal == "m1" else ("tail", "nose", "mid")
            order = [("nose", "mid", "tail").index(part) for part in parts]
            file = tmp_path / animal / f"day{day}.csv"
            write_deeplabcut(file, position[:, :, order], np.ones((3, day, 3)), individuals=names, parts=parts)
    reader = DeepLabCutReader(tmp_path, Scored(group="(m[0-9])/"))
    for _ in range(2):  # the same at every call
        found = list(reader.recordings())
        assert [recording.name for recording in found] == ["m1/day1", "m1/day2", "m2/day1", "m2/day2"]
        assert [recording.group for recording in found] == ["m1", "m1", "m2", "m2"]
        assert [len(recording.agents) for recording in found] == [1, 2, 1, 2]
        for recording in found:  # parts are matched by name, not by place
            day = int(recording.name[-1])
            np.testing.assert_array_equal(recording.position, (planted(3, day) * day).astype(np.float32))


def test_two_versions_of_a_recording_are_refused(tmp_path: Path) -> None:
    write_deeplabcut(tmp_path / "video.csv", planted(), SURE, individuals=("ann", "bob"))
    write_deeplabcut(tmp_path / "video.h5", planted(), SURE, individuals=("ann", "bob"))
    with pytest.raises(InputError, match=r"video.csv and .*video.h5 have one name.*files='\*\*/\*.h5'"):
        DeepLabCutReader(tmp_path, Scored())
    (tmp_path / "video.csv").unlink()
    write_deeplabcut(tmp_path / "video_filtered.h5", planted(), SURE, individuals=("ann", "bob"))
    with pytest.raises(InputError, match="another version"):
        DeepLabCutReader(tmp_path, Scored())
    assert only(DeepLabCutReader(tmp_path, Scored(files="*_filtered.h5"))).name == "video_filtered"


def test_units_are_divided_once(tmp_path: Path) -> None:
    write_deeplabcut(tmp_path / "video.csv", planted(), SURE, individuals=("ann", "bob"))
    reader = DeepLabCutReader(tmp_path / "video.csv", Scored(unit="cm", pixels_per_unit=8.0))
    np.testing.assert_array_equal(only(reader).position, (planted() / 8).astype(np.float32))
    assert reader.layout.units == {"position": "cm", "time": "frame"}


def test_labelled_images_are_no_recording(tmp_path: Path) -> None:
    images = pd.MultiIndex.from_tuples([("labeled-data", "video", f"img{t}.png") for t in range(7)])
    for file in ("labels.csv", "labels.h5"):
        write_deeplabcut(tmp_path / file, planted(), SURE, individuals=("ann", "bob"), frames=images, layout="fixed")
        with pytest.raises(InputError, match=file):
            only(DeepLabCutReader(tmp_path / file, Scored()))
