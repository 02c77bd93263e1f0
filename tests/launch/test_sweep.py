"""Sweeps and loggers: a folder and a W&B run for each job, and a failed job ends nothing but itself."""

from pathlib import Path

import pandas as pd
import pytest

from data_gen.trajectory import InputError
from launch.log import Logging, logging_to
from launch.rundir import config_of
from tests.launch.commands import SMALL_DATA, run

TRAIN = [
    "train.steps=20",
    "train.steps_per_dispatch=10",
    "train.eval_every=10",
    "model.hidden=6",
    "model.decoder_hidden=6",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("data")
    assert run("generate", *SMALL_DATA, "name=made", f"runs={runs}") == 0
    return runs / "made" / "data"


def test_jobs_have_their_own_folders_and_wandb_runs_and_one_may_fail(data: Path, tmp_path: Path, capsys) -> None:
    jobs = ["--multirun", "train.seed=0,1", f"data={data},{tmp_path / 'nothing'}"]
    assert run("train", *jobs, *TRAIN, "name=swept", f"runs={tmp_path}", "logger=wandb") == 2
    error = capsys.readouterr().err
    assert error.count("error: ") == 2 and "nothing" in error
    assert "1 job(s)" not in error and "2 job(s) of the sweep failed" in error
    done = sorted(path.parent.name for path in (tmp_path / "swept").glob("*/metrics.jsonl"))
    assert len(done) == 2 and all(len(name) < 120 for name in done)
    assert {config_of(tmp_path / "swept" / name)["train"]["seed"] for name in done} == {0, 1}
    logs = sorted((tmp_path / "swept").glob("*/wandb/offline-run-*/*.wandb"))
    assert len(logs) == len({log.stem for log in logs}) == 2
    for log in logs:
        content = log.read_bytes()
        for word in (b"val_bound", b"kl_omega", b"nll_without_latents", b"steps_per_dispatch", b"swept"):
            assert word in content, word
    capsys.readouterr()
    assert run("probe", f"runs={tmp_path}/swept/*", "probe.labels=[return_class]") == 0
    assert "differences are to" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "swept" / "comparison.csv")
    assert list(table.run) == done and table.minus_reference.notna().tolist() == [False, True]
    assert (tmp_path / "swept" / "comparison.png").exists()
    assert (tmp_path / "swept" / "comparison.md").read_text().count("\n") == 4
    for wrong, said in (
        (f"runs={tmp_path}/none/*", "matches no trained run"),
        ("reference=nowhere", "none of the runs"),
    ):
        assert run("probe", f"runs={tmp_path}/swept/*", wrong) == 2
        assert said in capsys.readouterr().err


def test_a_log_holds_tables_and_figures_and_is_closed_when_a_job_fails(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    for _ in range(2):
        with pytest.raises(KeyError):
            with logging_to(Logging(kind="wandb"), tmp_path, "group") as logger:
                logger.table("probes", pd.DataFrame({"label": ["return_class"], "value": [0.5]}))
                raise KeyError
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2
    assert (
        len({path.stem for path in tmp_path.glob("wandb/*/*.wandb")}) == 1
    )  # a second try goes on in the same W&B run


def test_disabled_mode_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    with logging_to(Logging(kind="wandb", mode="disabled"), tmp_path, "group") as logger:
        logger.metrics({"step": 1, "val_bound": 2.0})
    assert not list(tmp_path.glob("**/*.wandb"))


def test_online_without_an_account_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "no such key")
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    with pytest.raises(InputError, match="logger.mode=offline"):
        with logging_to(Logging(kind="wandb", mode="online"), tmp_path, "group"):
            pass
