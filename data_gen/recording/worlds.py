"""A domain's world by its config."""

from typing import Any

from data_gen.domains import DOMAINS, MuJoCo, name_of
from data_gen.learners.ppo import PPO
from data_gen.recording.body_world import BodyWorld
from data_gen.recording.plane_world import PlaneWorld
from data_gen.recording.recording import Recording, updates_at
from data_gen.recording.world import World


def make_world(config: Any, ppo: PPO, recording: Recording) -> World:
    """Raises InputError where learner, recording and domain do not fit together, or the domain cannot run here."""
    updates_at(ppo, recording)
    if isinstance(config, MuJoCo):
        world = BodyWorld(config, ppo)
        world.open(recording.seeds // recording.shards, recording.episodes)
        return world
    return PlaneWorld(DOMAINS[name_of(config)](config), ppo)
