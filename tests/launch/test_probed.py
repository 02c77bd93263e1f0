"""A probe table is read back whole, and of the embeddings that lie there now, or not at all."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from data_gen.storage.store import write_group
from data_gen.trajectory import InputError
from launch import summary
from launch.probed import done, keep_table, probed_files, read_probes
from launch.tables import parsed, read_table
from probes.probe import Probe
from probes.table.rows import COLUMNS

CFG = Probe(labels=["goal"], bootstrap=100)


def embed(run: Path, number: float, command: str = "train") -> None:
    note = {"chosen": {"step": 10, "data": "the same"}, "provenance": {"command": command}}
    write_group(run / "embeddings", {"omega_mean": (("episode", "z"), np.full((6, 2), number))}, note, replace=True)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was embedded and probed."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"train": {}}))
    embed(tmp_path, 1.0)
    rows = [dict.fromkeys(COLUMNS, 0.5) | {"label": name, "note": ""} for name in ("goal", "speed", "goal")]
    keep_table(CFG, tmp_path, pd.DataFrame(rows, columns=list(COLUMNS)))
    (tmp_path / "report.html").touch()
    return tmp_path


def test_probing_is_done_until_a_setting_the_embeddings_or_the_table_change(run: Path) -> None:
    assert done(CFG, run) and done(replace(CFG, jobs=3), run)
    assert not done(replace(CFG, seed=1), run)
    embed(run, 1.0, command="train again")
    assert done(CFG, run)  # the same numbers, whoever wrote them
    embed(run, 2.0)
    assert not done(CFG, run)
    embed(run, 1.0)
    table = (run / "probes.csv").read_bytes()
    (run / "probes.csv").write_bytes(table[:-20])
    assert not done(CFG, run)
    (run / "probes.csv").write_bytes(table)
    (run / "report.html").unlink()
    assert not done(CFG, run)


def test_a_dashboard_gets_nothing_of_a_probing_that_no_longer_holds(run: Path, monkeypatch) -> None:
    monkeypatch.setattr(summary, "digest", lambda _: "of data")
    monkeypatch.setattr(summary, "embedded_folders", lambda _: [])
    table, probed = (run / "probes.csv").read_text(), lambda: sorted(file.name for file in probed_files(run)[0])
    assert probed() == ["probes.csv", "report.html"] and probed_files(run)[1] == ""
    embed(run, 2.0)
    assert probed() == [] and "embeddings that are no longer there" in probed_files(run)[1]
    assert summary.summary_of(run) == {"data/digest": "of data"}
    embed(run, 1.0)
    (run / "probes.csv").write_text(table[:-20])
    assert probed() == [] and "cut or altered" in probed_files(run)[1]
    (run / "probes.csv").unlink()
    assert probed() == ["report.html"]


def test_a_table_is_read_back_with_its_settings(run: Path) -> None:
    table, settings = read_probes(run)
    assert (
        settings == CFG and list(table.columns) == list(COLUMNS) and table.label.tolist() == ["goal", "speed", "goal"]
    )
    older = {name: value for name, value in vars(CFG).items() if name != "concepts"}
    (run / "probe.yaml").write_text(yaml.safe_dump(older | {"concepts": None}))  # as written before it held checksums
    assert read_probes(run)[1] == CFG and not done(CFG, run)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (lambda lines: lines[:1], "is damaged (it has a head and no row)"),
        (lambda lines: [], "is damaged (No columns to parse"),
        (lambda lines: [*lines[:-1], lines[-1][:40]], "is not as launch.probe left it: it was cut or altered since"),
        (lambda lines: lines[:-1], "is not as launch.probe left it"),
    ],
)
def test_a_table_that_was_cut_is_refused(run: Path, kept, said: str) -> None:
    lines = (run / "probes.csv").read_text().splitlines(keepends=True)
    (run / "probes.csv").write_text("".join(kept(lines)))
    with pytest.raises(InputError) as refused:
        read_probes(run)
    assert f"{run / 'probes.csv'} {said}" in str(refused.value)
    assert f"Run launch.probe run={run} again." in str(refused.value)


def test_a_table_of_other_embeddings_and_a_damaged_note_are_refused(run: Path) -> None:
    embed(run, 2.0)
    with pytest.raises(InputError, match="probes.csv is of embeddings that are no longer there. Run launch.probe"):
        read_probes(run)
    for text, said in (("labels: [", "is damaged"), ("", "it holds no settings"), ("speed: 3", "is of other code")):
        (run / "probe.yaml").write_text(text)
        with pytest.raises(InputError, match=f"probe.yaml is .*{said.removeprefix('is ')}"):
            read_probes(run)
    (run / "probe.yaml").unlink()
    with pytest.raises(InputError, match="probe.yaml is missing"):
        read_probes(run)
    (run / "probes.csv").unlink()
    with pytest.raises(InputError, match="has no probe table"):
        read_probes(run)


def test_other_tables_say_which_file_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "worth.csv"
    for read, content, said in (
        (parsed, None, "is missing"),
        (parsed, b"", "is damaged"),
        (parsed, b"a,b\n1,2\n1,2,3\n", "is damaged"),
        (parsed, b"a\n\xff\xfe\n", "is damaged"),
        (read_table, b"a,b\n", "it has a head and no row"),
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(InputError, match=said) as refused:
            read(file, "Do it again.")
        assert str(refused.value).startswith(f"{file} is ") and str(refused.value).endswith("Do it again.")
    file.write_bytes(b"a,b\n")
    assert list(parsed(file, "").columns) == ["a", "b"]
