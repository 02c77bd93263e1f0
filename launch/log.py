"""Where a run's metrics, tables and figures go besides its own files: nowhere, or to Weights & Biases."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data_gen.trajectory import InputError

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

    def metrics(self, row: dict[str, Any], place: Path) -> None:
        """Take a row of the metrics.jsonl in `place`, the folder of an encoder seed."""

    def publish(self) -> None:
        """Take all that the run's folder holds and the log does not."""

    def finish(self, failed: bool = False) -> None:
        """Close the log."""


@contextmanager
def logging_to(cfg: Logging, run: Path, group: str) -> Iterator[NoLogger]:
    """The logger that a job asked for; at the end it takes what the folder holds, and is closed however the end comes.

    InputError where W&B refuses the run.
    """
    if cfg.kind == "none" or cfg.mode == "disabled":
        yield NoLogger()
        return
    from launch.wandb_run import WandbRun  # wandb takes seconds to import

    logger = WandbRun(cfg, run, cfg.group or group)
    try:
        yield logger
    except BaseException:
        logger.finish(failed=True)
        raise
    logger.publish()
    logger.finish()
