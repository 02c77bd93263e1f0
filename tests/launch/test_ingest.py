"""From somebody's recordings to a data set by one command; the rest of the line is in test_own_data.py."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from data_gen.ingest.sources import READERS, open_source, settings_of
from data_gen.storage.dataset import present_shards, read_dataset, write_shard
from data_gen.trajectory import InputError
from tests.data_gen.ingest.memory import Memory, recording
from tests.launch.commands import files, run


def people(n: int = 12, **changed) -> Memory:
    return Memory([recording(k, frames=24) for k in range(n)], **changed)


@pytest.fixture
def source(monkeypatch, tmp_path):
    """Whatever is asked for, the source is this one; its path is a file that is there."""
    chosen = {"reader": people()}
    monkeypatch.setattr("launch.ingest.open_source", lambda name, path, settings: chosen["reader"])
    monkeypatch.chdir(tmp_path)
    return chosen


COLUMNS = ["columns.time=t", "columns.position=[x,y]"]
ASKED = [*COLUMNS, "treatment.window=8", "name=mine"]


def test_a_dry_run_says_what_is_there_and_writes_nothing(source, tmp_path: Path, capsys) -> None:
    assert run("ingest", *ASKED, "dry_run=true") == 0
    text = capsys.readouterr().out
    assert "12; 0 end because they terminated" in text and "36 of up to 8 steps, 3 agents" in text
    assert run("ingest", *ASKED, "dry_run=true", "summary=json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["recordings"]["count"] == 12 and summary["treated"]["episodes"] == 36
    assert list(tmp_path.iterdir()) == []


def test_an_ingest_writes_a_run_with_a_card_and_again_changes_nothing(source, capsys) -> None:
    assert run("ingest", *ASKED) == 0
    assert "data set runs/mine/data" in capsys.readouterr().out
    mine = Path("runs/mine")
    found = read_dataset(mine / "data")
    assert len(found.split) == 36 and found.meta["treatment"]["window"] == 8
    assert "36 episodes of up to 8 steps" in (mine / "data" / "README.md").read_text()
    config = yaml.safe_load((mine / "config.yaml").read_text())["ingest"]
    assert config["source"] == "table" and config["treatment"]["window"] == 8 and config["columns"]["time"] == "t"
    (note,) = json.loads((mine / "provenance.json").read_text())
    assert note["seeds"] == {"ingest": 0}
    before = files(mine)
    assert run("ingest", *ASKED) == 0 and files(mine) == before
    assert run("ingest", *COLUMNS, "name=mine", "treatment.window=6") == 2
    assert "ingest.treatment.window is 8 there and 6 here" in capsys.readouterr().err
    source["reader"] = people(11)
    assert run("ingest", *ASKED) == 2
    assert "shard-00000 was recorded with other settings" in capsys.readouterr().err
    assert files(mine) == before


@pytest.mark.parametrize("at", ["reading", "writing"])
def test_an_interrupted_ingest_goes_on_where_it_stopped(at: str, source, monkeypatch) -> None:
    """By a source that is too large to be kept, in its second pass; or by a disk that fails at the third shard."""
    monkeypatch.setattr("data_gen.ingest.write.META_SHARE", 0)
    small = [*ASKED, "shard_bytes=4000"]
    assert run("ingest", *small) == 0
    whole = files(Path("runs/mine"))
    assert len(present_shards(Path("runs/mine/data"))) > 4
    passes, written = [], []

    class Torn(Memory):
        def recordings(self):
            passes.append(1)
            for number, one in enumerate(super().recordings()):
                if at == "reading" and len(passes) == 2 and number == 5:
                    raise OSError("the disk is gone")
                yield one

    def torn(*arguments):
        written.append(1)
        if at == "writing" and len(written) == 3:
            raise OSError("the disk is full")
        return write_shard(*arguments)

    if at == "reading":
        monkeypatch.setattr("data_gen.ingest.kept.KEPT_BYTES", 0)
    monkeypatch.setattr("data_gen.ingest.write.write_shard", torn)
    source["reader"] = Torn([recording(k, frames=24) for k in range(12)])
    other = [*COLUMNS, "treatment.window=8", "name=other", "shard_bytes=4000"]
    assert run("ingest", *other) == 1
    assert 0 < len(present_shards(Path("runs/other/data"))) < len(present_shards(Path("runs/mine/data")))
    assert not Path("runs/other/data/README.md").exists()
    assert run("ingest", *other) == 0
    again = files(Path("runs/other"))
    shards = {name: content for name, content in whole.items() if name.startswith("data/shard")}
    own = {name: content for name, content in again.items() if name.startswith("data/shard")}
    # What says by which command a shard was made differs; all arrays and their checksums do not.
    described = ("manifest.json", "arrays.zarr/zarr.json")
    assert shards.keys() == own.keys()
    assert all(own[name] == shards[name] for name in shards if not name.endswith(described))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["source=tabel"], "Did you mean 'table'?"),
        (["path=nowhere/at.csv"], "path='nowhere/at.csv' does not exist"),
        ([], "path='' does not exist"),
        (["columns.tiem=t"], "Did you mean 'columns.time'?"),
        (["treatment.windows=4"], "Did you mean 'treatment.window'?"),
        (["summary=xml"], "it is one of text, json"),
        (["duplicates=keep"], "it is one of refuse, drop"),
        (["split=[1,2]"], "three positive numbers"),
    ],
)
def test_what_is_wrong_names_itself_before_anything_is_written(
    wrong: list[str], said: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("ingest", *COLUMNS, *wrong) == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith("error: ") and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_split_is_shown_and_refused(source, tmp_path: Path, capsys) -> None:
    source["reader"] = people(2)
    for dry in ("false", "true"):
        assert run("ingest", *ASKED, f"dry_run={dry}", "split=[1,1,1]") == 2
        told = capsys.readouterr()
        assert "recordings  2;" in told.out and "there are 2 group(s)" in told.err
    source["reader"] = Memory([*people(5).recordings(), recording(0, frames=24, name="again")])
    assert run("ingest", *ASKED) == 2
    assert "'again' is the same as 'r0'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert run("ingest", *ASKED, "duplicates=drop") == 0
    assert set(read_dataset(Path("runs/mine/data")).rows.episode.tolist()) == set(range(5))


def test_two_groups_are_stored_and_not_trained_on(source, tmp_path: Path, capsys) -> None:
    source["reader"] = people(2)
    assert run("ingest", *ASKED) == 0
    assert "too few to train on, which takes 3; launch.embed takes any" in capsys.readouterr().out
    card = Path("runs/mine/data/README.md").read_text()
    assert "python -m launch.embed run=a-trained-run data=runs/mine/data" in card and "launch.train" not in card
    for stage in ("train", "pipeline"):
        assert run(stage, "name=mine", "data=runs/mine/data") == 2
        assert "the data set has 2 group(s)" in capsys.readouterr().err


def test_a_home_is_found_and_a_package_that_is_not_there_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.csv").write_text("t,who,x,y\n" + "".join(f"{t},a,{t}.5,{t}\n" for t in range(9)))
    assert run("ingest", "path=~/own.csv", *COLUMNS, "columns.agent=who", "dry_run=true") == 0
    assert "recordings  1;" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "data_gen.ingest.readers.sleap", None)
    (tmp_path / "poses.h5").write_text("")
    assert run("ingest", "source=sleap", "path=poses.h5") == 2
    assert "source=sleap needs the package" in capsys.readouterr().err


@pytest.mark.parametrize("name", READERS)
def test_every_format_is_there(name: str, tmp_path: Path) -> None:
    pytest.importorskip(READERS[name].module)
    assert settings_of(name) is not None
    with pytest.raises(InputError, match="does not exist"):
        open_source(name, str(tmp_path / "nothing"), None)
