"""Entry points run in this process, as the command line would."""

import importlib
import sys
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra

SMALL = [
    "experiment=tiny",
    "learner.updates=4",
    "train.steps=40",
    "train.eval_every=10",
    "recording.episodes=3",
    "probe.labels=[return_class,progress]",
    "probe.probes=[linear]",
]


def run(stage: str, *overrides: str) -> int:
    """Exit code of `python -m launch.<stage> <overrides>`."""
    GlobalHydra.instance().clear()
    module = importlib.import_module(f"launch.{stage}")
    entry = importlib.import_module("launch.entry")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"launch.{stage}", *overrides])
        with pytest.raises(SystemExit) as ended:
            entry.enter(stage, module.main)
    return ended.value.code


def files(folder: Path) -> dict[str, bytes]:
    """Every file's content by its path, but for the lock and what says when and how it was made."""
    skipped = {".lock", "provenance.json"}
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name not in skipped
    }
