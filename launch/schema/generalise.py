"""The config of launch.generalise."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from launch.log import Logging
from probes.probe import Probe


@dataclass
class Generalising:
    """`run` is the folder of a trained run, `other` a data set of its domain with the other kind of action."""

    run: str = MISSING
    other: str | None = None
    probe: Probe = field(default_factory=Probe)
    logger: Logging = field(default_factory=Logging)


ConfigStore.instance().store(group="schema", name="generalise", node=Generalising)
