"""Learning on an engine: segments of running episodes, then the same PPO update as everywhere, for all training seeds.

Letters: S training seeds, E environments of a seed, A = S · E, N agents, T steps, U updates.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from data_gen.learners.learner import Progress
from data_gen.learners.moments import Moments, ObsScale, merge, no_moments, scale_of, scaled
from data_gen.learners.ppo import PPO, LearnerState, Transitions, check_minibatches, improve, init_state
from data_gen.learners.segments import KIND, Now, Scene, Team, Turn, begin, on_host, play
from data_gen.trajectory import ActionSpec, InputError


class BodyState(NamedTuple):
    """Learners and moments of S seeds, the keys of their environments, and where those are."""

    learner: LearnerState
    moments: Moments
    keys: Key[Array, "S E"]
    now: Now


def check_segment(scene_horizon: int, n_agents: int, ppo: PPO) -> None:
    """Raise InputError where the learner's settings do not fit episodes on an engine."""
    if not 1 <= ppo.segment <= scene_horizon:
        raise InputError(
            f"learner: segment is {ppo.segment}; on an engine an update needs the number of steps between two updates, "
            f"from 1 to the episode's {scene_horizon}. Use learner=ppo_body, or set learner.segment."
        )
    check_minibatches(ppo, ppo.segment, n_agents)


def init_bodies(scene: Scene, ppo: PPO, keys: Key[Array, " S"]) -> BodyState:
    """New learners, one training seed a key, and their environments at a start."""
    n_agents, n_obs = scene.scenario.obs_mask.shape
    action = ActionSpec(KIND, scene.scenario.action_mask.shape[1])
    learner, moments, env_keys = _init(n_agents, n_obs, action, ppo, keys)
    enter = partial(begin, scene)
    now = (enter if on_host(scene) else jax.jit(enter))(env_keys, np.int32(-1))  # before step 0: no key is used twice
    return BodyState(learner=learner, moments=moments, keys=env_keys, now=now)


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _init(n_agents: int, n_obs: int, action: ActionSpec, ppo: PPO, keys: Key[Array, " S"]):
    def one(key):
        envs = jax.vmap(partial(jax.random.fold_in, jax.random.fold_in(key, 2)))(jnp.arange(ppo.envs))
        return init_state(n_agents, n_obs, action, ppo, key), no_moments(n_agents, n_obs), envs

    return jax.vmap(one)(keys)


def team_of(sharing: bool, state: BodyState) -> Team:
    """The policies as they are now."""
    return Team(actors=state.learner.params["actor"], scale=jax.vmap(scale_of)(state.moments), keys=state.keys)


def by_seed(field: Array, n_seeds: int) -> Array:
    """[T, S · E, …] to [S, E, T, …]."""
    return jnp.moveaxis(field.reshape(field.shape[0], n_seeds, -1, *field.shape[2:]), 0, 2)


def transitions_of(seen: Turn, scale: ObsScale, obs_real: Array) -> Transitions:
    """One seed's segment [E, T, …] as an update reads it; what follows its last step is not in it."""
    ended = jnp.asarray(seen.terminated | seen.truncated | seen.broken)
    return Transitions(
        obs=scaled(scale, seen.obs, obs_real),
        actions=seen.actions,
        rewards=seen.rewards,
        following=scaled(scale, seen.following, obs_real),
        terminated=seen.terminated,
        ended=ended.at[:, -1].set(True),
    )


def learn(
    masks: tuple[Array, Array], ppo: PPO, learner: LearnerState, moments: Moments, seen: Turn
) -> tuple[LearnerState, Moments, Progress]:
    """One update of every seed from a segment [T, A, …]; the segment is scaled as it was when it was played."""
    obs_real, action_real = masks
    n_seeds = learner.number.shape[0]
    seen = Turn(*(by_seed(field, n_seeds) for field in seen))

    def one(learner: LearnerState, moments: Moments, seen: Turn):
        transitions = transitions_of(seen, scale_of(moments), obs_real)
        key = jax.random.fold_in(learner.key, learner.number)
        learner, finite = improve(action_real, KIND, ppo, learner, transitions, key)
        progress = Progress(
            team_return=jnp.nanmean(seen.finished),
            episodes=jnp.sum(~jnp.isnan(seen.finished), dtype=jnp.int32),
            broken=jnp.sum(seen.broken, dtype=jnp.int32),
            finite=finite,
        )
        return learner, merge(moments, seen.obs), progress

    return jax.vmap(one)(learner, moments, seen)


learn_from_host = jax.jit(learn, static_argnums=(1,), donate_argnums=(2, 3))


def advance(scene: Scene, ppo: PPO, state: BodyState) -> tuple[BodyState, Turn]:
    """Play the next segment."""
    first = state.learner.number[0] * ppo.segment
    first = int(first) if on_host(scene) else first
    now, seen = play(scene, team_of(ppo.sharing, state), state.now, first, ppo.segment)
    return state._replace(now=now), seen
