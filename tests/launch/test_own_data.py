"""What docs/own-data.md shows is run as it stands there: its commands, its Python, and the options that it names."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from omegaconf import OmegaConf

from data_gen.ingest.sources import READERS
from data_gen.storage.dataset import read_dataset
from data_gen.storage.store import read_group
from data_gen.trajectory import SPLITS, ActionSpec
from launch.schema.typed import composed, typed
from tests.data_gen.ingest.memory import STYLES, recording
from tests.launch.commands import files, run

DOC = Path(__file__).resolve().parents[2] / "docs" / "own-data.md"
HUMANS = DOC.parents[2] / "shared" / "data" / "overcooked_humans.parquet"
TABLE, ENVIRONMENT, LATER = (
    "From a CSV to a report",
    "From an environment to a report",
    "New recordings and a trained run",
)
COOKS = "People who cook together"
NOTHING = object()
# The line as it is, with little to train and to draw.
TINY = [
    "model.joint_width=4",
    "model.local_width=2",
    "model.hidden=16",
    "model.decoder_hidden=16",
    "train.steps=40",
    "train.batch=16",
    "train.steps_per_dispatch=10",
    "train.eval_every=10",
    "probe.bootstrap=200",
    "probe.permutations=1",
    "probe.probes=[linear]",
    "clusters.bootstrap=2",
    "coupling.permutations=99",
    "changes.permutations=99",
]


def blocks(title: str, language: str) -> str:
    section = DOC.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    return "".join(re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL))


def commands(title: str) -> list[list[str]]:
    """Stage and overrides of each command of a section."""
    lines = [shlex.split(line) for line in blocks(title, "bash").replace("\\\n", " ").splitlines()]
    assert lines and all(words[:2] == ["python", "-m"] for words in lines)
    return [[words[2].removeprefix("launch."), *words[3:]] for words in lines]


def write_games(path: Path, numbers: range) -> None:
    """Games of three players in the columns that the page shows; every other one is played wildly."""
    rows = []
    for number in numbers:
        one = recording(number, frames=100)
        for t, n in np.ndindex(one.present.shape):
            if t < 70 or n != 1 or number != 2:  # one player leaves
                place = one.position[t, n, 0].tolist()
                rows.append((f"g{number}", t, ("ann", "bob", "cleo")[n], *place, STYLES[number % 2]))
    header = blocks(TABLE, "csv").splitlines()[0]
    pd.DataFrame(rows, columns=header.split(",")).to_csv(path, index=False)


@pytest.fixture
def games(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_games(tmp_path / "games.csv", range(12))
    return tmp_path


@pytest.fixture
def talk(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks(ENVIRONMENT, "python"), str(DOC), "exec"), {})
    return tmp_path / "runs" / "talk"


def test_every_command_and_option_is_one() -> None:
    for title in (TABLE, ENVIRONMENT, LATER, COOKS):
        for stage, *overrides in commands(title):
            typed(composed(stage, overrides))
    known = [composed("ingest", []), composed("ingest", ["source=mabe"]), composed("pipeline", [])]
    named = re.findall(r"[`' ]((?:columns|treatment|reading|model|train)\.[a-z_]+)=", DOC.read_text())
    assert len(set(named)) > 15
    lost = [name for name in named if all(OmegaConf.select(one, name, default=NOTHING) is NOTHING for one in known)]
    assert lost == []
    assert set(re.findall(r"`(\w+)`", DOC.read_text().split("| `source=` | |")[1].split("##")[0])) >= set(READERS)


def test_a_table_is_looked_at_and_then_a_data_set(games: Path, capsys) -> None:
    look, ingest, _ = commands(TABLE)
    assert [word for word in look if word not in ingest] == ["dry_run=true"]
    assert run(*look) == 0
    told = capsys.readouterr().out
    assert "recordings  12;" in told and "24 of up to 50 steps, 3 agents" in told
    assert [entry.name for entry in games.iterdir()] == ["games.csv"]
    assert run(*ingest) == 0
    found = read_dataset(games / "runs" / "games" / "data")
    assert (
        len(found.split) == 24 and found.action == ActionSpec("continuous", 2) and found.meta["derived"] == "velocity"
    )
    assert found.meta["units"]["action"] == "m/s" and len(np.unique(found.rows.group)) == 12
    style = found.labels.values["style"]
    assert [STYLES[code] for code in style] == [STYLES[number % 2] for number in found.rows.episode]
    # Player by player, whatever slot: a velocity is ten times the way to the next place.
    steps = found.batch.mask[:, 1:] & found.batch.mask[:, :-1]
    way = 10 * np.diff(found.batch.obs[..., :2], axis=1)
    np.testing.assert_allclose(found.batch.actions[:, :-1][steps], way[steps], atol=1e-3)
    assert "What was left out" in (games / "runs" / "games" / "data" / "README.md").read_text()


def test_an_environment_is_a_data_set(talk: Path) -> None:
    found = read_dataset(talk / "data")
    assert found.batch.mask.shape == (96, 25, 2) and found.action == ActionSpec("discrete", 5)
    assert found.features.obs.sum(1).tolist() == [3, 11] and len(np.unique(found.rows.group)) == 12
    still = (found.batch.actions == 0).mean((1, 2))
    busy = found.labels.values["style"] == found.labels.specs[-1].classes.index("busy")
    assert still[busy].mean() < 0.5 < 0.8 < still[~busy].mean()


@pytest.mark.slow
def test_from_a_table_to_a_report_and_to_new_recordings(games: Path) -> None:
    _, ingest, pipeline = commands(TABLE)
    assert run(*ingest) == 0 and run(*pipeline, *TINY) == 0
    home = games / "runs" / "games"
    table = pd.read_csv(home / "probes.csv")
    style = table[(table.label == "style") & (table.probe == "linear")].set_index("features")
    assert style.value["hand"] > 0.9  # calm and wild walks differ in speed
    found = read_dataset(home / "data")
    assert style.n_groups.max() == len(np.unique(found.rows.group[found.rows_of("test")]))
    page = (home / "report.html").read_text()
    assert "Groups (training seeds)" not in page and "Physics failed" not in page
    before = files(home)
    assert run(*pipeline, *TINY) == 0
    assert files(home) == before
    assert run("explore", "run=runs/games", "films=0", "clusters.bootstrap=2", "analysis=false") == 0
    write_games(games / "later.csv", range(30, 31))
    for command in commands(LATER):
        assert run(*command) == 0
    latents, _ = read_group(home / "embedded" / "later" / "embeddings")
    assert len(latents["omega_mean"]) == 2 and np.isfinite(latents["omega_mean"]).all()


@pytest.mark.slow
def test_from_an_environment_to_a_report(talk: Path) -> None:
    (pipeline,) = commands(ENVIRONMENT)
    assert run(*pipeline, *TINY) == 0
    table = pd.read_csv(talk / "probes.csv")
    assert {"style", "return_class"} <= set(table.label)
    style = table[(table.label == "style") & (table.probe == "linear")].set_index("features")
    assert style.value["hand"] > 0.9 and (talk / "report.html").exists()


@pytest.fixture
def cooks(tmp_path: Path, monkeypatch) -> Path:
    """The page's data set of people; the file lies where the page's own path does not lead from here."""
    monkeypatch.chdir(tmp_path)
    ingest = [word.replace(f"../shared/data/{HUMANS.name}", str(HUMANS)) for word in commands(COOKS)[0]]
    assert f"path={HUMANS}" in ingest and run(*ingest) == 0
    return tmp_path / "runs" / "overcooked"


@pytest.mark.skipif(not HUMANS.exists(), reason=f"{HUMANS} is not here")
def test_people_who_cook_are_a_data_set(cooks: Path) -> None:
    found, table = read_dataset(cooks / "data"), pd.read_parquet(HUMANS)
    lengths = table.groupby("episode").time.nunique()
    assert (
        f"{len(lengths)} recordings of {table.pair.nunique()} pairs give {len(found.split)} episodes" in DOC.read_text()
    )
    # A remainder of one frame is no episode.
    assert len(found.split) == sum(int(n) // 100 + (int(n) % 100 > 1) for n in lengths)
    assert found.action == ActionSpec("discrete", table.action.nunique()) and found.meta["action_names"] == sorted(
        table.action.unique()
    )
    of = [table[table.episode == int(found.meta["recordings"][number])] for number in found.rows.episode[::97]]
    for row, own in zip(range(0, len(found.split), 97), of, strict=True):
        window = own[(own.time >= own.time.min() + found.rows.t0[row])].sort_values("time").iloc[:200]
        gained = window.groupby("time").team_reward.mean().sum()
        assert found.labels.values["team_return"][row] == pytest.approx(gained)
        assert found.meta["groups"][found.rows.group[row]] == str(own.pair.iloc[0])
    parts = [set(found.rows.group[found.rows_of(name)].tolist()) for name in SPLITS]
    assert sum(map(len, parts)) == len(set().union(*parts)) == table.pair.nunique()
    (spec,) = [spec for spec in found.labels.specs if spec.name == "return_class"]
    assert spec.within == "layout"


@pytest.mark.slow
@pytest.mark.skipif(not HUMANS.exists(), reason=f"{HUMANS} is not here")
def test_people_who_cook_have_a_report(cooks: Path) -> None:
    assert run(*commands(COOKS)[1], *TINY) == 0
    assert {"return_class", "layout"} <= set(pd.read_csv(cooks / "probes.csv").label)
    assert (cooks / "report.html").exists()
