"""One episode of a team in a domain. T steps, N agents, Do observation."""

from collections.abc import Callable
from typing import NamedTuple

import jax
from jaxtyping import Array, Float, Int, Key

from data_gen.domains.domain import Domain
from data_gen.trajectory import AnyArray


class Episode(NamedTuple):
    """`last_obs` follows the last step: what a bootstrap at the cut needs."""

    obs: Float[AnyArray, "*S T N Do"]
    actions: Float[AnyArray, "*S T N Da"] | Int[AnyArray, "*S T N"]
    rewards: Float[AnyArray, "*S T N"]
    last_obs: Float[AnyArray, "*S N Do"]


def play(domain: Domain, act: Callable, key: Key[Array, ""]) -> Episode:
    """Run one episode; `act(state, obs, key)` gives the team's actions."""
    start, steps = jax.random.split(key)
    state = domain.reset(start)

    def body(state, step_key):
        obs = domain.observe(state)
        actions = act(state, obs, step_key)
        state, rewards = domain.step(state, actions)
        return state, (obs, actions, rewards)

    state, (obs, actions, rewards) = jax.lax.scan(body, state, jax.random.split(steps, domain.horizon))
    return Episode(obs=obs, actions=actions, rewards=rewards, last_obs=domain.observe(state))


def team_return(rewards: Float[AnyArray, "*S T N"]) -> Float[AnyArray, "*S"]:
    """Undiscounted sum over steps of the mean reward of the agents."""
    return rewards.mean(axis=-1).sum(axis=-1)


def act_scripted(domain: Domain, state, obs: Float[Array, "N Do"], key: Key[Array, ""]) -> Array:
    """The domain's own near-optimal team."""
    return domain.scripted(state)


def act_random(domain: Domain, state, obs: Float[Array, "N Do"], key: Key[Array, ""]) -> Array:
    """Standard normal or uniform actions."""
    if domain.action.kind == "continuous":
        return jax.random.normal(key, (domain.n_agents, domain.action.size))
    return jax.random.randint(key, (domain.n_agents,), 0, domain.action.size)
