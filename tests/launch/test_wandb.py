"""W&B in whatever state: broken, out of reach, disabled, or in a sweep of its own."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import wandb
import yaml
from wandb.sdk.launch.sweeps.utils import create_sweep_command, create_sweep_command_args

from data_gen.trajectory import InputError
from launch.log import Logging, logging_to
from launch.schema.typed import composed, typed
from launch.schema.workspace import Dashboard
from launch.summary import CLUSTERS, COUPLING, of_changes, of_clusters, of_coupling
from probes.levels import JOINT, local_level
from tests.launch.commands import run
from tests.launch.offline_file import sessions_of

SWEEP = Path(__file__).parents[2] / "launch" / "sweep.yaml"
OFFLINE = Logging(kind="wandb")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that holds nothing but a config."""
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    return tmp_path


def test_a_resumed_job_goes_on_in_its_run_and_repeats_no_step(folder: Path, capsys) -> None:
    for steps in ((10, 20), (10, 20, 30)):
        with pytest.raises(KeyError):
            with logging_to(OFFLINE, folder, "group") as logger:
                for step in steps:
                    logger.metrics({"step": step, "val_bound": -float(step)}, folder)
                raise KeyError
    logs = sessions_of(folder)
    assert len(logs) == 2 and len({log.run_id for log in logs}) == 1
    rows = [row for log in logs for row in log.history]
    assert [(row["_step"], row["step"], row["val_bound"]) for row in rows] == [(0, 10, -10), (1, 20, -20), (2, 30, -30)]
    assert [log.ended for log in logs] == [1, 1] and logs[0].config["seed"] == 3
    assert capsys.readouterr().err == ""


def test_a_broken_log_is_told_and_ends_no_run(folder: Path, capsys, monkeypatch) -> None:
    with logging_to(OFFLINE, folder, "group") as logger:
        logger.metrics({"step": 10, "val_bound": 1.0}, folder)
        monkeypatch.setattr(logger._run, "log", lambda *_, **__: 1 / 0)
        logger.metrics({"step": 20, "val_bound": 2.0}, folder)
        logger.metrics({"step": 30, "val_bound": 3.0}, folder)
    error = capsys.readouterr().err
    assert error.count("W&B took no more of the log (ZeroDivisionError") == 1 and "the same command again" in error
    (log,) = sessions_of(folder)
    assert [row["step"] for row in log.history] == [10] and log.ended == 0
    assert json.loads((folder / "wandb.json").read_text())["steps"] == {"": 10}  # so that 20 and 30 are missing


def test_another_run_of_w_and_b_is_given_everything_again(folder: Path, monkeypatch) -> None:
    for name in ("first", "second"):
        monkeypatch.setenv("WANDB_RUN_ID", name)
        with pytest.raises(KeyError), logging_to(OFFLINE, folder, "group") as logger:
            logger.metrics({"step": 10, "val_bound": 1.0}, folder)
            raise KeyError
    found = {log.run_id: [row["step"] for row in log.history] for log in sessions_of(folder)}
    assert found == {"first": [10], "second": [10]}


def test_disabled_mode_writes_nothing(folder: Path) -> None:
    with logging_to(Logging(kind="wandb", mode="disabled"), folder, "group") as logger:
        logger.metrics({"step": 1, "val_bound": 2.0}, folder)
    assert [path.name for path in folder.iterdir()] == ["config.yaml"]


def test_online_without_an_account_says_what_to_do(folder: Path, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "no such key")
    with pytest.raises(InputError, match="logger.mode=offline"):
        with logging_to(Logging(kind="wandb", mode="online"), folder, "group"):
            pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # wandb-workspaces uses validators of Pydantic 1
def test_a_workspace_that_cannot_be_saved_says_what_to_do(monkeypatch, capsys) -> None:
    def refuse() -> None:
        raise wandb.errors.UsageError("no API key")

    monkeypatch.setattr(wandb, "Api", refuse)
    for whose in (["entity=me"], []):
        assert run("workspace", *whose) == 2
        assert "no API key" in (said := capsys.readouterr().err) and "wandb login" in said


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_workspace_is_sent_as_one_view(monkeypatch, capsys) -> None:
    from wandb_workspaces.workspaces import internal

    sent = []

    def execute(api, query: str, variables: dict) -> dict:
        sent.append(variables)
        return {"upsertView": {"view": {"id": "1", "name": "nw-abc-v"}}}

    monkeypatch.setattr(wandb, "Api", lambda: SimpleNamespace(client=SimpleNamespace(app_url="https://wandb.ai")))
    monkeypatch.setattr(internal, "execute_graphql", execute)
    assert run("workspace", "entity=me", "project=fish", "labels=[goal]") == 0
    assert "https://wandb.ai/me/fish?nw=abc" in capsys.readouterr().out
    (view,) = sent
    assert (view["entityName"], view["projectName"]) == ("me", "fish") and '"probe/goal/value"' in view["spec"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_workspaces_panels_of_the_analysis_have_the_names_that_are_logged() -> None:
    from wandb_workspaces.reports.v2 import BarPlot

    from launch.panels import ANALYSIS, workspace_of

    (section,) = [one for one in workspace_of(Dashboard(labels=["goal"]), "me").sections if one.name == ANALYSIS]
    shown = {
        name for panel in section.panels for name in (panel.metrics if isinstance(panel, BarPlot) else panel.media_keys)
    }
    levels = [JOINT, local_level(0), local_level(1)]
    found = {
        **of_clusters(pd.DataFrame([dict.fromkeys(CLUSTERS, 1.0) | {"level": a, "method": "mixture"} for a in levels])),
        **of_coupling(
            pd.DataFrame([dict.fromkeys(COUPLING, 0.5) | {"first": a, "second": b} for a in levels for b in levels])
        ),
        **of_changes(pd.DataFrame({"level": levels, "n_changes": [1, 0, 2], "note": None})),
    }
    figures = {f"figures/{name}" for name in ("clusters_z_omega", "coupling", "changes")}
    assert shown - set(found) == figures and len(shown) == 17  # test_explore.py finds the figures in a log
    written = (Path(__file__).parents[2] / "docs" / "wandb.md").read_text()
    for name in shown - figures:
        assert f"`{name.split('/')[0]}/<" in written and f"{name.split('/')[-1]}`" in written


def test_a_sweeps_command_is_one_that_hydra_takes(monkeypatch) -> None:
    """The command that W&B's agent makes of the file, by its own functions and its rule for macros."""
    sweep = yaml.safe_load(SWEEP.read_text())
    monkeypatch.setenv("WANDB_RUN_ID", "abc123")
    drawn = {name: {"value": given["values"][-1]} for name, given in sweep["parameters"].items()}
    macros = create_sweep_command_args({"args": drawn}) | {"env": ["/usr/bin/env"]}
    words = [
        part
        for word in create_sweep_command(sweep["command"])
        for part in (macros[word[2:-1]] if word.startswith("${") and word.endswith("}") else [word])
    ]
    assert words[:4] == ["/usr/bin/env", "python", "-m", "launch.train"]
    cfg = typed(composed("train", words[4:]))
    assert cfg.name == "sweep/abc123" and cfg.logger.mode == "online" and cfg.model.joint_width == 16
    assert cfg.train.seed == 2 and cfg.schedule.joint.cycles == 4 and cfg.schedule.joint.maximum == 1.0
