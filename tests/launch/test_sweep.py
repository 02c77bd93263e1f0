"""Sweeps: a folder for each job and a W&B run that says what it holds; a failed job ends nothing but itself."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import marl_vae
from data_gen.storage.dataset import digest, read_dataset
from data_gen.trajectory import take
from launch.log import Logging, logging_to
from launch.probed import keep_table, read_probes
from launch.rundir import config_of
from launch.schema.workspace import Dashboard
from launch.summary import summary_of
from tests.launch.commands import SMALL_DATA, run
from tests.launch.offline_file import sessions_of

TRAIN = [
    "train.steps=20",
    "train.steps_per_dispatch=10",
    "train.eval_every=10",
    "model.hidden=6",
    "model.decoder_hidden=6",
]
PROBE = ["probe.labels=[return_class]", "probe.probes=[linear]", "probe.permutations=1", "probe.bootstrap=100"]
OWN = {"_step", "_timestamp", "_runtime"}  # names that W&B adds to a row


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("data")
    assert run("generate", *SMALL_DATA, "name=made", f"runs={runs}", "logger=wandb") == 0
    return runs / "made" / "data"


@pytest.fixture(scope="module")
def swept(data: Path, tmp_path_factory) -> Path:
    """Two runs that trained, beside two jobs that could not; the first of them is probed as well."""
    runs = tmp_path_factory.mktemp("swept")
    jobs = ["--multirun", "train.seed=0,1", f"data={data},{runs / 'nothing'}"]
    assert run("train", *jobs, *TRAIN, "name=swept", f"runs={runs}", "logger=wandb") == 2
    (first, _) = trained(runs / "swept")
    assert run("probe", f"run='{first}'", *PROBE, "logger=wandb") == 0
    return runs / "swept"


def trained(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/metrics.jsonl"))


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in OWN}


def json_of(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_jobs_have_their_own_folders_and_wandb_runs_and_one_may_fail(swept: Path, capsys) -> None:
    done = trained(swept)
    assert len(done) == 2 and all(len(path.name) < 120 for path in done)
    assert {config_of(path)["train"]["seed"] for path in done} == {0, 1}
    logs = [sessions_of(path)[0] for path in done]
    assert len({log.run_id for log in logs}) == 2
    for log, path in zip(logs, done, strict=True):
        config = {name: value for name, value in log.config.items() if name != "_wandb"}
        assert config == json_of(config_of(path)) and (log.name, log.group, log.ended) == (path.name, "swept", 0)
    assert run("probe", f"runs={swept}/*", "probe.labels=[return_class]") == 0
    how = f"its difference to {done[0].name} [paired]"
    assert how in capsys.readouterr().out
    table = pd.read_csv(swept / "comparison.csv")
    assert list(table.run) == [path.name for path in done] and table.minus_reference.notna().tolist() == [False, True]
    assert (swept / "comparison.png").exists()
    page = (swept / "comparison.md").read_text()
    assert page.count("\n| ") == 3 and how in page and "return_class: only 3 test groups." in page
    for wrong, said in (
        ("logger=wandb", "leave logger= out"),
        ("reference=nowhere", "none of the runs"),
    ):
        assert run("probe", f"runs={swept}/*", wrong) == 2
        assert said in capsys.readouterr().err
    assert run("probe", f"runs={swept.parent}/none/*") == 2
    assert "matches no trained run" in capsys.readouterr().err


def test_failed_jobs_say_why_one_after_another(tmp_path: Path, capsys) -> None:
    jobs = ["--multirun", f"data={tmp_path / 'nothing'},{tmp_path / 'none'}"]
    assert run("train", *jobs, *TRAIN, "name=swept", f"runs={tmp_path}") == 2
    error = capsys.readouterr().err
    assert error.count("error: ") == 2 and "nothing" in error and "none" in error
    assert "1 job(s)" not in error and "2 job(s) of the sweep failed" in error


def test_history_holds_every_row_of_metrics_once_with_its_step(swept: Path) -> None:
    for path in trained(swept):
        rows = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        logged = [row for log in sessions_of(path) for row in log.history]
        metrics = [plain(row) for row in logged if "train_bound" in row]
        assert metrics == rows and [row["step"] for row in rows] == [10, 20]
        assert [row["_step"] for row in logged] == list(range(len(logged)))


def test_tables_figures_and_the_report_are_those_of_the_folder(swept: Path) -> None:
    (first, _) = trained(swept)
    training, probing = sessions_of(first)
    assert training.run_id == probing.run_id and probing.ended == 0
    (shown,) = probing.history
    assert shown["step"] == 20
    assert set(plain(shown)) == {
        "step",
        "probes",
        "report",
        *(f"figures/{png.stem}" for png in first.glob("figures/*.png")),
    }
    table = json.loads((probing.folder / shown["probes"]["path"]).read_text())
    csv = pd.read_csv(first / "probes.csv")
    assert table["columns"] == list(csv.columns) and len(table["data"]) == len(csv)
    for row, wanted in zip(table["data"], csv.to_numpy().tolist(), strict=True):
        assert row == [None if pd.isna(value) else value for value in wanted]
    assert "NaN" not in (probing.folder / shown["probes"]["path"]).read_text()
    assert (probing.folder / shown["report"]["path"]).read_bytes() == (first / "report.html").read_bytes()
    for png in first.glob("figures/*.png"):
        assert (probing.folder / shown[f"figures/{png.stem}"]["path"]).read_bytes() == png.read_bytes()


def test_the_summary_holds_the_figures_that_a_dashboard_compares(swept: Path, data: Path) -> None:
    (first, _) = trained(swept)
    summary = sessions_of(first)[-1].summary
    usage = json.loads((first / "usage.json").read_text())
    assert {name: summary[f"usage/{name}"] for name in usage if usage[name] is not None} == {
        name: value for name, value in usage.items() if value is not None
    }
    table = pd.read_csv(first / "probes.csv").query("probe == 'linear' and label == 'return_class'")
    rows = table.set_index("features")
    for name in ("value", "ci_low", "ci_high", "chance", "control", "minus_control", "selectivity"):
        assert summary[f"probe/return_class/{name}"] == rows.loc["z_omega", name]
    assert summary["probe/return_class/minus_hand"] == rows.loc["hand", "zw_minus_this"]
    assert summary["data/digest"] == digest(data)
    bounds = {row["step"]: row["val_bound"] for row in sessions_of(first)[0].history if "val_bound" in row}
    assert summary["chosen/val_bound"] == pytest.approx(bounds[summary["chosen/step"]])


def test_artifacts_lie_where_they_were_and_make_a_model_again(swept: Path, data: Path, tmp_path: Path) -> None:
    (first, _) = trained(swept)
    (log, later) = sessions_of(first)
    assert later.artifacts.keys() == {f"run-{log.run_id}-probes"}
    assert log.artifacts.keys() == {f"model-{log.run_id}", f"embeddings-{log.run_id}"}  # the data is not its own
    for artifact in log.artifacts.values():
        for entry in artifact.manifest.contents:
            assert Path(entry.local_path) == first / entry.path  # no copy
            (tmp_path / entry.path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(entry.local_path, tmp_path / entry.path)
    assert not list(tmp_path.glob("checkpoints/*/last"))
    found = read_dataset(data)
    some = take(found.batch, np.arange(4, dtype=np.int32))
    one, other = (marl_vae.load(place).embed(some) for place in (first, tmp_path))
    np.testing.assert_array_equal(one.omega_mean, other.omega_mean)
    made = sessions_of(data.parent)[0]
    (dataset,) = made.artifacts.values()
    assert dataset.name == f"data-{digest(data)[:12]}" and dataset.type == "dataset"
    files = {str(file.relative_to(data)): file.as_uri() for file in data.glob("shard-*/**/*") if file.is_file()}
    assert {entry.path: entry.ref for entry in dataset.manifest.contents} == files
    about = json.loads(dataset.metadata)
    assert (
        about["digest"] == digest(data) and about["episodes"] == len(found.split) and "return_class" in about["labels"]
    )


def test_a_repeated_job_logs_what_changed_and_nothing_else_and_nothing_outside(
    swept: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    again = tmp_path / "again"
    shutil.copytree(trained(swept)[0], again)
    was = json.loads((again / "wandb.json").read_text())
    (again / "few.csv").write_text("label,value\na,0.5\n")
    with logging_to(Logging(kind="wandb"), again, "swept"):
        pass
    (shown,) = sessions_of(again)[-1].history
    assert set(plain(shown)) == {"step", "few"} and shown["_step"] == was["rows"]
    (again / "few.csv").unlink()
    table, settings = read_probes(again)
    keep_table(settings, again, table.query("label == 'split_group'"))
    with logging_to(Logging(kind="wandb"), again, "swept"):
        pass
    last = sessions_of(again)[-1]
    assert [set(plain(row)) for row in last.history] == [{"step", "probes"}]
    assert last.artifacts.keys() == {f"run-{last.run_id}-probes"}
    assert last.summary["few"] is None and last.summary["probe/return_class/value"] is None
    assert last.summary["probe/split_group/value"] > 0
    assert not (tmp_path / "home").exists()
    assert "W&B" not in capsys.readouterr().err


def test_further_encoder_seeds_have_names_of_their_own(swept: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    ignored = shutil.ignore_patterns("wandb*", "figures", "*.html", "*.csv")
    shutil.copytree(trained(swept)[0], two, ignore=ignored)
    shutil.copytree(trained(swept)[1], two / "seed_1", ignore=ignored)
    config = config_of(two)
    config["train"] |= {"seed": 0, "seeds": 2}
    (two / "config.yaml").write_text(yaml.safe_dump(config))
    with logging_to(Logging(kind="wandb"), two, "two"):
        pass
    (log,) = sessions_of(two)
    bounds = {row["seed_1/val_bound"]: row["step"] for row in log.history if "seed_1/val_bound" in row}
    wanted = [json.loads(line) for line in (two / "seed_1" / "metrics.jsonl").read_text().splitlines()]
    assert bounds == {row["val_bound"]: row["step"] for row in wanted}
    assert log.summary["seed_1/usage/nll"] == json.loads((two / "seed_1" / "usage.json").read_text())["nll"]
    model = log.artifacts[f"model-{log.run_id}"]
    assert set(json.loads(model.metadata)) == {".", "seed_1"}
    assert {entry.path.split("/")[0] for entry in model.manifest.contents} == {"checkpoints", "seed_1"}


def test_a_run_names_the_data_it_was_given_where_w_and_b_can_be_asked(swept: Path, tmp_path: Path, monkeypatch) -> None:
    """Online, of a stand-in for W&B's run: no account is needed here."""
    import wandb

    shutil.copytree(trained(swept)[0], tmp_path / "online", ignore=shutil.ignore_patterns("wandb*"))
    asked = StandIn()
    monkeypatch.setattr(wandb, "init", lambda **settings: asked)
    with logging_to(Logging(kind="wandb", mode="online"), tmp_path / "online", "swept"):
        pass
    assert [artifact.type for artifact in asked.used] == ["dataset"]
    assert [artifact.type for artifact in asked.made] == ["model", "embeddings"]
    assert asked.used[0].name == f"data-{summary_of(tmp_path / 'online')['data/digest'][:12]}"
    assert asked.rows[0]["step"] == 10 and asked.first == 7  # rows count on from those that W&B has


