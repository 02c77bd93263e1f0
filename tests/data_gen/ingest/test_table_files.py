"""Several table files are read as one, or the one that does not fit is named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data_gen.ingest.readers.table import TableReader
from data_gen.trajectory import InputError
from tests.data_gen.ingest.test_table import Truth, check_equal, check_labels, columns, write
from tests.data_gen.ingest.test_table_dirt import HEADER, ROWS, csv
from tests.data_gen.ingest.test_table_dirt import columns as few_columns


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_a_recording_is_what_one_file_of_all_is(tmp_path: Path, suffix: str) -> None:
    truth = Truth([6, 3, 5], n_agents=3, missing=0.2, seed=1)
    for name, own in truth.table.groupby("game"):
        home = tmp_path / ("deep" if name == "g1" else ".")
        home.mkdir(exist_ok=True)
        write(own.drop(columns="game"), home, suffix).rename(home / f"{name}.{suffix}")
    (tmp_path / f".g9.{suffix}").write_text("left by an editor")
    (tmp_path / "notes.md").write_text("what was done")
    reader = TableReader(tmp_path, columns(episode=""))
    found = {one.name: one for one in reader.recordings()}
    assert sorted(found) == ["deep/g1", "g0", "g2"]
    for name, one in found.items():
        number = int(name[-1])
        assert one.file == str(tmp_path / f"{name}.{suffix}") and one.group == f"c{number // 2}"
        check_equal(truth.games[number], one)
        check_labels(truth.games[number], one, reader.layout.labels)
    whole = TableReader(write(truth.table, tmp_path / "deep", suffix), columns()).layout
    assert reader.layout._replace(provenance={}) == whole._replace(provenance={})
    some = TableReader(tmp_path / f"g*.{suffix}", columns(episode=""))
    assert [one.name for one in some.recordings()] == ["g0", "g2"]


def test_several_episodes_a_file_and_numbers_that_are_whole_in_one_of_them(tmp_path: Path) -> None:
    first = csv(tmp_path, ROWS[:3], name="a.csv")
    other = [row.replace(",,left", ",1.5,left") for row in ROWS[3:]]
    csv(tmp_path, [*other, "c,0,p,5,6,,left,wood"], name="b.csv")
    assert TableReader(first, few_columns()).layout.features == ("speed",)
    one, two, three = TableReader(tmp_path, few_columns()).recordings()
    assert (one.name, two.name, three.name) == ("a", "b", "c") and one.file == str(first)
    assert two.features[:, 0, 0].tolist() == [1.5, 2] and np.isnan(three.features).all()
    empty = csv(tmp_path, ["d,0,p,5,6,,left,wood"], name="c.csv")
    assert len(list(TableReader(tmp_path, few_columns()).recordings())) == 4 and empty.exists()


OTHER = "d,0,p,1,2,0.5,left,city"
WRONG = {
    "no column": (HEADER.replace("speed", "tempo"), OTHER, "b.csv has no column 'speed'.*columns.features.*tempo"),
    "text": (HEADER, OTHER.replace("0.5", "fast"), "'speed' holds text in .*b.csv and numbers in .*a.csv"),
    "a value": (HEADER, OTHER.replace("0.5", "inf"), "'speed' is inf at line 2 of .*b.csv"),
    "time stamps": (HEADER, OTHER.replace("d,0", "d,2024-05-01 12:00:00"), "'frame' holds time stamps in .*b.csv"),
    "an episode of the other": (HEADER, OTHER.replace("d,", "b,"), "'b' is at line 2 of .*b.csv and at line 5 of .*a"),
    "no row": (HEADER, "", "b.csv has a header but no rows"),
    "a short line": (HEADER, "d,0,p", "b.csv: line 2 has 3 fields"),
    "nothing": ("", "", "b.csv is empty: it has 0 bytes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_file_that_does_not_fit_is_named(tmp_path: Path, name: str) -> None:
    header, row, words = WRONG[name]
    csv(tmp_path, ROWS, name="a.csv")
    csv(tmp_path, [row] if row else [], header, name="b.csv")
    with pytest.raises(InputError, match=words):
        list(TableReader(tmp_path, few_columns()).recordings())


def test_names_and_categories_may_look_like_numbers_in_one_file(tmp_path: Path) -> None:
    csv(tmp_path, ROWS, name="a.csv")
    csv(tmp_path, [OTHER.replace("d,0,p", "7,0,12").replace("left", "02")], name="b.csv")
    reader = TableReader(tmp_path, few_columns(categories=["move"]))
    assert reader.layout.action_names == ("02", "left", "right")
    assert [one.name for one in reader.recordings()] == ["a", "b", "7"]


def test_folders_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("")
    for path, words in (
        (tmp_path, "holds no CSV or Parquet file"),
        (tmp_path / "*.csv", "holds no CSV or Parquet file"),
        (tmp_path / "*.md", "notes.md is neither CSV nor Parquet"),
        (tmp_path / "none" / "*.csv", "neither a file nor a folder"),
    ):
        with pytest.raises(InputError, match=words):
            TableReader(path, few_columns())
    csv(tmp_path, ROWS)
    pd.read_csv(tmp_path / "t.csv").to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="CSV and Parquet files.*Choose one kind"):
        TableReader(tmp_path, few_columns())
