"""Places on a map grid keep their steps, and a column that cannot be of agents is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader
from data_gen.ingest.treatment import Treatment, episodes_of
from data_gen.trajectory import InputError

EAST, NORTH = 437_512.25, 4_612_873.5


def asked(**changed) -> Columns:
    return Columns(**{"episode": "day", "time": "t", "agent": "who", "position": ["x", "y"], **changed})


def tracks(folder: Path, away: tuple[float, float], frames: int = 40, name: str = "t.csv") -> tuple[Path, np.ndarray]:
    """Two animals that take steps of some centimetres, and their places [2, T, 2] in double precision."""
    moves = np.random.default_rng(0).normal(scale=0.05, size=(2, frames, 2))
    place = np.cumsum(moves, axis=1) + away
    rows = [("d", t, f"a{n}", *place[n, t]) for n in range(2) for t in range(frames)]
    pd.DataFrame(rows, columns=["day", "t", "who", "x", "y"]).to_csv(folder / name, index=False)
    return folder / name, place


def test_steps_far_from_zero_are_those_of_double_precision(tmp_path: Path) -> None:
    path, place = tracks(tmp_path, (EAST, NORTH))
    reader = TableReader(path, asked())
    assert reader.layout.origin == (440_000.0, 4_610_000.0)
    (found,) = reader.recordings()
    kept = found.position[:, :, 0].astype(float) + reader.layout.origin
    np.testing.assert_allclose(kept, place.swapaxes(0, 1), atol=3e-4, rtol=0)
    how = Treatment(action="displacement", permute=False)
    (one,), _ = episodes_of(found, reader.layout, how, 2)
    wanted = np.diff(place, axis=1).swapaxes(0, 1)
    np.testing.assert_allclose(one.actions[:-1], wanted, atol=5e-4, rtol=0)
    narrow = np.diff(place.astype(np.float32), axis=1).swapaxes(0, 1)
    assert np.abs(narrow - wanted).max() > 0.1, "what single precision alone would make of it"


def test_what_is_near_stays_as_it_is_and_an_origin_can_be_given(tmp_path: Path) -> None:
    path, place = tracks(tmp_path, (900.0, -60_000.0))
    reader = TableReader(path, asked())
    assert reader.layout.origin == (0.0, 0.0)
    np.testing.assert_array_equal(next(reader.recordings()).position[:, :, 0], place.swapaxes(0, 1).astype(np.float32))
    given = TableReader(path, asked(origin=[900.0, -60_000.0]))
    assert given.layout.origin == (900.0, -60_000.0)
    moved = (place - given.layout.origin).swapaxes(0, 1)
    np.testing.assert_allclose(next(given.recordings()).position[:, :, 0], moved, rtol=1e-6)
    for origin, words in (([1.0], "a number for each of"), ([1.0, np.inf], "finite")):
        with pytest.raises(InputError, match=words):
            asked(origin=origin)


def test_parts_share_an_origin_and_one_site_has_one(tmp_path: Path) -> None:
    path, place = tracks(tmp_path, (EAST, 0.0))
    table = pd.read_csv(path).rename(columns={"x": "nose_x", "y": "nose_y"})
    table = table.assign(tail_x=table.nose_x + 1, tail_y=table.nose_y + 1)
    table.loc[3, "tail_x"] = np.nan
    table.assign(speed=EAST).to_parquet(tmp_path / "t.parquet", index=False)
    reader = TableReader(tmp_path / "t.parquet", asked(parts=["nose", "tail"], features=["speed"]))
    assert reader.layout.origin == (440_000.0, 0.0)
    (found,) = reader.recordings()
    np.testing.assert_allclose(found.position[:, 1, 0, 0].astype(float) + 440_000, place[1, :, 0], atol=3e-4)
    np.testing.assert_allclose(found.position[:, 1, 1] - found.position[:, 1, 0], 1, atol=3e-4)
    assert (found.features == np.float32(EAST)).all(), "only places are moved"
    other, _ = tracks(tmp_path, (EAST + 1500, 0.0), name="later.csv")
    assert TableReader(other, asked()).layout.origin == reader.layout.origin


def test_a_column_of_ids_of_rows_is_no_column_of_agents(tmp_path: Path) -> None:
    rows = pd.DataFrame({"day": "d", "t": np.arange(11), "row": np.arange(11), "x": 0.5, "y": 1.5})
    rows.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"t.csv: episode 'd': column 'row'.*columns.agent.* 11 agents .* 11 rows"):
        list(TableReader(tmp_path / "t.csv", asked(agent="row")).recordings())
    for few in (rows[:10], rows.assign(t=3)):  # few agents, or all at one time
        few.to_csv(tmp_path / "t.csv", index=False)
        assert len(next(TableReader(tmp_path / "t.csv", asked(agent="row")).recordings()).agents) == len(few)
    many = pd.DataFrame(
        {"day": "d", "t": np.repeat([0, 1], 1001), "row": np.tile(np.arange(1001), 2), "x": 0.5, "y": 1}
    )
    many.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match="1,001 agents apart in 2,002 rows. At most 1,000"):
        list(TableReader(tmp_path / "t.csv", asked(agent="row")).recordings())
    many[many.row < 1000].to_csv(tmp_path / "t.csv", index=False)
    assert next(TableReader(tmp_path / "t.csv", asked(agent="row")).recordings()).present.all()
