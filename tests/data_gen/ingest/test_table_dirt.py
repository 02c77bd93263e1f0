"""What is wrong with a table is said with file and line (CSV, 1 is the header) or row (Parquet, from 0)."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from data_gen.ingest.readers import buckets, chunks, survey
from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader
from data_gen.ingest.recording import Recording
from data_gen.trajectory import InputError

HEADER = "game,frame,who,x,y,speed,move,map\n"
ROWS = [
    "a,0,p,1,2,0.5,left,city",
    "a,0,q,3,4,0.25,right,city",
    "a,1,p,1,3,1,left,city",
    "b,0,p,5,6,,left,wood",
    "b,1,p,7,8,2,right,wood",
]


def columns(**changes) -> Columns:
    kept = dict(episode="game", time="frame", agent="who", position=["x", "y"], features=["speed"], actions=["move"])
    return Columns(**{**kept, "labels": ["map"], **changes})


def csv(folder: Path, rows: list[str], header: str = HEADER, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(header + "".join(row + "\n" for row in rows))
    return path


def changed(row: int, line: str) -> list[str]:
    return [line if number == row else old for number, old in enumerate(ROWS)]


def read(path: Path, **changes) -> list[Recording]:
    return list(TableReader(path, columns(**changes)).recordings())


def refused(path: Path, *words: str, **changes) -> None:
    with pytest.raises(InputError) as error:
        read(path, **changes)
    for word in (str(path), *words):
        assert word in str(error.value)


def test_the_clean_table_is_read(tmp_path):
    one, two = read(csv(tmp_path, ROWS))
    np.testing.assert_array_equal(one.position[:, :, 0], [[[1, 2], [3, 4]], [[1, 3], [np.nan, np.nan]]])
    np.testing.assert_array_equal(one.present, [[True, True], [True, False]])
    np.testing.assert_array_equal(one.actions, [[0, 1], [0, -1]])
    np.testing.assert_array_equal(two.features[:, :, 0], [[np.nan], [2]])
    assert (one.name, one.group, one.agents, two.name, two.agents) == ("a", "a", ("p", "q"), "b", ("p",))
    assert (one.labels["map"], two.labels["map"]) == (0, 1)


BAD = {
    "text among numbers": (changed(3, "b,0,p,fast,6,,left,wood"), ["'x'", "line 5", "'fast'"]),
    "text among features": (changed(2, "a,1,p,1,3,fast,left,city"), ["'speed'", "line 4", "'fast'"]),
    "numbers among classes": (changed(4, "b,1,p,7,8,2,3.5,wood"), ["'move'", "line 6", "'3.5'"]),
    "infinite": (changed(1, "a,0,q,3,-inf,0.25,right,city"), ["'y'", "line 3", "-inf"]),
    "too large": (changed(1, "a,0,q,3,1e39,0.25,right,city"), ["'y'", "line 3", "1e+39"]),
    "time is text": (changed(2, "a,soon,p,1,3,1,left,city"), ["'frame'", "line 4", "'soon'"]),
    "time is empty": (changed(2, "a,,p,1,3,1,left,city"), ["'frame'", "line 4", "empty"]),
    "time is infinite": (changed(2, "a,inf,p,1,3,1,left,city"), ["'frame'", "line 4", "inf"]),
    "time is no frame": (
        changed(2, "a,0.04,p,1,3,1,left,city"),
        ["'frame'", "line 4", "0.04", "+columns.units.time=s"],
    ),
    "no agent": (changed(3, "b,0,,5,6,,left,wood"), ["'who'", "line 5", "empty"]),
    "no episode": (changed(0, ",0,p,1,2,0.5,left,city"), ["'game'", "line 2", "empty"]),
    "contradiction": ([*ROWS, "a,0,q,3,4.5,0.25,right,city"], ["'q'", "'a'", "lines 3 and 7"]),
    "contradiction after a repeat": ([*ROWS, ROWS[0], "a,0,q,3,4.5,0.25,right,city"], ["'q'", "'a'", "lines 3 and 8"]),
    "contradiction of classes": ([*ROWS, "a,0,q,3,4,0.25,left,city"], ["'q'", "'a'", "lines 3 and 7"]),
    "a field too many": (changed(2, "a,1,p,1,3,1,left,city,9"), ["line 4", "9 fields", "8"]),
    "cut short": (changed(4, "b,1,p,7"), ["line 6", "4 fields", "8"]),
    "no rows": ([], ["no rows"]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_line(tmp_path, name):
    rows, words = BAD[name]
    refused(csv(tmp_path, rows), *words)


def test_lines_count_blank_ones_and_line_breaks_within_a_value(tmp_path):
    rows = ["", 'a,0,p,1,2,0.5,"le\nft",city', "", *changed(1, "a,0,q,3,inf,0.25,right,city")[1:]]
    refused(csv(tmp_path, rows), "'y'", "line 6", "inf")  # header, blank, two lines of one row, blank


def test_compressed_and_semicolons(tmp_path):
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wt") as stream:
        stream.write((HEADER + "\n".join(changed(3, "b,0,p,fast,6,,left,wood"))).replace(",", ";"))
    refused(path, "'x'", "line 5", "'fast'")


def parquet_of(folder: Path, **cells) -> Path:
    table = pd.DataFrame([row.split(",") for row in ROWS], columns=HEADER.strip().split(","))
    table = table.astype({"frame": int, "x": float, "y": float}).assign(**{"speed": [0.5, 0.25, 1, np.nan, 2], **cells})
    table.to_parquet(folder / "t.parquet", index=False)
    return folder / "t.parquet"


@pytest.mark.parametrize(
    "cells, words",
    [
        (dict(x=["1", "2", "far", "4", "5"]), ["'x'", "row 2", "'far'"]),
        (dict(y=[0, np.inf, 0, 0, 0.0]), ["'y'", "row 1", "inf"]),
        (dict(frame=[0, 0, 1, np.nan, 1]), ["'frame'", "row 3"]),
        (dict(who=["p", "q", "p", None, "p"]), ["'who'", "row 3"]),
        (dict(who=["p", "q", "p", "", "p"]), ["'who'", "row 3"]),
        (dict(speed=["0.5", "1", "fast", "2", "2"]), ["'speed'", "row 2", "'fast'", "columns.categories"]),
        (dict(x=[[1], [2], [3], [4], [5]]), ["'x'", "list"]),
        (dict(map=[None] * 5), ["'map'"]),
    ],
)
def test_parquet_is_checked_alike(tmp_path, cells, words):
    if cells.get("map"):
        cells["map"] = pd.array(cells["map"], dtype="string")
    refused(parquet_of(tmp_path, **cells), *words)


def test_a_group_is_one_within_an_episode(tmp_path):
    refused(csv(tmp_path, changed(1, "a,0,q,3,4,0.25,right,wood")), "'map'", "lines 2 and 3", group="map", labels=[])


def test_a_missing_column_is_named_with_the_nearest(tmp_path):
    path = csv(tmp_path, ROWS)
    refused(path, "'Speeed'", "columns.features", "nearest is 'speed'", features=["Speeed"])
    refused(path, "'nose_x'", "columns.position", parts=["nose"])
    refused(csv(tmp_path, ROWS, HEADER.replace("speed", "x")), "2 columns 'x'")


def test_rows_that_repeat_are_left_out_and_counted(tmp_path):
    one, two = read(csv(tmp_path, [*ROWS, ROWS[1], ROWS[1], ROWS[3]]))
    (clean, other) = read(csv(tmp_path, ROWS, name="clean.csv"))
    np.testing.assert_array_equal(one.position, clean.position)
    np.testing.assert_array_equal(two.features, other.features)
    assert one.dropped == ("2 row(s) that repeat another one exactly, the first: agent 'q' at time 0 of episode 'a'",)
    assert two.dropped == ("1 row(s) that repeat another one exactly, the first: agent 'p' at time 0 of episode 'b'",)


def test_a_class_that_looks_like_a_number(tmp_path):
    path = csv(tmp_path, [row.replace("left", "1").replace("right", "02") for row in ROWS])
    assert TableReader(path, columns()).layout.action_names == ("1", "2")
    assert TableReader(path, columns(categories=["move"])).layout.action_names == ("1", "02")
    assert TableReader(path, columns(numbers=["move"])).layout.action == ("continuous", 1)
    mixed = csv(tmp_path, [row.replace("left", "1") for row in ROWS], name="mixed.csv")
    refused(mixed, "'move'", "'right' at line 3", "'1' at line 2")
    assert TableReader(mixed, columns(categories=["move"])).layout.action_names == ("1", "right")


def test_too_many_classes(tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "MOST_CLASSES", 1)
    refused(csv(tmp_path, ROWS), "'move'", "more than 1 classes", "'right' at line 3", labels=[])


def test_a_column_that_begins_empty(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 60)
    rows = [f"a,{frame},p,1,2,,left,city" for frame in range(20)]
    reader = TableReader(csv(tmp_path, [*rows, "a,20,p,1,2,0.5,left,city"]), columns())
    assert next(reader.recordings()).features[-1] == 0.5 and reader.layout.features == ("speed",)
    reader = TableReader(csv(tmp_path, [*rows, "a,20,p,1,2,fast,left,city"]), columns())
    assert reader.layout.features == ("speed=fast",)
    refused(csv(tmp_path, [*rows, "a,20,p,1,2,0.5,left,city", "a,21,p,1,2,fast,left,city"]), "'speed'", "line 23")


def test_times(tmp_path):
    seconds = [row.replace(",1,p", ",0.04,p") for row in ROWS]
    assert TableReader(csv(tmp_path, ROWS), columns()).layout.rate == 0
    reader = TableReader(csv(tmp_path, ROWS), columns(rate=25.0))
    assert reader.layout.rate == 25 and next(reader.recordings()).time.tolist() == [0, 0.04]
    reader = TableReader(csv(tmp_path, seconds), columns(units={"time": "s"}))
    assert reader.layout.rate == 25 and next(reader.recordings()).time.tolist() == [0, 0.04]
    reader = TableReader(csv(tmp_path, ROWS), columns(units={"time": "min"}))
    assert reader.layout.rate == 0.0166667 and next(reader.recordings()).time.tolist() == [0, 60]
    refused(csv(tmp_path, ROWS[:2]), "columns.rate", units={"time": "s"})
    days = pd.to_datetime(
        ["2024-05-01 12:00:00", "2024-05-01 12:00:00", "2024-05-01 12:00:00.5"] * 2, format="ISO8601"
    )[:5]
    for path in (parquet_of(tmp_path, frame=days),):
        reader = TableReader(path, columns())
        assert reader.layout.rate == 2 and np.ptp(next(reader.recordings()).time) == 0.5
        assert next(reader.recordings()).time[0] == pd.Timestamp("2024-05-01 12:00").timestamp()


def test_roles_and_parts_and_ends(tmp_path):
    header = "game,frame,who,nose_x,nose_y,tail_x,tail_y,end\n"
    rows = [
        "a,0,p,1,2,3,4,0",
        "a,0,q,5,6,7,8,0",
        "a,1,p,9,8,,,1",
        "b,0,10,1,1,1,1,1",
        "b,1,10,2,2,2,2,0",
        "b,1,p,2,2,2,2,1",
    ]
    options = dict(parts=["nose", "tail"], features=[], actions=[], labels=[], terminated="end", roles=True)
    reader = TableReader(csv(tmp_path, rows, header), columns(**options))
    one, two = reader.recordings()
    assert reader.layout.agents == one.agents == two.agents == ("10", "p", "q")
    assert (reader.layout.parts, reader.layout.axes, reader.layout.action.size) == (("nose", "tail"), ("x", "y"), 0)
    assert one.present.tolist() == [[False, True, True], [False, True, False]]
    assert one.position[0, 2].tolist() == [[5, 6], [7, 8]] and np.isnan(one.position[1, 1, 1]).all()
    assert (one.terminated, two.terminated) == (True, False) and one.actions.shape == (2, 3, 0)


def test_one_recording_of_one_agent(tmp_path):
    rows = [f"{frame},{frame * 2}" for frame in range(10, 13)]
    reader = TableReader(csv(tmp_path, rows, "frame,x\n"), Columns(time="frame", position=["x"]))
    (found,) = reader.recordings()
    assert (found.name, found.agents) == ("t", ("agent",)) and found.position[:, 0, 0, 0].tolist() == [20, 22, 24]


def test_labels_that_are_sometimes_not_known(tmp_path):
    labels = ["city", "", "city", "wood", "wood"]  # an empty cell is not the same as a known one: no recording's label
    rows = [row.rsplit(",", 1)[0] + f",{label}" for row, label in zip(ROWS, labels, strict=True)]
    reader = TableReader(csv(tmp_path, rows), columns())
    assert reader.layout.labels == (("map", "agent", "class", ("city", "wood")),)
    assert [found.labels["map"].tolist() for found in reader.recordings()] == [[0, -1], [1]]


def test_episodes_lie_in_buckets_of_bounded_size(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 1000)
    assert buckets.bucket_of(np.array([50, 50, 10, 300, 5]), 10).tolist() == [0, 0, 1, 1, 2]
    monkeypatch.setattr(buckets, "MOST_BUCKETS", 2)
    assert buckets.bucket_of(np.array([100] * 8), 10).max() < 3


def test_whole_numbers_beyond_doubles_and_unsigned_categories(tmp_path):
    path = parquet_of(tmp_path)
    table = parquet.read_table(path)
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None, 1], pa.uint32()), pa.array(["slow", "fast"]))
    table = table.set_column(5, "speed", codes).set_column(1, "frame", pa.array([0, 0, 2**60, 0, 2**60]))
    parquet.write_table(table, path)
    reader = TableReader(path, columns(units={"time": "ns"}))
    assert reader.layout.features == ("speed=fast", "speed=slow")
    one, two = reader.recordings()
    assert one.time.tolist() == [0, 2**60 * 1e-9]
    np.testing.assert_array_equal(two.features[:, 0], [[np.nan, np.nan], [1, 0]])


@pytest.mark.parametrize(
    "changes, words",
    [
        (dict(time=""), "columns.time"),
        (dict(position=[], features=[]), "Nothing is observed"),
        (dict(features=["x"]), "'x' is asked for by columns.position"),
        (dict(features=["speed", "speed"]), "'speed' is asked for twice"),
        (dict(group="map"), "'map' is asked for"),
        (dict(categories=["x"]), "columns.categories names 'x'"),
        (dict(categories=["move"], numbers=["move"]), "it can be one"),
        (dict(parts=["nose"], position=[]), "columns.parts"),
        (dict(agent="", roles=True), "columns.roles"),
        (dict(rate=-1.0), "columns.rate"),
        (dict(rate=float("nan")), "columns.rate"),
        (dict(units={"time": "sec"}), "columns.units.time is 'sec'"),
        (dict(units={"sped": "m/s"}), "'sped'"),
        (dict(actions=["move", "turn"], categories=["turn"]), "'turn' is a category"),
        (dict(actions=[""]), "empty name"),
    ],
)
def test_columns_are_checked(changes, words):
    with pytest.raises(InputError, match="columns|Column|Nothing") as error:
        columns(**changes)
    assert words in str(error.value)


def test_several_actions_are_numbers(tmp_path):
    path = csv(tmp_path, ROWS)
    refused(path, "'move' is text", actions=["speed", "move"], features=[])
    reader = TableReader(path, columns(actions=["speed", "y"], position=["x"], features=[], labels=["move"]))
    assert reader.layout.action == ("continuous", 2) and reader.layout.action_names == ("speed", "y")
    np.testing.assert_array_equal(next(reader.recordings()).actions[1], [[1, 3], [np.nan, np.nan]])
