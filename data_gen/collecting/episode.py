"""One episode of an environment, played by a policy. T steps, N agents, Do observation, Da action."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32

from data_gen.collecting.environments import Environment, Step
from data_gen.team import Team, acts, observes
from data_gen.trajectory import InputError

# A policy for the team, or one an agent: of observations and a source of randomness, NumPy's Generator or a JAX key.
Policy = Callable[[Mapping[str, Any], Any], Mapping[str, Any]] | Mapping[str, Callable[[Any, Any], Any]]
ENDLESS = 100_000
LARGEST = float(np.finfo(np.float32).max)


class Played(NamedTuple):
    """A finished episode; where an agent was not there, the mask is False and everything 0.

    `terminated` says that it came to its own end, and was not cut. `infos` are the environment's at the last step.
    """

    agents: tuple[str, ...]
    obs: Float32[np.ndarray, "T N Do"]
    actions: Float32[np.ndarray, "T N Da"] | Int32[np.ndarray, "T N"]
    mask: Bool[np.ndarray, "T N"]
    rewards: Float32[np.ndarray, "T N"]
    terminated: bool
    infos: Mapping[str, Any]
    seed: int


def play(env: Environment, policy: Policy, seed: int, max_steps: int | None, where: str) -> Played:
    """Play until no agent is left, or for `max_steps`, which then cuts the episode.

    Raises InputError, naming `where`, step and agent, for a number that is not finite or does not fit the spaces.
    """
    draw, rows = env.start(seed), []
    if not env.alive:
        raise InputError(f"{where}: no agent is there after reset, so there is nothing to record.")
    while True:
        place, alive = f"{where}, step {len(rows)}", env.alive
        _check_known(env.team, alive, place)
        row = _blank(env.team)
        _see(env, row, alive, place)
        moves = _decide(policy, env, draw, place)
        _act(env.team, row, alive, moves, place)
        step = env.step(moves)
        _reward(env.team, row, alive, step, place)
        rows.append(row)
        if not env.alive or len(rows) == max_steps:
            break
        if len(rows) == ENDLESS:
            raise InputError(f"{where}: no end after {ENDLESS} steps. Give max_steps= to cut episodes there.")
    obs, actions, mask, rewards = (np.stack(field) for field in zip(*rows, strict=True))
    terminated = not env.alive and all(step.terminated[agent] for agent in alive)
    return Played(env.team.agents, obs, actions, mask, rewards, terminated, step.infos, seed)


class Row(NamedTuple):
    """One step of all agents."""

    obs: Float32[np.ndarray, "N Do"]
    actions: Float32[np.ndarray, "N Da"] | Int32[np.ndarray, " N"]
    mask: Bool[np.ndarray, " N"]
    rewards: Float32[np.ndarray, " N"]


def _blank(team: Team) -> Row:
    n = len(team.agents)
    discrete = team.action.kind == "discrete"
    return Row(
        obs=np.zeros((n, len(team.obs_names)), np.float32),
        actions=np.zeros(n, np.int32) if discrete else np.zeros((n, team.action.size), np.float32),
        mask=np.zeros(n, bool),
        rewards=np.zeros(n, np.float32),
    )


def _check_known(team: Team, alive: tuple[str, ...], place: str) -> None:
    if strange := sorted(set(alive) - set(team.agents)):
        raise InputError(f"{place}: agent {strange[0]!r} is none of those declared: {', '.join(team.agents)}.")


def _see(env: Environment, row: Row, alive: tuple[str, ...], place: str) -> None:
    for agent in alive:
        if agent not in env.observations:
            raise InputError(f"{place}: {agent} is there, but has no observation.")
        n, told = env.team.agents.index(agent), f"{place}, {agent}: the observation"
        row.obs[n] = observes(env.team, agent, env.observations[agent], (), told)
        _check_finite(row.obs[n], env.team.obs_names, told)
        row.mask[n] = True


def _decide(policy: Policy, env: Environment, draw: Callable[[], Any], place: str) -> dict[str, Any]:
    """Actions of the agents that the environment asks."""
    asked = list(env.observations)
    if isinstance(policy, Mapping):
        if lacking := [agent for agent in asked if agent not in policy]:
            raise InputError(f"{place}: there is no policy for {lacking[0]}; there are {', '.join(policy)}.")
        return {agent: policy[agent](env.observations[agent], draw()) for agent in asked}
    found = policy(env.observations, draw())
    if not isinstance(found, Mapping):
        raise InputError(
            f"{place}: the policy returned {type(found).__name__}. One for the whole team takes observations by agent "
            f"and returns actions by agent; policies of single agents are given as a dict of them."
        )
    if lacking := [agent for agent in asked if agent not in found]:
        raise InputError(f"{place}: the policy gave no action for {lacking[0]}.")
    return {agent: found[agent] for agent in asked}


def _act(team: Team, row: Row, alive: tuple[str, ...], moves: Mapping[str, Any], place: str) -> None:
    for agent in alive:
        n, told = team.agents.index(agent), f"{place}, {agent}: the action"
        row.actions[n] = acts(team, agent, moves[agent], (), told)
        if team.action.kind == "continuous":
            _check_finite(row.actions[n], team.action_names, told)


def _reward(team: Team, row: Row, alive: tuple[str, ...], step: Step, place: str) -> None:
    for agent in alive:
        try:
            value = float(step.rewards[agent])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{place}, {agent}: there is no reward, or it is not one number.") from None
        if not abs(value) <= LARGEST:  # NaN too
            raise InputError(f"{place}, {agent}: the reward is {value}; it must be finite.")
        row.rewards[team.agents.index(agent)] = value


def _check_finite(values: Float32[np.ndarray, " F"], names: tuple[str, ...], told: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"{told} is {values[wrong[0]]} in {names[wrong[0]]!r}, and not finite in {len(wrong)} place(s) in all. "
            f"Repair the environment or the policy: what was not observed cannot be recorded."
        )
