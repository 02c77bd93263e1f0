"""The config of launch.train, and of the objectives."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from launch.schema.job import Job
from marl_vae.model import Model
from marl_vae.objectives import OBJECTIVES
from marl_vae.objectives.objective import check_form
from marl_vae.schedule import Schedule
from marl_vae.task import Train


@dataclass
class Training(Job):
    """`data` is a data set's folder; none means the run's own."""

    data: str | None = None
    model: Model = field(default_factory=Model)
    objective: Any = MISSING
    schedule: Schedule = field(default_factory=Schedule)
    train: Train = field(default_factory=Train)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_form(self.objective, self.model)


ConfigStore.instance().store(group="schema", name="train", node=Training)
for _name, _config in OBJECTIVES.items():
    ConfigStore.instance().store(group="schema/objective", name=_name, node=_config)
