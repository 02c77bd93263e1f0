"""A team of agents, each with spaces of its own, in columns that all share: alike names are one column."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

from data_gen.spaces import Space, choice, column_names, columns, is_one_choice
from data_gen.trajectory import ActionSpec, FeatureMask, InputError


class Team(NamedTuple):
    """`obs_names` and `action_names` are those of all agents, in the order of their first use; `…_places` are those of
    each agent's own among them.

    Discrete actions have no names, and are as many as the agent with the most has.
    """

    seen: Mapping[str, Space]
    done: Mapping[str, Space]
    obs_names: tuple[str, ...]
    action: ActionSpec
    action_names: tuple[str, ...]
    obs_places: Mapping[str, Int64[np.ndarray, " _"]]
    action_places: Mapping[str, Int64[np.ndarray, " _"]]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(self.seen)


def team_of(seen: Mapping[str, Space], done: Mapping[str, Space], where: str) -> Team:
    """The team whose agents see and do this.

    Raises InputError, naming `where`, where only some agents choose, or two parts of a space have one name.
    """
    chooses = {agent: is_one_choice(space, f"{where}: the action of {agent}") for agent, space in done.items()}
    if len(set(chooses.values())) > 1:
        told = ", ".join(f"{agent} {'discrete' if one else 'continuous'}" for agent, one in chooses.items())
        raise InputError(f"{where}: actions must be discrete for all agents or for none; here are {told}.")
    discrete, obs_names = all(chooses.values()), _union(seen, f"{where}: observation")
    names = () if discrete else _union(done, f"{where}: action")
    return Team(
        seen=seen,
        done=done,
        obs_names=obs_names,
        action=ActionSpec("discrete", max(space.choices for space in done.values()))
        if discrete
        else ActionSpec("continuous", len(names)),
        action_names=names,
        obs_places=_places(obs_names, seen),
        action_places={} if discrete else _places(names, done),
    )


def _union(spaces: Mapping[str, Space], where: str) -> tuple[str, ...]:
    found = {}
    for agent, space in spaces.items():
        names = column_names(space)
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"{where} of {agent}: two parts are both named {twice[0]!r}. Rename a key of the space.")
        found |= dict.fromkeys(names)
    if not found:
        raise InputError(f"{where}: no agent has any; there is nothing to record.")
    return tuple(found)


def _places(names: tuple[str, ...], spaces: Mapping[str, Space]) -> dict[str, np.ndarray]:
    order = {name: k for k, name in enumerate(names)}
    return {agent: np.array([order[name] for name in column_names(space)], np.int64) for agent, space in spaces.items()}


def feature_mask(team: Team) -> FeatureMask:
    """Which columns each agent has; all of them of a discrete action, since choices cannot be masked."""
    obs = np.zeros((len(team.agents), len(team.obs_names)), bool)
    actions = np.full((len(team.agents), team.action.size), team.action.kind == "discrete")
    for n, agent in enumerate(team.agents):
        obs[n, team.obs_places[agent]] = True
        if team.action.kind == "continuous":
            actions[n, team.action_places[agent]] = True
    return FeatureMask(obs=obs, actions=actions)


def observes(team: Team, agent: str, values: Any, lead: tuple[int, ...], where: str) -> Float32[np.ndarray, "... Do"]:
    """What an agent sees, in the team's columns, 0 in those of others. Raises InputError, naming `where`."""
    found = np.zeros((*lead, len(team.obs_names)), np.float32)
    found[..., team.obs_places[agent]] = columns(team.seen[agent], values, lead, where)
    return found


def acts(
    team: Team, agent: str, values: Any, lead: tuple[int, ...], where: str
) -> Float32[np.ndarray, "... Da"] | Int32[np.ndarray, "..."]:
    """What an agent does, likewise; a choice is counted from 0."""
    if team.action.kind == "discrete":
        return choice(team.done[agent], values, lead, where)
    found = np.zeros((*lead, team.action.size), np.float32)
    found[..., team.action_places[agent]] = columns(team.done[agent], values, lead, where)
    return found
