"""A domain's world by its config."""

from typing import Any

from data_gen.domains import DOMAINS, MuJoCo, name_of
from data_gen.learners.ppo import PPO
from data_gen.recording.body_world import BodyWorld
from data_gen.recording.plane_world import PlaneWorld
from data_gen.recording.world import World


def make_world(config: Any, ppo: PPO) -> World:
    """Raises InputError where the learner's settings do not fit the domain, or the domain cannot run here."""
    if isinstance(config, MuJoCo):
        return BodyWorld(config, ppo)
    return PlaneWorld(DOMAINS[name_of(config)](config), ppo)
