"""The config of launch.embed."""

from dataclasses import dataclass
from pathlib import Path

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.trajectory import InputError


@dataclass
class Embedding:
    """`run` is the folder of a trained run, `data` of other episodes; `name` is their folder in the run's `embedded/`.

    None is the data set's own name: the last folder of its path that is not called data.
    """

    run: str = MISSING
    data: str = MISSING
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None and (Path(self.name).name != self.name or self.name in ("", "..")):
            raise InputError(f"name={self.name!r} must be the name of a folder, without slashes.")


ConfigStore.instance().store(group="schema", name="embed", node=Embedding)
