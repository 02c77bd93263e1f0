"""Learning in a domain that is pure functions: rollout and update are one program, vmapped over training seeds.

Letters: S training seeds, N agents, E environments, T steps, U updates.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int32, Key

from data_gen.domains.domain import Domain
from data_gen.learners.policy import DISTRIBUTIONS, Params, head_of
from data_gen.learners.ppo import PPO, LearnerState, Transitions, check_minibatches, improve, init_state, inputs_of
from data_gen.learners.rollout import Episode, play, team_return
from data_gen.trajectory import AnyArray, InputError


class Progress(NamedTuple):
    """Of updates: mean team return of the `episodes` that ended (NaN where none did), and how many physics `broke`.

    `finite`: whether all parameters are finite afterwards.
    """

    team_return: Float32[AnyArray, "*S"]
    episodes: Int32[AnyArray, "*S"]
    broken: Int32[AnyArray, "*S"]
    finite: Bool[AnyArray, "*S"]


def check_fit(domain: Domain, ppo: PPO) -> None:
    """Raise InputError where the learner's settings do not fit a domain whose episodes are played whole."""
    if ppo.segment:
        raise InputError(
            f"learner: segment is {ppo.segment}; {domain.name} learns from whole episodes, so leave it at 0."
        )
    check_minibatches(ppo, domain.horizon, domain.n_agents)


def init_learner(domain: Domain, ppo: PPO, key: Key[Array, ""]) -> LearnerState:
    """New networks for one training seed."""
    return init_state(domain.n_agents, len(domain.obs_names), domain.action, ppo, key)


def act_policy(domain: Domain, sharing: bool, actors: Params, state, obs: Float[Array, "N Do"], key) -> Array:
    """The stochastic policies' actions, for `rollout.play`; `state` is not looked at."""
    heads = jax.vmap(partial(head_of, kind=domain.action.kind))(actors, inputs_of(obs, sharing))
    return DISTRIBUTIONS[domain.action.kind].sample(heads.reshape(domain.n_agents, -1), key)


def transitions_of(episodes: Episode) -> Transitions:
    """Whole episodes [E, T, N, …], which are cut after their last step and never terminate."""
    following = jnp.concatenate([episodes.obs[:, 1:], episodes.last_obs[:, None]], axis=1)
    never = jnp.zeros(episodes.obs.shape[:2], bool)
    return Transitions(
        obs=episodes.obs,
        actions=episodes.actions,
        rewards=episodes.rewards,
        following=following,
        terminated=never,
        ended=never.at[:, -1].set(True),
    )


def update(domain: Domain, ppo: PPO, state: LearnerState) -> tuple[LearnerState, Progress]:
    """Play `envs` episodes with one seed's policies, then let each learner improve its own networks on them."""
    play_key, learn_key = jax.random.split(jax.random.fold_in(state.key, state.number))
    act = partial(act_policy, domain, ppo.sharing, state.params["actor"])
    episodes = jax.vmap(partial(play, domain, act))(jax.random.split(play_key, ppo.envs))
    real = jnp.ones((domain.n_agents, domain.action.size), bool)
    state, finite = improve(real, domain.action.kind, ppo, state, transitions_of(episodes), learn_key)
    progress = Progress(
        team_return=jnp.mean(team_return(episodes.rewards)),
        episodes=jnp.int32(ppo.envs),
        broken=jnp.int32(0),
        finite=finite,
    )
    return state, progress


@partial(jax.jit, static_argnums=(0, 1))
def init_seeds(domain: Domain, ppo: PPO, keys: Key[Array, " S"]) -> LearnerState:
    """New learners, one training seed a key."""
    return jax.vmap(partial(init_learner, domain, ppo))(keys)


@partial(jax.jit, static_argnums=(0, 1, 3), donate_argnums=(2,))
def train_seeds(domain: Domain, ppo: PPO, state: LearnerState, n_updates: int) -> tuple[LearnerState, Progress]:
    """`n_updates` updates of every seed; Progress has the axes [S, U]."""
    step = jax.vmap(partial(update, domain, ppo))
    state, progress = jax.lax.scan(lambda s, _: step(s), state, None, length=n_updates)
    return state, Progress(*(jnp.moveaxis(field, 0, 1) for field in progress))
