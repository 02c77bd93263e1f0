"""The config of launch.intervene."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from launch.log import Logging
from probes.interventions.intervention import Intervention


@dataclass
class Intervening:
    """`run` is the folder of a trained and probed run, whose data a simulator here made."""

    run: str = MISSING
    intervention: Intervention = field(default_factory=Intervention)
    logger: Logging = field(default_factory=Logging)


ConfigStore.instance().store(group="schema", name="intervene", node=Intervening)
