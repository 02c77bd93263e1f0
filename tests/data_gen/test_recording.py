import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains.coordination import Coordination
from data_gen.domains.coordination import make as make_coordination
from data_gen.domains.hill_climbing import HillClimbing
from data_gen.domains.hill_climbing import make as make_hills
from data_gen.keys import episode_key, named_key
from data_gen.learners.learner import Progress, act_policy
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import play
from data_gen.recording.learning import normalised_return
from data_gen.recording.plane_world import PlaneWorld
from data_gen.recording.recording import (
    Recording,
    check_finite,
    record_shard,
    seeds_of_shard,
    updates_at,
)
from data_gen.trajectory import InputError, RowIndex
from tests.data_gen.oracles_plane import hill_reward

PPO_SMALL = PPO(updates=4, envs=4, hidden=8, lr=0.03)
SMALL = Recording(seeds=4, checkpoints=3, episodes=2, shards=2, split=[2, 1, 1])
HILLS = make_hills(HillClimbing(horizon=6))
MEETING = make_coordination(Coordination(horizon=9))


@pytest.fixture(scope="module", params=[HILLS, MEETING], ids=["hills", "meeting"])
def shards(request):
    domain, told = request.param, []
    found = [record_shard(PlaneWorld(domain, PPO_SMALL), SMALL, k, told.append) for k in range(2)]
    return domain, found, told


def test_rows_are_numbered_once_over_all_shards(shards):
    _, found, told = shards
    rows = RowIndex(*(np.concatenate(field) for field in zip(*(s.rows for s in found), strict=True)))
    np.testing.assert_array_equal(rows.episode, np.arange(4 * 3 * 2))
    np.testing.assert_array_equal(rows.group, np.repeat(np.arange(4), 6))
    np.testing.assert_array_equal(rows.checkpoint, np.tile(np.repeat(np.arange(3), 2), 4))
    assert not rows.t0.any() and told[:3] == sorted(told[:3]) and told[2] == told[-1] == 1


def test_shards_agree_on_json_meta(shards):
    domain, found, _ = shards
    assert json.dumps(found[0].meta) == json.dumps(found[1].meta)
    meta = json.loads(json.dumps(found[0].meta))
    assert meta == found[0].meta
    assert meta["domain"]["name"] == domain.name and meta["updates"] == [0, 2, 4]
    assert meta["recording"]["split"] == [2, 1, 1] and meta["baselines"]["scripted"] > meta["baselines"]["random"]
    assert [spec["name"] for spec in meta["labels"]] == [spec.name for spec in found[0].labels.specs]


def test_recorded_actions_come_from_the_snapshot_that_is_named(shards):
    domain, found, _ = shards
    shard, row = found[1], (1 * 3 + 2) * 2 + 1  # training seed 3, checkpoint 2, episode 1
    actors = {name.removeprefix("actor/"): jnp.asarray(x[1, 2]) for name, x in shard.policies.items()}
    key = episode_key(named_key(0, domain.name, "record"), jnp.int32(3), jnp.int32(2), jnp.int32(1))
    again = play(domain, partial(act_policy, domain, False, actors), key)
    np.testing.assert_allclose(again.obs, shard.batch.obs[row], atol=1e-5)
    np.testing.assert_allclose(again.actions, shard.batch.actions[row], atol=1e-4)
    np.testing.assert_allclose(again.rewards, shard.outcomes.rewards[row], atol=1e-4)
    moved = np.abs(shard.policies["actor/w0"][:, 1:] - shard.policies["actor/w0"][:, :-1]).max(axis=(2, 3, 4))
    assert (moved > 1e-3).all()


def test_steps_are_aligned_and_cut_at_the_horizon(shards):
    domain, found, _ = shards
    batch, outcomes = found[0].batch, found[0].outcomes
    assert batch.mask.all() and not outcomes.terminated.any()
    np.testing.assert_array_equal(outcomes.truncated.sum(axis=0), [0] * (domain.horizon - 1) + [len(batch.obs)])
    if domain is HILLS:
        c, after = domain.config, batch.obs[:, 1:, :, :2]
        want = [[hill_reward(p, c.hills, c.width, c.crowding) for p in track] for track in after]
        np.testing.assert_allclose(outcomes.rewards[:, :-1, 0], want, rtol=1e-4)
    returns = [sum(step.mean() for step in episode) for episode in outcomes.rewards]
    np.testing.assert_allclose(found[0].labels.values["team_return"], returns, rtol=1e-5)
    np.testing.assert_array_equal(found[0].labels.values["progress"], found[0].rows.checkpoint)


