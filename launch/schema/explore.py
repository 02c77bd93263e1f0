"""The config of launch.explore."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.trajectory import InputError
from launch.log import Logging
from launch.schema.analysing import Analysing

MOST_FILMS = 200


@dataclass
class Exploring(Analysing):
    """`run` is the folder of a trained run, `encoder` the place of one of its seeds, `films` how many are filmed."""

    run: str = MISSING
    encoder: int = 0
    films: int = 200
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if not 0 <= self.films <= MOST_FILMS:
            raise InputError(f"films={self.films} must lie in 0..{MOST_FILMS}, so that the page stays small.")


ConfigStore.instance().store(group="schema", name="explore", node=Exploring)
