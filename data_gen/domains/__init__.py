"""The domains by name: the config each is made from, and how those are made that are pure functions."""

from typing import Any

from data_gen.domains import coordination, hill_climbing
from data_gen.domains.mujoco import MuJoCo

DOMAINS = {"hill_climbing": hill_climbing.make, "coordination": coordination.make}
DOMAIN_CONFIGS = {
    "hill_climbing": hill_climbing.HillClimbing,
    "coordination": coordination.Coordination,
    "mujoco": MuJoCo,
}


def name_of(config: Any) -> str:
    """The domain that a config belongs to."""
    return next(name for name, kind in DOMAIN_CONFIGS.items() if isinstance(config, kind))