@pytest.mark.parametrize("shards", [HILLS], ids=["hills"], indirect=True)  # these programs are slow to compile
def test_more_seeds_shards_and_episodes_change_no_episode(shards):
    domain, found, _ = shards
    wider = Recording(seeds=6, checkpoints=3, episodes=3, shards=2, split=[4, 1, 1])
    shard = record_shard(PlaneWorld(domain, PPO_SMALL), wider, 0, lambda share: None)
    kept = shard.batch.obs.reshape(3, 3, 3, *shard.batch.obs.shape[1:])[:2, :, :2]
    np.testing.assert_allclose(kept.reshape(found[0].batch.obs.shape), found[0].batch.obs, atol=2e-3)
    differing = Recording(**vars(SMALL) | {"seed": 1})
    other = record_shard(PlaneWorld(domain, PPO_SMALL), differing, 0, lambda share: None)
    assert np.abs(other.batch.obs - found[0].batch.obs).max() > 0.01


def test_curves_are_finite_and_of_all_updates(shards):
    _, found, _ = shards
    assert found[0].curve.shape == (2, 4) and np.isfinite(found[0].curve).all()
    first = [shard.policies["actor/w0"][:, 0].reshape(2, -1) for shard in found]
    assert np.abs(np.diff(np.concatenate(first), axis=0)).max(axis=1).min() > 0.1


def history(returns, finite=True, episodes=3):
    shape = np.shape(returns)
    counts = np.full(shape, episodes, np.int32)
    flags = np.broadcast_to(np.asarray(finite), shape)
    return Progress(np.asarray(returns, np.float32), counts, np.zeros(shape, np.int32), flags)


class Exploding(PlaneWorld):
    def train(self, state, n_updates, tell):
        returns = np.ones((2, n_updates))
        returns[1, 1] = np.nan
        return state, history(returns)


def test_a_learner_that_explodes_names_seed_and_update():
    with pytest.raises(InputError, match=r"training seed 3 .* update 1"):
        record_shard(Exploding(HILLS, PPO_SMALL), SMALL, 1, lambda share: None)
    with pytest.raises(InputError, match=r"training seed 7 .* update 11"):
        check_finite(history([[1.0, 2.0], [1.0, np.inf]]), range(6, 8), 10)
    with pytest.raises(InputError, match=r"training seed 6 .* update 10"):
        check_finite(history(np.ones((2, 2)), [[False, True], [True, True]]), range(6, 8), 10)
    check_finite(history([[1.0, np.nan]], episodes=0), range(6, 7), 10)  # no episode ended, so there is no return


def test_normalised_return_by_hand():
    checkpoint = np.array([0, 1, 1, 0, 1, 1], np.int32)
    group = np.array([4, 4, 4, 2, 2, 2], np.int32)
    rows = RowIndex(np.arange(6, dtype=np.int32), group, checkpoint, np.zeros(6, np.int32))
    returns = np.array([9, 2, 4, 9, 1, 1], np.float32)
    got = normalised_return(returns, rows, {"random": 1.0, "scripted": 5.0})
    np.testing.assert_allclose(got, [0.0, 0.5])


def test_names_and_numbers_make_different_keys():
    paths = [("a", 1), ("a", 2), ("b", 1), ("a", 1, 0), (1, "a")]
    data = [jax.random.key_data(named_key(0, *path)).tolist() for path in paths]
    data.append(jax.random.key_data(named_key(1, "a", 1)).tolist())
    assert len({tuple(row) for row in data}) == len(data)


def test_blocks_of_seeds_and_even_checkpoints():
    recording = Recording(seeds=12, shards=3)
    assert [list(seeds_of_shard(recording, k)) for k in range(3)] == [[*range(4)], [*range(4, 8)], [*range(8, 12)]]
    assert updates_at(PPO(updates=100), recording) == [0, 20, 40, 60, 80, 100]
    with pytest.raises(InputError, match="no shard 3"):
        seeds_of_shard(recording, 3)
    with pytest.raises(InputError, match="multiple of 5"):
        updates_at(PPO(updates=7), recording)


@pytest.mark.parametrize(
    "values, word",
    [
        ({"seeds": 10, "shards": 4}, "10 seeds"),
        ({"checkpoints": 1}, "checkpoints"),
        ({"split": [1, 2]}, "split"),
        ({"episodes": 0}, "episodes"),
        ({"seed": -1}, "seed"),
    ],
)
def test_a_wrong_value_names_itself(values, word):
    with pytest.raises(InputError, match=word):
        Recording(**values)
