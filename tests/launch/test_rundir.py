import json
import subprocess
import sys
from pathlib import Path

import pytest

from data_gen.trajectory import InputError
from launch.rundir import claim, config_of
from marl_vae.task import Train

SECTIONS = {"train": Train(), "data": None}


def test_the_config_is_kept_and_another_one_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with claim(run, SECTIONS, {"train": 0}):
        pass
    assert config_of(run)["train"]["steps"] == Train().steps
    with pytest.raises(InputError, match="train.batch is 64 there and 8 here"):
        with claim(run, {"train": Train(batch=8)}, {"train": 0}):
            pass
    assert config_of(run) == {"train": vars(Train()), "data": None}


def test_another_number_of_jobs_is_not_another_config(tmp_path: Path) -> None:
    for jobs in (0, 2):
        with claim(tmp_path, {"probe": {"jobs": jobs, "seed": 1}}, {}):
            pass
    with pytest.raises(InputError, match="probe.seed is 1 there and 2 here. Go on"):
        with claim(tmp_path, {"probe": {"jobs": 3, "seed": 2}}, {}):
            pass


def test_a_stage_adds_its_own_sections(tmp_path: Path) -> None:
    with claim(tmp_path, {"data": "x"}, {}):
        pass
    with claim(tmp_path, {"probe": [1]}, {}):
        pass
    assert config_of(tmp_path) == {"data": "x", "probe": [1]}


def hold(run: Path, share: bool) -> subprocess.Popen:
    """Another process that works in the folder until its standard input closes."""
    code = (
        "import sys; from pathlib import Path; from launch.rundir import claim\n"
        f"with claim(Path({str(run)!r}), {{'data': None}}, {{}}, share={share}):\n"
        "    print('in', flush=True)\n    sys.stdin.read()"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "in\n"
    return other


def test_two_recorders_share_a_folder_and_nobody_else(tmp_path: Path) -> None:
    with hold(tmp_path, share=True):
        with claim(tmp_path, {"data": None}, {}, share=True):
            pass
        with pytest.raises(InputError, match="Another process"):
            with claim(tmp_path, {"data": None}, {}):
                pass


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    with hold(tmp_path, share=False) as other:
        with pytest.raises(InputError, match="Another process"):
            with claim(tmp_path, {"data": None}, {}, share=True):
                pass
        other.kill()
        other.wait()
        with claim(tmp_path, {"data": None}, {}):
            pass


def test_many_recorders_may_start_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from launch.rundir import claim\n"
        "for n in range(20):\n"
        f"    with claim(Path({str(tmp_path)!r}), {{'data': None}}, {{'n': n}}, share=True): pass"
    )
    others = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(other.communicate()[1], other.returncode) for other in others] == [(b"", 0)] * 4
    notes = json.loads((tmp_path / "provenance.json").read_text())
    assert sorted(note["seeds"]["n"] for note in notes) == list(range(20))


@pytest.mark.parametrize("name", ["file", "file/below", "x" * 300])
def test_what_cannot_be_a_folder_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made a run's folder"):
        with claim(tmp_path / name, {}, {}):
            pass


def test_provenance_lists_each_way_a_folder_was_worked_in_once(tmp_path: Path) -> None:
    for seeds in ({"train": 0}, {"train": 0}, {"probe": 3}):
        with claim(tmp_path, {}, seeds):
            pass
    notes = json.loads((tmp_path / "provenance.json").read_text())
    assert [note["seeds"] for note in notes] == [{"train": 0}, {"probe": 3}]
    assert all(note["revision"] and note["versions"]["jax"] for note in notes)
