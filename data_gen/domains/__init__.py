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


DOMAIN_LABELS = {
    "hill_climbing": ("dispersion_class", "n_hills", "hill_set", "hill"),
    "coordination": ("goal", "coordinated", "agreement_time_class", "first_mover", "convention"),
    "mujoco": ("speed_class", "energy_class", "limb", "energy_share"),
}
COMMON_LABELS = ("return_class", "progress")
# Labels of the training run that an episode belongs to: an episode played by anyone else has none.
RUN_LABELS = ("progress", "convention")


def label_names(config: Any) -> list[str]:
    """The labels that episodes of this domain will have."""
    return sorted((*COMMON_LABELS, *DOMAIN_LABELS[name_of(config)]))


def name_of(config: Any) -> str:
    """The domain that a config belongs to."""
    return next(name for name, kind in DOMAIN_CONFIGS.items() if isinstance(config, kind))
