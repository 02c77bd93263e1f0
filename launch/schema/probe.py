"""The config of launch.probe."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.trajectory import InputError
from launch.log import Logging
from probes.probe import Probe


@dataclass
class Probing:
    """`run` is the folder of a trained run; `runs` is a pattern of several to compare with `reference` instead."""

    run: str = MISSING
    runs: str | None = None
    reference: str | None = None
    probe: Probe = field(default_factory=Probe)
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if self.runs and self.logger.kind != "none":
            raise InputError("A comparison of runs=... goes into files and not into a log: leave logger= out.")


ConfigStore.instance().store(group="schema", name="probe", node=Probing)
