"""Small scenes on the native engine, and an engine whose physics fails on command."""

import jax
import numpy as np

from data_gen.engines.engine import open_engine
from data_gen.engines.scenarios import make_scenario
from data_gen.learners.ppo import PPO
from data_gen.learners.segments import Scene, make_scene

SMALL = PPO(updates=3, envs=3, segment=24, epochs=2, minibatches=2, hidden=8, initial_std=0.5, gamma=0.9)


def scene(name: str, n_envs: int, horizon: int = 200, obsk: int | None = 1, sharing: bool = False) -> Scene:
    scenario = make_scenario(name, obsk)
    return make_scene(scenario, open_engine("native", scenario.body, n_envs), horizon, sharing)


class Failing:
    """The native engine, but the physics of environment `env` fails in its step number `at`, counted from 0."""

    def __init__(self, engine, env: int, at: int):
        self.engine, self.env, self.left = engine, env, at
        for name in ("name", "body", "n_envs", "xp", "missing", "notes", "start", "begin", "reset", "close"):
            setattr(self, name, getattr(engine, name))

    def step(self, physics, controls):
        physics = self.engine.step(physics, controls)
        if self.left == 0:
            fields = {name: values.copy() for name, values in physics.fields.items()}
            for values in fields.values():
                values[self.env] = np.nan
            broken = physics.broken.copy()
            broken[self.env] = True
            physics = physics._replace(fields=fields, broken=broken)
        self.left -= 1
        return physics


def seed_keys(*numbers: int):
    return jax.vmap(lambda n: jax.random.fold_in(jax.random.key(3), n))(np.array(numbers, np.int32))
