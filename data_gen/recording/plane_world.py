"""Recording in a domain that is pure functions: every episode runs to the horizon and is cut there.

S training seeds of a shard, P episodes of each.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key

from data_gen.domains.domain import Domain
from data_gen.keys import episode_key, named_key
from data_gen.learners.learner import Progress, act_policy, check_fit, init_seeds, train_seeds
from data_gen.learners.ppo import PPO, LearnerState
from data_gen.learners.rollout import Episode, Policy, act_random, act_scripted, perform, play, team_return
from data_gen.recording.world import Played
from data_gen.trajectory import Features, Labels, RowIndex, TrajectoryBatch

BASELINE_EPISODES = 256
BASELINES = {"random": act_random, "scripted": act_scripted}


class PlaneWorld:
    """A Domain with its learners; see `world.World`."""

    def __init__(self, domain: Domain, ppo: PPO):
        check_fit(domain, ppo)
        self.domain, self.ppo = domain, ppo
        self.name, self.config, self.action = domain.name, domain.config, domain.action

    def start(self, keys: Key[Array, " S"]) -> LearnerState:
        return init_seeds(self.domain, self.ppo, keys)

    def train(
        self, state: LearnerState, n_updates: int, tell: Callable[[float], None]
    ) -> tuple[LearnerState, Progress]:
        return train_seeds(self.domain, self.ppo, state, n_updates)

    def snapshot(self, state: LearnerState) -> dict[str, np.ndarray]:
        return {f"actor/{name}": np.array(part) for name, part in state.params["actor"].items()}

    def play(
        self,
        state: LearnerState,
        key: Key[Array, ""],
        seeds: Int32[Array, " S"],
        checkpoint: Int32[Array, ""],
        episodes: int,
    ) -> Played:
        where = (seeds, checkpoint)
        found = record(self.domain, self.ppo.sharing, state.params["actor"], key, where, episodes)
        return self.played(Episode(*(np.asarray(x).reshape(-1, *x.shape[2:]) for x in found)))

    def rollout(self, act: Policy, keys: Key[Array, " B"]) -> Played:
        return self.played(perform(self.domain, act, keys))

    def played(self, found: Episode) -> Played:
        """Episodes [B, T, …] as recording keeps them."""
        obs, actions, rewards, _ = (np.asarray(x) for x in found)
        cut = np.zeros(obs.shape[:2], bool)
        cut[:, -1] = True
        return Played(
            batch=TrajectoryBatch(
                obs=obs,
                actions=actions.astype(np.float32 if self.action.kind == "continuous" else np.int32),
                mask=np.ones(obs.shape[:3], bool),
            ),
            rewards=rewards,
            terminated=np.zeros_like(cut),
            truncated=cut,
            measured={},
            states={},
            failed=np.full(len(obs), -1, np.int32),
        )

    def describe(self, played: Played, rows: RowIndex) -> tuple[Labels, Features]:
        return self.domain.measure(played.batch, rows), self.domain.hand_features(played.batch)

    def facts(self, seed: int) -> dict[str, Any]:
        return {
            "obs_names": list(self.domain.obs_names),
            "landmarks": [mark._asdict() for mark in self.domain.landmarks],
            "position": list(self.domain.position),
            "baselines": dict(baselines(self.domain, seed)),
        }

    def close(self) -> None:
        pass


@partial(jax.jit, static_argnums=(0, 1, 5))
def record(
    domain: Domain,
    sharing: bool,
    actors: dict[str, Array],
    key: Key[Array, ""],
    where: tuple[Int32[Array, " S"], Int32[Array, ""]],
    n_episodes: int,
) -> Episode:
    """`n_episodes` of every seed (`where`: seed numbers and checkpoint) with stochastic policies: axes [S, P, T, …]."""
    seeds, checkpoint = where

    def of_seed(actors, seed):
        act = partial(act_policy, domain, sharing, actors)
        keys = jax.vmap(partial(episode_key, key, seed, checkpoint))(jnp.arange(n_episodes))
        return jax.vmap(partial(play, domain, act))(keys)

    return jax.vmap(of_seed)(actors, seeds)


@partial(jax.jit, static_argnums=(0, 1))
def baseline(domain: Domain, name: str, keys: Key[Array, " P"]) -> Float32[Array, ""]:
    """Mean team return of a baseline team on the episodes of the keys."""
    episodes = jax.vmap(partial(play, domain, partial(BASELINES[name], domain)))(keys)
    return jnp.mean(team_return(episodes.rewards))


@cache  # the scripted team's look ahead takes seconds, and every shard of a process wants the same numbers
def baselines(domain: Domain, seed: int) -> dict[str, float]:
    """Mean team return of random and scripted teams on the same starts, the same in every shard."""
    keys = jax.random.split(named_key(seed, domain.name, "baseline"), BASELINE_EPISODES)
    return {name: round(float(baseline(domain, name, keys)), 4) for name in BASELINES}
