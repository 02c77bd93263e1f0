"""Episodes of a team in a domain. B episodes, T steps, N agents, Do observation, Da action."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int, Key

from data_gen.domains.domain import Domain
from data_gen.trajectory import AnyArray

# A policy that acts outside the simulator: observations [B, N, Do] of a step, as they are recorded, and the step's
# number, to the actions of every agent, [B, N, Da] or [B, N].
Policy = Callable[[Float32[np.ndarray, "B N Do"], int], AnyArray]


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


def perform(domain: Domain, act: Policy, keys: Key[Array, " B"]) -> Episode:
    """One episode a key under a policy that acts on the host; a key starts the episode that it starts in `play`."""
    state, found = _begin(domain, keys), []
    obs = _observe(domain, state)
    for t in range(domain.horizon):
        actions = act(np.asarray(obs), t)
        state, rewards = _step(domain, state, actions)
        found.append((obs, actions, rewards))
        obs = _observe(domain, state)
    obs_all, actions, rewards = (np.stack(field, axis=1) for field in zip(*found, strict=True))
    return Episode(obs=obs_all, actions=actions, rewards=rewards, last_obs=np.asarray(obs))


@partial(jax.jit, static_argnums=(0,))
def _begin(domain: Domain, keys: Key[Array, " B"]) -> Any:
    return jax.vmap(lambda key: domain.reset(jax.random.split(key)[0]))(keys)


@partial(jax.jit, static_argnums=(0,))
def _observe(domain: Domain, state: Any) -> Float[Array, "B N Do"]:
    return jax.vmap(domain.observe)(state)


@partial(jax.jit, static_argnums=(0,))
def _step(domain: Domain, state: Any, actions: AnyArray) -> tuple[Any, Float[Array, "B N"]]:
    return jax.vmap(domain.step)(state, actions)


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
