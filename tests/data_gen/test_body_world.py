"""Recorded bodies: what is stored, what is masked, what is thrown away, and that the snapshots made it."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains import label_names
from data_gen.domains.mujoco import EngineChoice, MuJoCo
from data_gen.engines.scenarios import make_scenario
from data_gen.keys import named_key
from data_gen.learners.segments import step_key
from data_gen.recording.body_world import RECORD, BodyWorld, episode_keys
from data_gen.recording.learning import describe_learning
from data_gen.recording.recording import Recording, record_shard
from data_gen.storage.dataset import read_dataset, write_shard
from data_gen.storage.states import read_states
from data_gen.trajectory import InputError
from tests.data_gen.bodies import SMALL, Failing, seed_keys
from tests.data_gen.oracles_plane import mlp

NATIVE = EngineChoice("native")
HOPPER = MuJoCo(scenario="Hopper 3x1", horizon=200, recorded=60, engine=NATIVE)
RECORDING = Recording(seeds=6, checkpoints=2, episodes=4, shards=2, split=[2, 2, 2])
PPO_TWO = type(SMALL)(**vars(SMALL) | {"updates": 2})


@pytest.fixture(scope="module")
def shards():
    world = BodyWorld(HOPPER, PPO_TWO)
    found = [record_shard(world, RECORDING, k, lambda share: None) for k in range(2)]
    world.close()
    return found


def test_an_episode_ends_by_its_fall_or_by_its_length(shards):
    for shard in shards:
        mask, outcomes = shard.batch.mask, shard.outcomes
        length = mask[:, :, 0].sum(axis=1)
        assert (np.diff(mask.astype(int), axis=1) <= 0).all() and length.min() < 60
        fell = outcomes.terminated.any(axis=1)
        assert fell.any() and (outcomes.truncated.any(axis=1) == (length == 60)).all()
        np.testing.assert_array_equal(fell | (length == 60), True)
        for row in np.flatnonzero(fell):
            np.testing.assert_array_equal(np.flatnonzero(outcomes.terminated[row]), [length[row] - 1])
        beyond = ~mask
        for values in (shard.batch.obs, shard.batch.actions, outcomes.rewards):
            assert not values[beyond].any()
        returns = outcomes.rewards.mean(axis=2).sum(axis=1)
        np.testing.assert_allclose(shard.labels.values["team_return"], returns, rtol=1e-5)


def test_states_observations_and_speed_tell_the_same_story(shards):
    scenario, shard = make_scenario("Hopper 3x1", 1), shards[0]
    names = scenario.obs_names[0]
    for joint, place in (("qpos 1", 1), ("qpos thigh_joint", 3)):
        seen = shard.batch.obs[:, :, 0, names.index(joint)]
        np.testing.assert_allclose(seen, shard.states["qpos"][..., place], rtol=1e-5)
    length = shard.batch.mask[:, :, 0].sum(axis=1)
    x = shard.states["qpos"][..., 0]
    row = int(np.argmax(length == 60)) if (length == 60).any() else int(length.argmax())
    speed_before_last = (x[row, length[row] - 1] - x[row, 0]) / (length[row] - 1) / scenario.body.dt
    np.testing.assert_allclose(shard.labels.values["speed"][row], speed_before_last, atol=0.1)


def test_recorded_actions_come_from_the_snapshot_with_its_frozen_scale(shards):
    shard, scenario = shards[1], make_scenario("Hopper 3x1", 1)
    row = (1 * 2 + 1) * 4 + 2  # training seed 4 (the second of the shard), checkpoint 1, episode 2
    assert (shard.rows.group[row], shard.rows.checkpoint[row], shard.rows.episode[row]) == (4, 1, (4 * 2 + 1) * 4 + 2)
    key = episode_keys(named_key(0, "mujoco", "record"), jnp.array([4], jnp.int32), jnp.int32(1), 4)[0, 2]
    mean, std = (shard.policies[f"scale/{name}"][1, 1] for name in ("mean", "std"))
    assert np.abs(mean).max() > 0.5 and np.ptp(std) > 0.1
    for t in (0, 3):
        for agent in range(3):
            own = {n.removeprefix("actor/"): x[1, 1, agent] for n, x in shard.policies.items() if "actor" in n}
            seen = (shard.batch.obs[row, t, agent] - mean[agent]) / std[agent]
            out = mlp(own, np.where(scenario.obs_mask[agent], np.clip(seen, -10, 10), 0)[None])[0]
            noise = shard.batch.actions[row, t, agent] - out
            want = np.asarray(standard_draw(key, t))[agent]
            np.testing.assert_allclose(noise / np.exp(log_std(own)), want, rtol=2e-3, atol=2e-3)


def standard_draw(key, t):
    import jax

    return jax.random.normal(step_key(key, jnp.int32(t), 0), (3, 1))


def log_std(params):
    return np.log(0.1) + np.log1p(np.exp(params["raw_std"]))


def test_the_first_checkpoint_is_unscaled_and_shards_agree(shards):
    for shard in shards:
        assert not shard.policies["scale/mean"][:, 0].any() and (shard.policies["scale/std"][:, 0] == 1).all()
    assert json.dumps(shards[0].meta) == json.dumps(shards[1].meta)
    meta = shards[0].meta
    assert meta["domain"]["scenario"] == "Hopper 3x1" and meta["engine"]["name"] == "native"
    assert meta["limbs"] == [["thigh_joint"], ["leg_joint"], ["foot_joint"]]


def test_the_data_set_says_what_is_padding_and_how_the_teams_learned(shards, tmp_path):
    for index, shard in enumerate(shards):
        write_shard(tmp_path, index, 2, shard, {})
    found = read_dataset(tmp_path)
    np.testing.assert_array_equal(found.features.obs, make_scenario("Hopper 3x1", 1).obs_mask)
    assert not found.features.obs.all() and not found.batch.obs[..., ~found.features.obs[0]][:, :, 0].any()
    (line,) = describe_learning(found)
    last = found.rows.checkpoint == 1
    means = [found.labels.values["team_return"][last & (found.rows.group == g)].mean() for g in range(6)]
    assert f"{np.median(means):.1f} at the last" in line and f"highest {max(means):.1f}" in line
    rows = np.array([5, 40])
    np.testing.assert_array_equal(read_states(tmp_path, rows)["qpos"][1], shards[1].states["qpos"][40 - 24])


def test_recording_leaves_the_learners_environments_alone():
    found = []
    for plays in (False, True):
        # As many environments and as long episodes in learning as in recording.
        world = BodyWorld(MuJoCo(scenario="HalfCheetah 2x3", horizon=60, recorded=60, engine=NATIVE), PPO_TWO)
        state = world.start(seed_keys(0))
        state, _ = world.train(state, 1, lambda share: None)
        if plays:
            world.play(state, named_key(0, "record"), jnp.zeros(1, jnp.int32), jnp.int32(0), PPO_TWO.envs)
        state, _ = world.train(state, 1, lambda share: None)
        found.append(world.snapshot(state))
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name])


class Breaking(BodyWorld):
    """Physics fails in the recorded episode 2 of the first seed, at its step 3."""

    def scene(self, use, n_envs):
        found = super().scene(use, n_envs)
        if use == RECORD and not isinstance(found.engine, Failing):
            found = found._replace(engine=Failing(found.engine, env=2, at=3))
            self.scenes[use, n_envs] = found
        return found


def test_an_episode_whose_physics_fails_is_named_and_never_stored(shards, tmp_path):
    world = Breaking(HOPPER, PPO_TWO)
    shard = record_shard(world, RECORDING, 0, lambda share: None)
    assert len(shard.batch.obs) == len(shards[0].batch.obs) - 1 == len(shard.states["qpos"])
    assert 2 not in shard.rows.episode.tolist()
    (line,) = shard.discarded
    assert "training seed 0, checkpoint 0, episode 2 (environment 2): physics failed at step 3" in line
    same = np.isin(shards[0].rows.episode, shard.rows.episode)
    np.testing.assert_array_equal(shard.batch.obs, shards[0].batch.obs[same])
    write_shard(tmp_path, 0, 2, shard, {})
    write_shard(tmp_path, 1, 2, shards[1], {})
    found = read_dataset(tmp_path)
    assert found.meta["discarded"] == [line] and f"discarded: {line}" in describe_learning(found)


class Hopeless(Breaking):
    """Physics fails at the first step of every recorded episode."""

    def play(self, *where):
        found = super().play(*where)
        return found._replace(failed=np.zeros_like(found.failed))


def test_where_every_episode_fails_the_first_failure_is_told():
    said = "every recorded episode of training seeds 0 to 2.*training seed 0, checkpoint 0, episode 0.*at step 0"
    with pytest.raises(InputError, match=said):
        record_shard(Hopeless(HOPPER, PPO_TWO), RECORDING, 0, lambda share: None)


def test_a_policy_that_explodes_is_named_by_seed_and_update():
    ppo = type(SMALL)(**vars(PPO_TWO) | {"lr": 1e30, "max_grad_norm": 1e30})
    with pytest.raises(InputError, match=r"learner: training seed \d has a return or a parameter that is not finite"):
        record_shard(BodyWorld(HOPPER, ppo), RECORDING, 0, lambda share: None)


def test_labels_are_known_before_anything_is_recorded(shards):
    assert label_names(HOPPER) == sorted(spec["name"] for spec in shards[0].meta["labels"])


@pytest.mark.parametrize(
    "values, word",
    [
        ({"scenario": "HalfCheeta 2x3"}, "did you mean 'HalfCheetah 2x3'"),
        ({"scenario": "Ant 3x3"}, "The scenarios are"),
        ({"obsk": 3}, "obsk is 3"),
        ({"recorded": 300, "horizon": 200}, "recorded is 300"),
        ({"recorded": 2}, "recorded is 2"),
    ],
)
def test_a_wrong_value_names_itself(values, word):
    with pytest.raises(InputError, match=word):
        MuJoCo(**values)
