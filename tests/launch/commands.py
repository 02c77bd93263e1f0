"""Entry points run in this process, as the command line would."""

import importlib
import logging
import sys
from pathlib import Path

import pytest
from absl import logging as absl_logging
from hydra.core.global_hydra import GlobalHydra

# Whoever configures logging closes absl's handler, and that closes a stream it does not know: here pytest's own.
absl_logging.get_absl_handler().python_handler.stream = sys.__stderr__

SMALL = [
    "experiment=tiny",
    "learner.updates=4",
    "train.steps=40",
    "train.eval_every=10",
    "recording.episodes=3",
    "probe.labels=[return_class,progress]",
    "probe.probes=[linear]",
    "analysis=false",
]
# The same data set, for an entry point that has no experiments.
SMALL_DATA = [
    "learner.updates=4",
    "learner.envs=8",
    "recording.seeds=12",
    "recording.checkpoints=3",
    "recording.episodes=3",
    "recording.shards=2",
    "recording.split=[6,3,3]",
]

# What SMALL trains, likewise.
SMALL_TRAINING = [
    "model.joint_width=4",
    "model.local_width=2",
    "model.hidden=16",
    "model.decoder_hidden=16",
    "train.steps=40",
    "train.batch=32",
    "train.steps_per_dispatch=10",
    "train.eval_every=10",
]


def run(stage: str, *overrides: str) -> int:
    """Exit code of `python -m launch.<stage> <overrides>`."""
    GlobalHydra.instance().clear()
    module = importlib.import_module(f"launch.{stage}")
    entry = importlib.import_module("launch.entry")
    handlers = list(logging.root.handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"launch.{stage}", *overrides])
        with pytest.raises(SystemExit) as ended:
            entry.enter(stage, module.main)
    logging.root.handlers[:] = handlers  # hydra's own write to this test's captured output, which will be closed
    return ended.value.code


def files(folder: Path) -> dict[str, bytes]:
    """Every file's content by its path, but for the lock and what says when and how it was made."""
    skipped = {".lock", "provenance.json"}
    return {
        str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name not in skipped
    }
