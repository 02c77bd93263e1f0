"""The time left is a fair one, or not told."""

import pytest

from launch import progress


def test_the_time_left_is_told_once_it_can_be_known(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    clock = iter([0.0, 0.0, 20.0, 40.0, 120.0, 140.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell = progress.Tell("generate", None)
    for share in (0.0, 0.005, 0.5, 0.6):
        tell(share, "shard 1")
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "generate   0%  20 s  shard 1",
        "generate   0%  40 s  shard 1",
        "generate  50%  120 s, 100 s left  shard 1",
        "generate  60%  140 s, 80 s left  shard 1",
    ]


def test_what_comes_before_the_work_is_not_counted(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    clock = iter([0.0, 0.0, 20.0, 400.0, 420.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    tell = progress.Tell("probe", None)
    for share in (0.0, 0.0, 0.2):  # two ceilings that are trained, then a fifth of the probes in 20 s
        tell(share)
    assert capsys.readouterr().out.splitlines()[-1] == "probe  20%  420 s, 80 s left  "
