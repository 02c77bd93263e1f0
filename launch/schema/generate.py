"""The config of launch.generate, and of the domains."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.domains import DOMAIN_CONFIGS
from data_gen.learners.ppo import PPO
from data_gen.recording.recording import Recording, seeds_of_shard
from data_gen.trajectory import InputError
from launch.schema.job import Job


@dataclass
class Generate(Job):
    """`only` lists the shards that this job records, so that several jobs share the work; none means all."""

    domain: Any = MISSING
    learner: PPO = field(default_factory=PPO)
    recording: Recording = field(default_factory=Recording)
    only: list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only == []:
            raise InputError("only=[] records no shard; name some, as in only=[0,1], or leave it out for all.")
        for shard in self.only or ():
            seeds_of_shard(self.recording, shard)


ConfigStore.instance().store(group="schema", name="generate", node=Generate)
for _name, _config in DOMAIN_CONFIGS.items():
    ConfigStore.instance().store(group="schema/domain", name=_name, node=_config)
