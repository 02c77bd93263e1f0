"""What every job that makes a run is told."""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from data_gen.trajectory import InputError
from launch.log import Logging


@dataclass
class Job:
    """A run lives in `runs`/`name`."""

    name: str = MISSING
    runs: str = "runs"
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if not Path(self.name).parts or Path(self.name).is_absolute() or ".." in Path(self.name).parts:
            raise InputError(f"name={self.name!r} must be the name of a folder below {self.runs!r}.")
