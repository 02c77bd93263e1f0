"""Damaged tracking files end in a message that names file and place, or in a recording that says what it lacks."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from data_gen.ingest.readers.calms21 import CalMS21, CalMS21Reader
from data_gen.ingest.readers.deeplabcut import DeepLabCutReader
from data_gen.ingest.readers.idtracker import IdTracker, IdTrackerReader
from data_gen.ingest.readers.mabe import MABe, MABeReader
from data_gen.ingest.readers.sleap import SleapReader
from data_gen.ingest.readers.tracking import Scored
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError
from tests.data_gen.ingest.tracking_damage import DAMAGED, NAMES, SURE, whole
from tests.data_gen.ingest.tracking_files import planted, write_deeplabcut

READ: dict[str, Callable[[Path], Any]] = {
    "idtracker": lambda path: IdTrackerReader(path, IdTracker()),
    "calms21": lambda path: CalMS21Reader(path, CalMS21(allow_pickle=True)),
    "deeplabcut": lambda path: DeepLabCutReader(path, Scored()),
    "sleap": lambda path: SleapReader(path, Scored()),
    "mabe": lambda path: MABeReader(path, MABe(allow_pickle=True, missing="nan")),
}


def read(source: str, file: Path) -> list[Recording]:
    return list(READ[source.split(" ")[0]](file).recordings())


@pytest.mark.parametrize(("source", "kind"), [(source, kind) for source in DAMAGED for kind in DAMAGED[source]])
def test_damage_has_a_message(tmp_path: Path, source: str, kind: str) -> None:
    name, (damage, said) = NAMES[source], DAMAGED[source][kind]
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


@pytest.mark.parametrize("source", NAMES)
def test_a_file_cut_anywhere_or_with_a_wrong_byte_never_ends_otherwise(tmp_path: Path, source: str) -> None:
    name, random = NAMES[source], np.random.default_rng(0)
    file = tmp_path / name
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
