"""The config of launch.workspace."""

from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class Dashboard:
    """A W&B workspace of a project of `entity`, a user or a team; none means who is logged in.

    `labels` are those whose probes have panels.
    """

    entity: str | None = None
    project: str = "marl-vae"
    title: str = "marl-vae"
    labels: list[str] = MISSING


ConfigStore.instance().store(group="schema", name="workspace", node=Dashboard)