class StandIn:
    """What `wandb.init` returns, as far as it is used, for a run that has seven rows."""

    id, step, offline = "abc", 7, False

    def __init__(self):
        self.used, self.made, self.rows, self.summary, self.first = [], [], [], {}, None
        self.use_artifact, self.log_artifact = self.used.append, self.made.append

    def define_metric(self, *names: str, **settings: str) -> None: ...

    def finish(self, exit_code: int) -> None: ...

    def log(self, values: dict, step: int, commit: bool) -> None:
        self.first = step if self.first is None else self.first
        self.rows.append(values)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # wandb-workspaces uses validators of Pydantic 1
def test_the_workspace_shows_what_is_logged_and_documented(swept: Path) -> None:
    from launch.panels import ANALYSIS, workspace_of

    built = workspace_of(Dashboard(labels=["return_class"]), "me")
    sections = json.loads(built._to_model().spec.model_dump_json(by_alias=True))["section"]["panelBankConfig"][
        "sections"
    ]
    own = [section for section in sections if section["name"] != ANALYSIS]  # of which test_wandb.py knows
    assert len(own) == len(sections) - 1
    panels = [panel["config"] for section in own for panel in section["panels"]]
    shown = {name for panel in panels for name in [*panel.get("metrics", ()), *panel.get("mediaKeys", ())]}
    shown |= {panel["xAxis"] for panel in panels if panel.get("xAxis")}
    shown |= {name.removeprefix("summary:") for name in built.runset_settings.pinned_columns if "summary" in name}
    shown |= {panel.table_name for panel in built.sections[-1].panels}
    logs = sessions_of(trained(swept)[0])
    logged = {name for log in logs for row in [*log.history, log.summary] for name in row}
    assert len(shown) > 20 and shown <= logged
    written = (Path(__file__).parents[2] / "docs" / "wandb.md").read_text()
    assert {name for name in shown if f"`{named(name)}`" not in written} == set()


def named(name: str) -> str:
    """As docs/wandb.md writes it."""
    return name.replace("return_class", "<label>").replace("minus_random_encoder", "minus_<features>")
