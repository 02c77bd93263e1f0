"""A batch of episodes: an engine, a scenario, and the length after which an episode is cut. The same for every engine.

E environments, N agents.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from data_gen.engines.bodies import RewardTerms, reward_of, reward_terms
from data_gen.engines.engine import LIMIT, Engine, Physics
from data_gen.engines.scenarios import Scenario, controls_of, observe
from data_gen.trajectory import AnyArray, InputError


class Running(NamedTuple):
    """Where the episodes are; `age` counts the steps that were made."""

    physics: Physics
    age: Int[AnyArray, " E"]


class Outcome(NamedTuple):
    """What a step gave; `rewards` are the same for every agent, as in MaMuJoCo.

    `terminated`: the body fell; `truncated`: the episode was cut, both as in Gymnasium, where both can be True.
    `broken`: physics failed, or the reward is not finite or beyond MuJoCo's limit, and the episode must be thrown away;
    its reward is 0 and it is neither of the two.
    """

    obs: Float[AnyArray, "E N Do"]
    rewards: Float[AnyArray, "E N"]
    terminated: Bool[AnyArray, " E"]
    truncated: Bool[AnyArray, " E"]
    broken: Bool[AnyArray, " E"]
    terms: RewardTerms


def begin(
    scenario: Scenario, engine: Engine, qpos: Float[AnyArray, "E Nq"], qvel: Float[AnyArray, "E Nv"]
) -> tuple[Running, Float[AnyArray, "E N Do"]]:
    """All episodes from the given states, and what the agents see first."""
    check_states(engine, qpos, qvel)
    physics = engine.begin(qpos, qvel)
    age = engine.xp.zeros(engine.n_envs, engine.xp.int32)
    return Running(physics=physics, age=age), observe(scenario, physics.fields, engine.xp)


def restart(
    scenario: Scenario,
    engine: Engine,
    running: Running,
    where: Bool[AnyArray, " E"],
    states: tuple[Float[AnyArray, "E Nq"], Float[AnyArray, "E Nv"]],
) -> tuple[Running, Float[AnyArray, "E N Do"]]:
    """New episodes where the mask says so; `states` has a row for every environment, read under the mask alone.

    Raises InputError where the mask or the states have the wrong shape.
    """
    if np.shape(where) != (engine.n_envs,) or where.dtype != bool:
        raise InputError(
            f"engine {engine.name}: restart takes a mask of {engine.n_envs} truth values, one an environment; this has "
            f"shape {np.shape(where)}."
        )
    check_states(engine, *states)
    physics = engine.reset(running.physics, where, *states)
    age = engine.xp.where(where, 0, running.age)
    return Running(physics=physics, age=age), observe(scenario, physics.fields, engine.xp)


def step(
    scenario: Scenario, engine: Engine, horizon: int, running: Running, actions: Float[AnyArray, "E N Da"]
) -> tuple[Running, Outcome]:
    """One action of every agent. Episodes that ended go on until `restart`.

    Raises InputError where the actions' shape is not that of the scenario, or the engine is another body's.
    """
    wanted = (engine.n_envs, *scenario.action_mask.shape)
    if scenario.body.name != engine.body.name or np.shape(actions) != wanted:
        raise InputError(
            f"engine {engine.name} of {engine.body.name}: actions have shape {np.shape(actions)}; {scenario.name} with "
            f"{engine.n_envs} environments needs {wanted}: environments, agents, and the actions of the widest agent."
        )
    xp, before = engine.xp, running.physics.fields
    controls = controls_of(scenario, actions)
    physics = engine.step(running.physics, controls)
    terms = reward_terms(scenario.body, before, physics.fields, controls, xp)
    age, reward = running.age + 1, reward_of(terms)
    broken = physics.broken | ~(abs(reward) < LIMIT)  # NaN is not below it
    reward = xp.where(broken, 0.0, reward)
    outcome = Outcome(
        obs=observe(scenario, physics.fields, xp),
        rewards=xp.repeat(reward[:, None], scenario.n_agents, axis=1),
        terminated=~scenario.body.is_healthy(physics.fields, xp) & ~broken,
        truncated=(age >= horizon) & ~broken,
        broken=broken,
        terms=terms,
    )
    return Running(physics=physics, age=age), outcome


def check_states(engine: Engine, qpos: Any, qvel: Any) -> None:
    """Raise InputError where states have the wrong shape."""
    wanted = ((engine.n_envs, engine.body.nq), (engine.n_envs, engine.body.nv))
    found = (np.shape(qpos), np.shape(qvel))
    if found != wanted:
        raise InputError(
            f"engine {engine.name}: states have shapes {found[0]} and {found[1]}; {engine.body.name} with "
            f"{engine.n_envs} environments needs {wanted[0]} and {wanted[1]}."
        )
