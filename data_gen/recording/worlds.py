"""A domain's world by its config, or by what a data set says of itself."""

from dataclasses import replace
from typing import Any

from data_gen.domains import DOMAIN_CONFIGS, DOMAINS, MuJoCo, name_of
from data_gen.domains.mujoco import EngineChoice
from data_gen.learners.ppo import PPO
from data_gen.recording.body_world import BodyWorld
from data_gen.recording.plane_world import PlaneWorld
from data_gen.recording.recording import Recording, updates_at
from data_gen.recording.world import World
from data_gen.trajectory import InputError


def make_world(config: Any, ppo: PPO, recording: Recording) -> World:
    """Raises InputError where learner, recording and domain do not fit together, or the domain cannot run here."""
    updates_at(ppo, recording)
    if isinstance(config, MuJoCo):
        world = BodyWorld(config, ppo)
        world.open(recording.seeds // recording.shards, recording.episodes)
        return world
    return PlaneWorld(DOMAINS[name_of(config)](config), ppo)


def world_of(meta: dict[str, Any], where: str) -> World:
    """The world that a data set was recorded in, on the engine that it names; it is opened when it is asked to play.

    Raises InputError where the data come from no domain of this package, or were recorded by another version of it.
    """
    settings = dict(meta.get("domain", {}))
    name = settings.pop("name", None)
    if name not in DOMAIN_CONFIGS:
        raise InputError(
            f"{where} says it is of domain {name!r}, which no simulator here can play; those are "
            f"{', '.join(DOMAIN_CONFIGS)}. A policy can only be rolled out in data that launch.generate recorded."
        )
    try:
        if "engine" in settings:
            chosen = EngineChoice(**settings["engine"])
            settings["engine"] = replace(chosen, name=meta["engine"]["name"])
        config, ppo = DOMAIN_CONFIGS[name](**settings), PPO(**meta["learner"])
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{where} was recorded with other settings than this version has ({error}). Record the data set again."
        ) from None
    return BodyWorld(config, ppo) if isinstance(config, MuJoCo) else PlaneWorld(DOMAINS[name](config), ppo)
