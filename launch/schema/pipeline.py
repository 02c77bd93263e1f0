"""The config of launch.pipeline."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore

from launch.schema.analysing import Analysing
from launch.schema.generate import Generate
from launch.schema.train import Training
from probes.probe import Probe


@dataclass
class Pipeline(Analysing, Training, Generate):
    """Generate, train, analyse and probe in one run."""

    probe: Probe = field(default_factory=Probe)


ConfigStore.instance().store(group="schema", name="pipeline", node=Pipeline)
