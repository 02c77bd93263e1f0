"""Learning and recording where a whole update is one program: on Brax, whose programs compile fastest."""

import jax
import numpy as np
import pytest

from data_gen.domains.mujoco import EngineChoice, MuJoCo
from data_gen.learners.body_learner import team_of
from data_gen.learners.segments import begin, turn
from data_gen.recording.body_world import RECORD, BodyWorld, episode_keys
from data_gen.recording.recording import Recording, record_shard
from tests.data_gen.bodies import SMALL, seed_keys

HOPPER = MuJoCo(scenario="Hopper 3x1", horizon=100, recorded=12, engine=EngineChoice("brax"))
PPO_TWO = type(SMALL)(**vars(SMALL) | {"updates": 2, "segment": 16})


@pytest.mark.slow
def test_a_shard_is_recorded_on_an_engine_in_jax() -> None:
    world = BodyWorld(HOPPER, PPO_TWO)
    recording = Recording(seeds=3, checkpoints=2, episodes=2, shards=1, split=[1, 1, 1])
    one, two = (record_shard(world, recording, 0, lambda share: None) for _ in range(2))
    np.testing.assert_array_equal(one.batch.obs, two.batch.obs)
    assert one.meta["engine"]["name"] == "brax" and not one.discarded
    assert np.isfinite(one.batch.obs).all() and one.batch.mask.any(axis=1).all()
    moved = np.abs(np.diff(one.policies["actor/w0"], axis=1)).max(axis=(1, 2, 3, 4))
    assert (moved > 1e-4).all() and np.abs(one.policies["scale/mean"][:, 1]).max() > 0.5


@pytest.mark.slow
def test_one_program_plays_what_single_steps_play() -> None:
    world = BodyWorld(HOPPER, PPO_TWO)
    state = world.start(seed_keys(0))
    seeds, checkpoint = np.zeros(1, np.int32), np.int32(0)
    found = world.play(state, jax.random.key(1), jax.numpy.asarray(seeds), jax.numpy.asarray(checkpoint), 3)
    keys = episode_keys(jax.random.key(1), jax.numpy.asarray(seeds), jax.numpy.asarray(checkpoint), 3)
    scene = world.scene(RECORD, 3)
    team = team_of(False, state)._replace(keys=keys)
    now = begin(scene, team.keys, jax.numpy.int32(-1))
    for t in range(3):
        now, step = turn(scene, team, now, jax.numpy.int32(t))
        np.testing.assert_allclose(found.batch.obs[:, t], step.obs, atol=2e-3)
        np.testing.assert_allclose(found.batch.actions[:, t], step.actions, atol=2e-3)
