"""Recording of bodies on an engine: an episode ends by a fall or after its length, and fails with its physics.

Letters: S training seeds of a shard, P episodes of each, A = S · P, B kept rows, T steps, N agents.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, Key

from data_gen.domains.mujoco import MuJoCo, hand_features, measure
from data_gen.engines.engine import open_engine
from data_gen.engines.scenarios import make_scenario
from data_gen.keys import episode_key
from data_gen.learners.body_learner import (
    BodyState,
    advance,
    check_segment,
    init_bodies,
    learn,
    learn_from_host,
    team_of,
)
from data_gen.learners.learner import Progress
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import Policy
from data_gen.learners.segments import KIND, Scene, Team, Turn, begin, make_scene, on_host, perform, play
from data_gen.recording.world import Played
from data_gen.storage.feature_mask import feature_mask_json
from data_gen.trajectory import ActionSpec, FeatureMask, Features, Labels, RowIndex, TrajectoryBatch

LEARN, RECORD = "learn", "record"


class BodyWorld:
    """A scenario on an engine with its learners; see `world.World`. Raises InputError where settings do not fit."""

    name = "mujoco"

    def __init__(self, config: MuJoCo, ppo: PPO):
        self.config, self.ppo = config, ppo
        self.scenario = make_scenario(config.scenario, config.obsk)
        check_segment(config.horizon, self.scenario.n_agents, ppo)
        self.action = ActionSpec(KIND, self.scenario.action_mask.shape[1])
        self.horizons = {LEARN: config.horizon, RECORD: config.recorded}
        self.scenes: dict[tuple[str, int], Scene] = {}
        self.programs: dict[tuple[str, int], Callable] = {}

    def open(self, seeds: int, episodes: int) -> None:
        """Open the engines for a shard of so many training seeds; InputError where one cannot run here."""
        self.scene(LEARN, seeds * self.ppo.envs)
        self.scene(RECORD, seeds * episodes)

    def scene(self, use: str, n_envs: int) -> Scene:
        """The body on an engine with so many environments, opened once; never shared by learning and recording."""
        if (use, n_envs) not in self.scenes:
            choice = self.config.engine
            engine = open_engine(choice.name, self.scenario.body, n_envs, **choice.settings())
            scene = make_scene(self.scenario, engine, self.horizons[use], self.ppo.sharing)
            self.scenes[use, n_envs], self.scenario = scene, scene.scenario
        return self.scenes[use, n_envs]

    def program(self, use: str, n_envs: int) -> Callable:
        """What a scene is for, made once, since it compiles."""
        if (use, n_envs) not in self.programs:
            self.programs[use, n_envs] = PROGRAMS[use](self.scene(use, n_envs), self.ppo)
        return self.programs[use, n_envs]

    def start(self, keys: Key[Array, " S"]) -> BodyState:
        return init_bodies(self.scene(LEARN, len(keys) * self.ppo.envs), self.ppo, keys)

    def train(self, state: BodyState, n_updates: int, tell: Callable[[float], None]) -> tuple[BodyState, Progress]:
        update, found = self.program(LEARN, state.keys.size), []
        for number in range(n_updates):
            state, progress = update(state)
            found.append(jax.tree.map(np.asarray, progress))
            tell((number + 1) / n_updates)
        return state, Progress(*(np.stack(field, axis=1) for field in zip(*found, strict=True)))

    def snapshot(self, state: BodyState) -> dict[str, np.ndarray]:
        team = team_of(self.ppo.sharing, state)
        parts = {"actor": team.actors, "scale": team.scale._asdict()}
        return {f"{part}/{name}": np.array(value) for part, tree in parts.items() for name, value in tree.items()}

    def play(
        self,
        state: BodyState,
        key: Key[Array, ""],
        seeds: Int32[Array, " S"],
        checkpoint: Int32[Array, ""],
        episodes: int,
    ) -> Played:
        team = team_of(self.ppo.sharing, state)._replace(keys=episode_keys(key, seeds, checkpoint, episodes))
        turns = self.program(RECORD, team.keys.size)(team)
        return played(by_episode(turns))

    def rollout(self, act: Policy, keys: Key[Array, " B"]) -> Played:
        scene = self.scene(RECORD, len(keys))
        return played(by_episode(perform(scene, act, keys[None])))

    def describe(self, played: Played, rows: RowIndex) -> tuple[Labels, Features]:
        labels = measure(self.scenario, played.batch, played.measured["speed"])
        return labels, hand_features(self.scenario, played.batch)

    def facts(self, seed: int) -> dict[str, Any]:
        engine = next(iter(self.scenes.values())).engine
        mask = FeatureMask(obs=self.scenario.obs_mask, actions=self.scenario.action_mask)
        return {
            "obs_names": [list(names) for names in self.scenario.obs_names],
            "limbs": [list(limb) for limb in self.scenario.limbs],
            "feature_mask": feature_mask_json(mask),
            "engine": {"name": engine.name, "missing": list(engine.missing), **engine.notes},
            "seconds_a_step": self.scenario.body.dt,
        }

    def close(self) -> None:
        for scene in self.scenes.values():
            scene.engine.close()


@partial(jax.jit, static_argnums=(3,))
def episode_keys(
    key: Key[Array, ""], seeds: Int32[Array, " S"], checkpoint: Int32[Array, ""], episodes: int
) -> Key[Array, "S P"]:
    """A key for every recorded episode."""
    return jax.vmap(lambda seed: jax.vmap(partial(episode_key, key, seed, checkpoint))(jnp.arange(episodes)))(seeds)


def update_program(scene: Scene, ppo: PPO) -> Callable[[BodyState], tuple[BodyState, Progress]]:
    """One update of all seeds: in one program, or a segment from the host and a program that learns from it."""
    learning = learn_from_host if on_host(scene) else learn

    def update(state: BodyState) -> tuple[BodyState, Progress]:
        state, seen = advance(scene, ppo, state)
        learner, moments, progress = learning(scene.masks, ppo, state.learner, state.moments, seen)
        return state._replace(learner=learner, moments=moments), progress

    return update if on_host(scene) else jax.jit(update, donate_argnums=(0,))


def episodes_program(scene: Scene, ppo: PPO) -> Callable[[Team], Turn]:
    """Episodes from their start, to the length after which the scene cuts them."""

    def whole(team: Team) -> Turn:
        return play(scene, team, begin(scene, team.keys, np.int32(-1)), 0, scene.horizon)[1]

    return whole if on_host(scene) else jax.jit(whole)


PROGRAMS = {LEARN: update_program, RECORD: episodes_program}


def by_episode(turns: Turn) -> Turn:
    """[T, A, …] to [A, T, …]."""
    return Turn(*(np.moveaxis(np.asarray(field), 0, 1) for field in turns))


def played(turns: Turn) -> Played:
    """The first episode of every environment, from turns [A, T, …]; what comes after its end is 0 and masked."""
    ends = np.asarray(turns.terminated | turns.truncated | turns.broken)
    last = ends.argmax(axis=1)
    real = np.arange(ends.shape[1]) <= last[:, None]

    def cut(values: np.ndarray) -> np.ndarray:
        return np.where(real.reshape(*real.shape, *(1,) * (values.ndim - 2)), values, np.zeros((), values.dtype))

    return Played(
        batch=TrajectoryBatch(
            obs=cut(turns.obs),
            actions=cut(turns.actions).astype(np.float32),
            mask=np.repeat(real[:, :, None], turns.obs.shape[2], axis=2),
        ),
        rewards=cut(turns.rewards),
        terminated=cut(turns.terminated),
        truncated=cut(turns.truncated),
        measured={"speed": cut(turns.speed)},
        states={"qpos": cut(turns.qpos)},
        failed=np.where(turns.broken[np.arange(len(last)), last], last, -1).astype(np.int32),
    )
