"""What a run reads: its episodes, and those that something may be fitted on."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.domains import label_names
from data_gen.storage.dataset import read_dataset
from data_gen.storage.unpacked import open_dataset
from data_gen.trajectory import (
    SPLITS,
    Dataset,
    Episodes,
    InputError,
    OpenDataset,
    TrajectoryBatch,
    seen_rows,
    select,
    take,
)
from launch.rundir import config_of, data_of
from launch.schema.train import Training
from marl_vae.task import Train
from probes.labels import check_names


def data_folder(cfg: Training, run: Path) -> Path:
    """The data set that a run reads: the one named by `data`, or its own."""
    return Path(cfg.data) if cfg.data else run / "data"


def seen_data(cfg: Training, run: Path) -> Dataset:
    """The episodes of a run's data set that something may be fitted on."""
    found = read_dataset(data_folder(cfg, run))
    return select(found, seen_rows(found, cfg.train.hold_out))


def training_data(cfg: Training, run: Path) -> Dataset | OpenDataset:
    """A run's data set, its episodes in memory or, with train.stream, on disk; InputError where none could train."""
    root = data_folder(cfg, run)
    found = open_dataset(root) if cfg.train.stream else read_dataset(root)
    seen_rows(found, cfg.train.hold_out)
    return found


def seen_parts(found: Dataset | OpenDataset, hold_out: list[int]) -> list[TrajectoryBatch | Episodes]:
    """The episodes of each split that something may be fitted on."""
    seen = seen_rows(found, hold_out)
    rows = [np.intersect1d(found.rows_of(name), seen) for name in SPLITS]
    return [found.batch.part(one) if isinstance(found, OpenDataset) else take(found.batch, one) for one in rows]


def train_of(run: Path) -> Train:
    """How a run was trained; InputError where it was not."""
    config = config_of(run)
    if "train" not in config:
        raise InputError(f"{run} was generated but not trained; run launch.train name={run.name} first.")
    return Train(**config["train"])


def hold_out_of(run: Path) -> list[int]:
    """The checkpoints that nothing of a run was fitted on."""
    return train_of(run).hold_out


def seen_of(run: Path) -> Dataset:
    """The episodes of a trained run's data set that something may be fitted on."""
    found = read_dataset(data_of(run))
    return select(found, seen_rows(found, hold_out_of(run)))


def check_domain_labels(names: list[str], domain: Any, *told: str) -> None:
    """Raise InputError, before anything is recorded, where no label of the domain has the name; see `check_names`."""
    check_names([re.sub(r"_\d+$", "", name) for name in names], label_names(domain), *told)  # hill_0 is of hill


def inputs_of(found: Dataset) -> dict[str, Any]:
    """What the probes take of a data set."""
    return {name: getattr(found, name) for name in ("batch", "features", "rows", "split", "labels", "hand")}
