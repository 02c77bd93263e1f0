"""Steps of a batch of environments under the policies of several training seeds: in one program, or from the host.

Letters: S training seeds, E environments of a seed, A = S · E, N agents, T steps. An engine whose arrays are JAX's is
scanned within the caller's program; one whose arrays are NumPy's (native) is stepped by a loop, with one compiled
policy call a step.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from data_gen.engines import environments
from data_gen.engines.engine import Engine, start_states
from data_gen.engines.environments import Running
from data_gen.engines.scenarios import Scenario, without
from data_gen.learners.moments import ObsScale, scaled
from data_gen.learners.policy import DISTRIBUTIONS, Params, head_of
from data_gen.learners.ppo import by_learner, inputs_of, real_head
from data_gen.learners.rollout import Policy
from data_gen.trajectory import AnyArray

KIND = "continuous"


class Scene(NamedTuple):
    """A body whose limbs are agents, on an engine with A environments; episodes are cut after `horizon` steps.

    `masks` are the scenario's, of observations and actions, as the policy call takes them: made once, not every step.
    """

    scenario: Scenario
    engine: Engine
    horizon: int
    sharing: bool
    masks: tuple[Bool[Array, "N Do"], Bool[Array, "N Da"]]


class Team(NamedTuple):
    """Policies of S seeds with their scales, and a key for each of a seed's environments."""

    actors: Params
    scale: ObsScale
    keys: Key[Array, "S E"]


class Now(NamedTuple):
    """Where the environments are: `total` is the return of the running episode so far."""

    running: Running
    obs: Float[AnyArray, "A N Do"]
    total: Float[AnyArray, " A"]


class Turn(NamedTuple):
    """One step. `finished` is the return of an episode that ended here, else NaN; `following` precedes a restart."""

    obs: Float[AnyArray, "*T A N Do"]
    actions: Float[AnyArray, "*T A N Da"]
    rewards: Float[AnyArray, "*T A N"]
    following: Float[AnyArray, "*T A N Do"]
    terminated: Bool[AnyArray, "*T A"]
    truncated: Bool[AnyArray, "*T A"]
    broken: Bool[AnyArray, "*T A"]
    finished: Float[AnyArray, "*T A"]
    speed: Float[AnyArray, "*T A"]
    qpos: Float[AnyArray, "*T A Nq"]


def act(
    masks: tuple[Array, Array], sharing: bool, team: Team, obs: Float[Array, "A N Do"], t: Any
) -> Float[Array, "A N Da"]:
    """Draws of every agent's policy. `masks` say which observations and which action dimensions are real."""
    obs_real, action_real = masks

    def of_seed(actors, scale, keys, obs):
        seen = jnp.moveaxis(scaled(scale, obs, obs_real), 1, 0)
        heads = jax.vmap(partial(head_of, kind=KIND))(actors, inputs_of(seen, sharing))
        real = by_learner(action_real.astype(jnp.float32), sharing)[:, :, None]
        heads = real_head(heads, jnp.broadcast_to(real, (*heads.shape[:-1], real.shape[-1])), KIND)
        heads = jnp.moveaxis(heads.reshape(obs.shape[1], obs.shape[0], -1), 0, 1)
        drawn = jax.vmap(DISTRIBUTIONS[KIND].sample)(heads, jax.vmap(lambda key: step_key(key, t, 0))(keys))
        return jnp.where(action_real[None], drawn, 0.0)

    shape = team.keys.shape
    actions = jax.vmap(of_seed)(team.actors, team.scale, team.keys, obs.reshape(*shape, *obs.shape[1:]))
    return actions.reshape(-1, *actions.shape[2:])


def step_key(key: Key[Array, ""], t: Any, use: int) -> Key[Array, ""]:
    """A key for each step and use (0: action, 1: start of an episode) of an environment."""
    return jax.random.fold_in(jax.random.fold_in(key, t), use)


def draw_starts(body_name: str, start: tuple[Any, Any], keys: Key[Array, "S E"], t: Any):
    """A start state for every environment."""
    return start_states(body_name, start, jax.vmap(lambda key: step_key(key, t, 1))(keys.reshape(-1)))


act_from_host = jax.jit(act, static_argnums=(1,))
draw_from_host = jax.jit(draw_starts, static_argnums=(0,))


def on_host(scene: Scene) -> bool:
    """Whether the engine's arrays are NumPy's, so that its steps cannot be part of a program."""
    return scene.engine.xp is np


