"""Where metrics, tables and figures go besides the run's own files: nowhere, or to Weights & Biases."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pandas as pd

from data_gen.trajectory import InputError
from launch.rundir import config_of

KINDS = ("none", "wandb")
MODES = ("online", "offline", "disabled")


@dataclass
class Logging:
    """`group` gathers the jobs of a sweep; none means the sweep's own name."""

    kind: str = "none"
    mode: str = "offline"
    project: str = "marl-vae"
    entity: str | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS or self.mode not in MODES:
            raise InputError(
                f"logger: kind={self.kind!r}, mode={self.mode!r}; kind is one of {', '.join(KINDS)} and mode one of "
                f"{', '.join(MODES)}."
            )


class NoLogger:
    """Logs nowhere."""

    def metrics(self, row: dict[str, Any]) -> None:
        """Take a row of metrics.jsonl."""

    def summary(self, values: dict[str, Any]) -> None:
        """Take figures of the whole run."""

    def table(self, name: str, table: pd.DataFrame) -> None:
        """Take a table."""

    def figures(self, folder: Path) -> None:
        """Take every PNG of a folder."""

    def finish(self, failed: bool = False) -> None:
        """Close the log."""


class WandbLogger(NoLogger):
    """One W&B run a run directory: its id lies in `wandb_id.json`, so that a resumed job goes on in the same one."""

    def __init__(self, cfg: Logging, run: Path, config: dict[str, Any], group: str):
        import wandb

        self._wandb = wandb
        try:
            self._run = wandb.init(
                project=cfg.project,
                entity=cfg.entity,
                mode=cast(Any, cfg.mode),
                group=cfg.group or group,
                name=run.name,
                id=_wandb_id(run),
                resume="allow",
                dir=str(run),
                config=config,
                allow_val_change=True,
                reinit="finish_previous",
                settings=wandb.Settings(console="off", silent=True),
            )
        except (wandb.Error, ValueError) as error:
            raise InputError(
                f"W&B could not be reached ({str(error).splitlines()[0]}). Log in with `wandb login`, or use "
                "logger.mode=offline, which needs no account."
            ) from error
        # A resumed run repeats steps: W&B drops rows whose own step went back, but not those of a metric of ours.
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def metrics(self, row: dict[str, Any]) -> None:
        self._run.log(row)

    def summary(self, values: dict[str, Any]) -> None:
        self._run.summary.update(values)

    def table(self, name: str, table: pd.DataFrame) -> None:
        self._run.log({name: self._wandb.Table(dataframe=table)})

    def figures(self, folder: Path) -> None:
        self._run.log({f"figures/{file.stem}": self._wandb.Image(str(file)) for file in sorted(folder.glob("*.png"))})

    def finish(self, failed: bool = False) -> None:
        self._run.finish(exit_code=int(failed))


@contextmanager
def logging_to(cfg: Logging, run: Path, group: str) -> Iterator[NoLogger]:
    """The logger that a job asked for, closed at the end however that comes; InputError where W&B refuses it."""
    if cfg.kind == "none":
        yield NoLogger()
        return
    logger = WandbLogger(cfg, run, config_of(run), group)
    try:
        yield logger
    except BaseException:
        logger.finish(failed=True)
        raise
    logger.finish()


def _wandb_id(run: Path) -> str | None:
    """The id of this folder's W&B run; a sweep agent sets its own."""
    if "WANDB_RUN_ID" in os.environ:
        return None
    path = run / "wandb_id.json"
    if not path.exists():
        path.write_text(json.dumps(uuid.uuid4().hex[:12]))
    return json.loads(path.read_text())
