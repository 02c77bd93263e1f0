"""Steps of the study: each done once, a failed one never noted."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from launch.steps import StepFailed, Steps
from launch.study_part import last_of_each


def test_a_step_is_done_once_and_noted_with_its_seconds(tmp_path: Path) -> None:
    done: list[str] = []
    for name in ("a", "b", "a"):
        Steps(tmp_path / "notes").once(["step", name], lambda name=name: done.append(name), tmp_path)
    assert done == ["a", "b"]
    steps = Steps(tmp_path / "notes")
    for name in ("a", "b"):
        steps.once(["step", name], lambda: done.append("again"), tmp_path)
    times = steps.times()
    assert done == ["a", "b"]
    assert sorted(times.step) == ["step a", "step b"] and (times.seconds >= 0).all()


def test_a_step_is_noted_with_the_processor_time_of_what_it_started(tmp_path: Path) -> None:
    work = "import time\nwhile time.process_time() < 1.5: pass"
    steps = Steps(tmp_path / "notes")
    steps.once(["work"], lambda: subprocess.run([sys.executable, "-c", work]), tmp_path)
    steps.once(["sleep"], lambda: time.sleep(1.5), tmp_path)
    spent = steps.times().set_index("step").processor_seconds
    assert spent["work"] >= 1 and spent["sleep"] == 0


def test_a_step_that_failed_is_tried_again(tmp_path: Path) -> None:
    def fail() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Steps(tmp_path / "notes").once(["step"], fail, tmp_path)
    done: list[int] = []
    Steps(tmp_path / "notes").once(["step"], lambda: done.append(1), tmp_path)
    assert done == [1]


def test_a_step_whose_result_another_one_wrote_over_is_done_again(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for word, content in (("a", "a"), ("b", "b"), ("a", "a"), ("a", "a")):
        before = made.read_text() if made.exists() else ""
        Steps(tmp_path / "notes").once(["step", word], lambda word=word: made.write_text(word) and None, made)
        assert made.read_text() == content, before


def test_times_are_those_of_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    Steps(tmp_path / "notes").once(["abandoned"], lambda: None, tmp_path)
    steps = Steps(tmp_path / "notes")
    for _ in range(2):
        steps.once(["kept"], lambda: None, tmp_path)
    assert set(steps.times().step) == {"kept"}


def test_a_step_whose_result_was_removed_is_done_again(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for _ in range(2):
        Steps(tmp_path / "notes").once(["step"], made.touch, made)
        assert made.exists()
        made.unlink()


def test_a_command_that_fails_ends_the_work(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="launch.nothing .* ended with 1") as failed:
        Steps(tmp_path / "notes").launch("nothing", "name=a", makes=tmp_path)
    assert failed.value.code == 1
    assert list(tmp_path.iterdir()) == []


def test_of_two_values_for_one_key_the_later_wins() -> None:
    found = last_of_each(["a.b=1", "group=x"], ["group=y"], ["c=2", "a.b=3"])
    assert sorted(found) == ["a.b=3", "c=2", "group=y"]
