"""Which episodes a run reads, and which of them something may be fitted on."""

from pathlib import Path
from typing import Any

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import Dataset, seen_rows, select
from launch.rundir import config_of
from launch.schema import Training
from marl_vae.task import Train


def data_folder(cfg: Training, run: Path) -> Path:
    """The data set that a run reads: the one named by `data`, or its own."""
    return Path(cfg.data) if cfg.data else run / "data"


def seen_data(cfg: Training, run: Path) -> Dataset:
    """The episodes of a run's data set that something may be fitted on."""
    found = read_dataset(data_folder(cfg, run))
    return select(found, seen_rows(found, cfg.train.hold_out))


def hold_out_of(run: Path) -> list[int]:
    """The checkpoints that nothing of a run was fitted on."""
    return Train(**config_of(run)["train"]).hold_out


def inputs_of(found: Dataset) -> dict[str, Any]:
    """What the probes take of a data set."""
    return {name: getattr(found, name) for name in ("batch", "features", "rows", "split", "labels", "hand")}
