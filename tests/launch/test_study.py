"""The study's command: its domains as processes of their own, and settings that are refused."""

from pathlib import Path

import pandas as pd
import pytest

import launch.study
from launch.schema.study import Study, StudyDomain
from launch.steps import StepFailed, Steps
from launch.study_part import Part
from marl_vae.member import TrainingDiverged
from tests.launch.commands import run


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["only=nowhere"], "only=nowhere: the domains are hill_climbing, coordination, halfcheetah"),
        (["jobs=0"], "jobs=0"),
        (["seeds=1"], "seeds=1"),
        (["domains.coordination.labels=[gaol]"], "domains.coordination.labels: the domain has no label 'gaol'"),
        (["domains.coordination.hold_out=[77]"], "no checkpoint 77"),
        (["domains.coordination.train=['train.stepz=3']"], "domains.coordination: launch.train name=coordination"),
        (["domains.coordination.intervene=['intervention.pairs=0']"], "intervention.pairs is 0"),
        (["docs=README.md"], "docs=README.md cannot hold the study"),
        (["domains.coordination.arms=[default,no_such]"], "domains.coordination.arms: there is no 'no_such'"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_made(
    overrides: list[str], said: str, tmp_path: Path, capsys
) -> None:
    if not overrides[0].startswith("only="):  # a smaller study has fewer steps to compose
        overrides = ["~domains.hill_climbing", "~domains.halfcheetah", *overrides]
    assert run("study", *overrides, f"runs={tmp_path / 'study'}") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "study").exists()


def test_domains_are_worked_on_apart_and_told_together(tmp_path: Path, monkeypatch) -> None:
    """Every domain has its own command, with the user's overrides; the page has the tables of all."""
    commands, told = [], {}

    class Part:
        def __init__(self, cfg, name: str, steps):
            self.name = name

        def run(self) -> dict[str, pd.DataFrame]:
            assert len(commands) == 3  # whatever takes long was done by then
            return {"search": pd.DataFrame({"arm": [self.name]})}

    monkeypatch.setattr(launch.study, "check_study", lambda cfg: None)
    monkeypatch.setattr(launch.study, "run_command", commands.append)
    monkeypatch.setattr(launch.study, "Part", Part)
    monkeypatch.setattr(launch.study, "write_study", lambda docs, tables, *rest: told.update(tables))
    assert run("study", f"runs={tmp_path / 'study'}", "seeds=2") == 0
    given = [f"runs={tmp_path / 'study'}", "seeds=2"]
    names = ["hill_climbing", "coordination", "halfcheetah"]
    assert sorted(commands) == sorted(["python", "-m", "launch.study", *given, f"only={name}"] for name in names)
    assert list(told) == names and told["coordination"]["search"].arm[0] == "coordination"


def test_an_arm_that_diverged_is_left_out_and_one_that_broke_ends_the_study(tmp_path: Path, monkeypatch) -> None:
    codes = {"first": 0, "second": 3, "third": 0}
    own = StudyDomain(data=[], labels=["goal"], intervene=[], hold_out=[], arms=list(codes))
    cfg = Study(runs=str(tmp_path), search={arm: [] for arm in codes}, domains={"plane": own})
    part = Part(cfg, "plane", Steps(tmp_path / "steps"))

    def train(kind: str, *overrides: list[str]) -> Path:
        code = codes[kind.removeprefix("search/")]
        if code:
            raise StepFailed(kind, code)
        return tmp_path / kind

    monkeypatch.setattr(part, "train", train)
    monkeypatch.setattr(part, "judged", lambda place, split: {"mean_skill": 0.5 if place.name == "first" else 0.7})
    assert part.search().mean_skill.fillna(-1).tolist() == [0.5, -1, 0.7]
    codes["second"] = 1
    with pytest.raises(StepFailed, match="search/second"):
        part.search()


def test_a_training_that_diverged_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch, capsys) -> None:
    def diverge(cfg) -> None:
        raise TrainingDiverged("recon became nan at step 0")

    monkeypatch.setattr(launch.study, "main", diverge)
    assert run("study", f"runs={tmp_path}") == 3
    assert capsys.readouterr().err == "error: recon became nan at step 0\n"