def make_scene(scenario: Scenario, engine: Engine, horizon: int, sharing: bool) -> Scene:
    """The scene, with features masked that the engine cannot give."""
    scenario = without(scenario, engine.missing)
    masks = jnp.asarray(scenario.obs_mask), jnp.asarray(scenario.action_mask)
    return Scene(scenario, engine, horizon, sharing, masks)


def starts(scene: Scene, keys: Key[Array, "S E"], t: Any) -> tuple[AnyArray, AnyArray]:
    """Start states in the engine's own arrays."""
    name, start = scene.scenario.body.name, scene.engine.start
    if not on_host(scene):
        return draw_starts(name, start, keys, t)
    qpos, qvel = draw_from_host(name, start, keys, t)
    return np.asarray(qpos, np.float64), np.asarray(qvel, np.float64)


def actions_of(scene: Scene, team: Team, obs: AnyArray, t: Any) -> AnyArray:
    """The team's actions in the engine's own arrays."""
    if not on_host(scene):
        return act(scene.masks, scene.sharing, team, obs, t)
    return np.asarray(act_from_host(scene.masks, scene.sharing, team, obs.astype(np.float32), t))


def begin(scene: Scene, keys: Key[Array, "S E"], t: Any) -> Now:
    """Every environment at the start of an episode."""
    running, obs = environments.begin(scene.scenario, scene.engine, *starts(scene, keys, t))
    return Now(running=running, obs=obs, total=scene.engine.xp.zeros(obs.shape[0], scene.engine.xp.float32))


def turn(scene: Scene, team: Team, now: Now, t: Any) -> tuple[Now, Turn]:
    """One action of every agent by the team's policies; then new episodes where one ended."""
    return move(scene, team.keys, now, actions_of(scene, team, now.obs, t), t)


def move(scene: Scene, keys: Key[Array, "S E"], now: Now, actions: AnyArray, t: Any) -> tuple[Now, Turn]:
    """One step under the given actions; then new episodes where one ended."""
    xp = scene.engine.xp
    running, outcome = environments.step(scene.scenario, scene.engine, scene.horizon, now.running, actions)
    ended = outcome.terminated | outcome.truncated | outcome.broken
    total = now.total + outcome.rewards[:, 0].astype(xp.float32)
    step = Turn(
        obs=now.obs.astype(xp.float32),
        actions=actions,
        rewards=outcome.rewards.astype(xp.float32),
        following=xp.where(outcome.broken[:, None, None], now.obs, outcome.obs).astype(xp.float32),
        terminated=outcome.terminated,
        truncated=outcome.truncated,
        broken=outcome.broken,
        finished=xp.where(ended & ~outcome.broken, total, xp.nan).astype(xp.float32),
        speed=outcome.terms.speed.astype(xp.float32),
        qpos=now.running.physics.fields["qpos"].astype(xp.float32),
    )
    obs = outcome.obs
    if not on_host(scene) or xp.any(ended):
        states = starts(scene, keys, t)
        running, obs = environments.restart(scene.scenario, scene.engine, running, ended, states)
    return Now(running=running, obs=obs, total=xp.where(ended, xp.float32(0), total)), step


def play(scene: Scene, team: Team, now: Now, first: Any, length: int) -> tuple[Now, Turn]:
    """`length` steps, the first of which has the number `first`; Turn's fields gain a leading axis T."""
    if not on_host(scene):
        steps = first + jnp.arange(length)
        return jax.lax.scan(lambda now, t: turn(scene, team, now, t), now, steps)
    turns = []
    for t in range(length):
        now, one = turn(scene, team, now, np.int32(first + t))
        turns.append(one)
    return now, Turn(*(np.stack(field) for field in zip(*turns, strict=True)))


def perform(scene: Scene, act: Policy, keys: Key[Array, "S E"]) -> Turn:
    """Episodes from their start under a policy that acts on the host; Turn's fields gain a leading axis T."""
    step = partial(move, scene) if on_host(scene) else jax.jit(partial(move, scene))
    now, turns = begin(scene, keys, np.int32(-1)), []
    for t in range(scene.horizon):
        actions = act(np.asarray(now.obs, np.float32), t)
        now, one = step(keys, now, scene.engine.xp.asarray(actions), np.int32(t))
        turns.append(one)
    return Turn(*(np.stack(field) for field in zip(*turns, strict=True)))
