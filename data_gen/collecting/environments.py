"""Environments of other people, stepped alike: PettingZoo's parallel ones, and functional ones as JaxMARL has them."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from data_gen.spaces import space_of
from data_gen.team import Team, team_of
from data_gen.trajectory import InputError

ALL = "__all__"
KINDS = ("observation_space", "action_space")
STEP = ("observations", "rewards", "terminations", "truncations", "infos")
FUNCTIONAL_STEP = ("observations", "state", "rewards", "dones", "infos")


class Step(NamedTuple):
    """What came of a step. `ended` agents have terminated or were truncated, and do not act again."""

    rewards: Mapping[str, Any]
    terminated: Mapping[str, bool]
    ended: Mapping[str, bool]
    infos: Mapping[str, Any]


class Environment(ABC):
    """An environment in an episode.

    `observations` are those of the agents that are asked for actions, of which those `alive` are there.
    """

    def __init__(self, env: Any, agents: str):
        self.env = env
        self.name = type(env).__name__
        self.team = _team(env, agents)
        self.observations: Mapping[str, Any] = {}
        self.alive: tuple[str, ...] = ()

    @abstractmethod
    def start(self, seed: int) -> Callable[[], Any]:
        """Begin an episode. What is returned gives a policy its randomness at each call."""

    @abstractmethod
    def step(self, actions: Mapping[str, Any]) -> Step:
        """Take the actions of those that are asked."""


def environment_of(env: Any) -> Environment:
    """The environment by what its `reset` takes: a seed, or a key. Raises InputError where it is neither kind."""
    try:
        takes = list(inspect.signature(env.reset).parameters)
    except (AttributeError, TypeError, ValueError):
        raise InputError(f"{type(env).__name__} is no environment: it has no reset.") from None
    if "seed" in takes:
        return ParallelEnvironment(env)
    if not takes:
        raise InputError(f"{type(env).__name__}: reset takes neither a seed (PettingZoo) nor a key (JaxMARL).")
    return FunctionalEnvironment(env)


def _team(env: Any, agents: str) -> Team:
    name = type(env).__name__
    try:
        names = [str(agent) for agent in getattr(env, agents)]
        spaces = [{agent: _declared(getattr(env, kind), agent) for agent in names} for kind in KINDS]
    except (AttributeError, KeyError) as error:
        raise InputError(
            f"{name} does not say what its agents see and do ({type(error).__name__}: {error}). It needs {agents}, "
            f"observation_space(agent) and action_space(agent)."
        ) from None
    if not names:
        raise InputError(f"{name} has no agents: {agents} is empty.")
    seen, done = (
        {agent: space_of(space, f"{name}: {kind} of {agent}") for agent, space in own.items()}
        for kind, own in zip(KINDS, spaces, strict=True)
    )
    return team_of(seen, done, name)


def _declared(method: Callable[..., Any], agent: str) -> Any:
    """Some of JaxMARL's environments have one space for all agents, and take no name."""
    return method(agent) if inspect.signature(method).parameters else method()


class ParallelEnvironment(Environment):
    """PettingZoo: agents that are done leave `agents`, and rewards are of those that acted."""

    def __init__(self, env: Any):
        super().__init__(env, "possible_agents")

    def start(self, seed: int) -> Callable[[], Any]:
        observations, _ = _returned(self.env.reset(seed=seed), ("observations", "infos"), f"{self.name}: reset")
        self._go_on(observations, {})
        rng = np.random.default_rng(seed)
        return lambda: rng

    def step(self, actions: Mapping[str, Any]) -> Step:
        found = _returned(self.env.step(dict(actions)), STEP, f"{self.name}: step")
        observations, rewards, terminated, truncated, infos = found
        ended = {agent: bool(terminated.get(agent)) or bool(truncated.get(agent)) for agent in actions}
        self._go_on(observations, ended)
        gone = {agent: ended[agent] or agent not in self.alive for agent in actions}
        return Step(rewards, {agent: bool(terminated.get(agent)) for agent in actions}, gone, infos)

    def _go_on(self, observations: Mapping[str, Any], ended: Mapping[str, bool]) -> None:
        """Some environments keep agents in `agents` that are done."""
        self.alive = tuple(agent for agent in self.env.agents if not ended.get(agent, False))
        self.observations = {agent: observations[agent] for agent in self.alive if agent in observations}


class FunctionalEnvironment(Environment):
    """JaxMARL: a state that is handed on, a key for each step, and actions of all agents up to the end of the episode.

    `dones` do not say whether an agent terminated or was truncated; they count as terminated.
    """

    def __init__(self, env: Any):
        super().__init__(env, "agents")

    def start(self, seed: int) -> Callable[[], Any]:
        self.key, policy, first = jax.random.split(jax.random.key(seed), 3)
        observations, self.state = _returned(self.env.reset(first), ("observations", "state"), f"{self.name}: reset")
        self._go_on(observations)
        self.alive = self.team.agents
        draws = iter(range(2**31))
        return lambda: jax.random.fold_in(policy, next(draws))

    def step(self, actions: Mapping[str, Any]) -> Step:
        self.key, own = jax.random.split(self.key)
        found = _returned(self.env.step(own, self.state, dict(actions)), FUNCTIONAL_STEP, f"{self.name}: step")
        observations, self.state, rewards, dones, infos = found
        self._go_on(observations)
        if lacking := [name for name in (ALL, *self.alive) if name not in dones]:
            raise InputError(f"{self.name}: step gives dones without {lacking[0]!r}, so its end cannot be told.")
        over = bool(dones[ALL])
        ended = {agent: over or bool(dones[agent]) for agent in self.alive}
        self.alive = tuple(agent for agent, done in ended.items() if not done)
        return Step(rewards, ended, ended, infos)

    def _go_on(self, observations: Mapping[str, Any]) -> None:
        """Without what is no agent's own, such as the state of the world."""
        self.observations = {agent: observations[agent] for agent in self.team.agents if agent in observations}


def _returned(found: Any, wanted: tuple[str, ...], told: str) -> tuple[Any, ...]:
    if not isinstance(found, tuple) or len(found) != len(wanted):
        raise InputError(
            f"{told} returned {type(found).__name__}, and not the {len(wanted)} things {', '.join(wanted)}. Where "
            f"agents act in turn, pettingzoo.utils.conversions.aec_to_parallel makes the environment parallel."
        )
    return found
