"""Environments that tests record: of PettingZoo and as JaxMARL has them, with policies for them."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from mpe2 import simple_spread_v3
from pettingzoo import ParallelEnv

from data_gen import Recorder


def uniform(env: ParallelEnv):
    """A policy for the team, all of whose randomness is what it is given."""

    def policy(observations, rng):
        return {agent: int(rng.integers(env.action_space(agent).n)) for agent in observations}

    return policy


class Logged:
    """A PettingZoo environment that keeps what went in and came out, by episode and step."""

    def __init__(self, env: ParallelEnv):
        self.env, self.possible_agents, self.log = env, env.possible_agents, []
        self.observation_space, self.action_space = env.observation_space, env.action_space

    @property
    def agents(self):
        return self.env.agents

    def reset(self, seed=None, options=None):
        self.last, infos = self.env.reset(seed=seed)
        self.log.append([])
        return self.last, infos

    def step(self, actions):
        observations, rewards, *rest = self.env.step(actions)
        self.log[-1].append(({k: v.copy() for k, v in self.last.items()}, actions, dict(rewards)))
        self.last = observations
        return observations, rewards, *rest


def record_spread(root: Path, seed: int = 0, env: Any = None, **settings: Any) -> None:
    env = env or simple_spread_v3.parallel_env(max_cycles=6)
    with Recorder(root, split=[2, 1, 1], seed=seed) as recorder:
        for group in range(4):
            recorder.record(env, uniform(env), episodes=2, group=group, **settings)


class Pack(ParallelEnv):
    """Dict and Tuple observations, moves of different widths; the cub leaves first, and the fox comes a step late."""

    metadata = {"name": "pack"}
    possible_agents = ["wolf", "cub", "fox"]
    seen = {
        "wolf": spaces.Dict({"place": spaces.Box(-9, 9, (2,)), "mood": spaces.Discrete(3, start=1)}),
        "cub": spaces.Tuple((spaces.MultiBinary(2), spaces.Box(-9, 9, (1, 2)))),
        "fox": spaces.Dict({"place": spaces.Box(-9, 9, (2,))}),
    }
    widths = {"wolf": 2, "cub": 1, "fox": 2}

    def __init__(self, spoil=None):
        self.spoil = spoil or (lambda t, observations, rewards: None)
        self.log = []

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return spaces.Box(-1, 1, (self.widths[agent],))

    def reset(self, seed=None, options=None):
        self.t, self.length, self.agents = 0, 3 + seed % 2, ["wolf", "cub"]
        for number, agent in enumerate(self.possible_agents):
            self.seen[agent].seed(seed + number)
        self.log.append([])
        return self._see(), {}

    def _see(self):
        self.now = {agent: self.seen[agent].sample() for agent in self.agents}
        return dict(self.now)

    def step(self, actions):
        self.log[-1].append((self.now, actions))
        acting, self.t = list(actions), self.t + 1
        over = self.t == self.length
        terminated = {agent: over or (agent == "cub" and self.t == 2) for agent in acting}
        self.agents = [agent for agent in self.agents if not terminated[agent]] + ["fox"] * (self.t == 1)
        observations, rewards = self._see(), {agent: float(self.t) for agent in acting}
        self.spoil(self.t, observations, rewards)
        return observations, rewards, terminated, dict.fromkeys(acting, False), {"left": self.length - self.t}


def scripted(observations, rng):
    return {agent: rng.normal(size=Pack.widths[agent]).astype(np.float32) for agent in observations}


def record_pack(root: Path, env: Pack | None = None, policy: Any = scripted, **settings: Any) -> Recorder:
    recorder = Recorder(root, split=[1, 1, 1])
    for group in range(3):
        recorder.record(env or Pack(), policy, episodes=2, group=group, **settings)
    return recorder


class Discrete(NamedTuple):
    n: int


class Box(NamedTuple):
    shape: tuple[int, ...]


class State(NamedTuple):
    place: jax.Array
    t: jax.Array


class Grid:
    """As JaxMARL's: functional, reset by a key, observations by agent, and the whole world's beside them."""

    agents = ["a", "b"]

    def observation_space(self, agent):
        return Box((2,))

    def action_space(self, agent):
        return Discrete(3)

    def reset(self, key):
        state = State(jax.random.normal(key, (2,)), jnp.int32(0))
        return self._see(state), state

    def _see(self, state):
        seen = {agent: jnp.stack([state.place[n], state.t.astype(float)]) for n, agent in enumerate(self.agents)}
        return seen | {"world_state": state.place}

    def step(self, key, state, actions):
        moves = jnp.stack([actions[agent] for agent in self.agents]) - 1
        state = State(state.place + moves + 0.1 * jax.random.normal(key, (2,)), state.t + 1)
        rewards = {agent: -jnp.abs(state.place[n]) for n, agent in enumerate(self.agents)}
        dones = {"a": state.t >= 4, "b": state.t >= 2, "__all__": state.t >= 4}
        return self._see(state), state, rewards, dones, {}


def choose(observation, key):
    return jax.random.randint(key, (), 0, 3)
