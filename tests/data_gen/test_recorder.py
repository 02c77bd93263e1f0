"""What a user's environment did is what the data set holds, step by step."""

import jax
import numpy as np
from gymnasium.spaces.utils import flatten
from mpe2 import simple_speaker_listener_v4, simple_spread_v3

from data_gen import Recorder
from data_gen.collecting import shards
from data_gen.storage.dataset import digest, present_shards, read_dataset
from data_gen.trajectory import ActionSpec
from tests.data_gen.recorded import Grid, Logged, Pack, choose, record_pack, record_spread, scripted


def test_a_real_environment_of_pettingzoo_comes_back_step_by_step(tmp_path):
    env = Logged(simple_spread_v3.parallel_env(max_cycles=6))
    record_spread(tmp_path / "data", env=env)
    found = read_dataset(tmp_path / "data")
    assert found.batch.obs.shape == (8, 6, 3, 18) and found.action == ActionSpec("discrete", 5)
    assert found.rows.group.tolist() == [0, 0, 1, 1, 2, 2, 3, 3] and found.rows.episode.tolist() == list(range(8))
    assert found.batch.mask.all() and found.meta["agents"] == env.possible_agents
    for row, steps in enumerate(env.log):
        for t, (observations, actions, rewards) in enumerate(steps):
            for n, agent in enumerate(env.possible_agents):
                np.testing.assert_array_equal(found.batch.obs[row, t, n], observations[agent])
                assert found.batch.actions[row, t, n] == actions[agent]
                assert found.outcomes.rewards[row, t, n] == np.float32(rewards[agent])
    np.testing.assert_array_equal(found.outcomes.truncated, np.arange(6)[None].repeat(8, 0) == 5)
    assert not found.outcomes.terminated.any()
    returns = [
        np.mean([[step[2][agent] for agent in env.possible_agents] for step in steps], 1).sum() for steps in env.log
    ]
    np.testing.assert_allclose(found.labels.values["team_return"], returns, rtol=1e-5)


def test_one_seed_gives_one_data_set(tmp_path):
    """Each episode has a seed of its own, whatever else is recorded."""
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        record_spread(tmp_path / name, seed)
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")
    obs = read_dataset(tmp_path / "a").batch.obs
    assert len({start.tobytes() for start in obs[:, 0]}) == len(obs)


def test_agents_of_different_spaces_share_columns_that_are_named_alike(tmp_path):
    env = simple_speaker_listener_v4.parallel_env(max_cycles=3)
    record_spread(tmp_path / "data", env=env)
    found = read_dataset(tmp_path / "data")
    assert found.batch.obs.shape[-1] == 11 and found.action == ActionSpec("discrete", 5)
    assert found.features.obs.sum(1).tolist() == [3, 11] and found.features.actions.all()
    assert found.meta["choices"] == {"speaker_0": 3, "listener_0": 5}
    assert not found.batch.obs[:, :, 0, 3:].any() and found.batch.actions[:, :, 0].max() < 3


def test_agents_that_leave_and_come_are_masked_and_spaces_flattened(tmp_path):
    env = Pack()
    record_pack(tmp_path / "data", env).close()
    found = read_dataset(tmp_path / "data")
    names = found.meta["obs_names"]
    assert names == ["mood_0", "mood_1", "mood_2", "place_0", "place_1", "0_0", "0_1", "1_0", "1_1"]
    columns = {"wolf": [0, 1, 2, 3, 4], "cub": [5, 6, 7, 8], "fox": [3, 4]}
    lengths = [len(steps) for steps in env.log]
    assert sorted(set(lengths)) == [3, 4] and found.batch.obs.shape == (6, 4, 3, 9)
    for row, steps in enumerate(env.log):
        for t in range(4):
            for n, agent in enumerate(env.possible_agents):
                own, moves = np.zeros(9, np.float32), np.zeros(2, np.float32)
                there = t < len(steps) and agent in steps[t][0]
                if there:
                    own[columns[agent]] = flatten(env.seen[agent], steps[t][0][agent])
                    moves[: env.widths[agent]] = steps[t][1][agent]
                assert found.batch.mask[row, t, n] == there
                np.testing.assert_array_equal(found.batch.obs[row, t, n], own)
                np.testing.assert_array_equal(found.batch.actions[row, t, n], moves)
                assert found.outcomes.rewards[row, t, n] == (t + 1) * there
        assert found.outcomes.terminated[row].tolist() == [t == len(steps) - 1 for t in range(4)]
    assert found.features.actions.tolist() == [[True, True], [True, False], [True, True]]
    assert (
        found.batch.mask[:, 1, 1].all() and not found.batch.mask[:, 2, 1].any() and not found.batch.mask[:, 0, 2].any()
    )


def test_max_steps_cuts_and_says_so(tmp_path):
    record_pack(tmp_path / "data", max_steps=2).close()
    found = read_dataset(tmp_path / "data")
    assert found.batch.obs.shape[1] == 2
    assert found.outcomes.truncated.tolist() == [[False, True]] * 6 and not found.outcomes.terminated.any()


def test_labels_by_value_and_by_function_of_an_episode_and_of_agents(tmp_path):
    labels = {
        "length": lambda played: len(played.mask),
        "mean_move": lambda played: played.actions[played.mask].mean(),
        "kind": ["old", "young", "old"],
        "left": lambda played: {"wolf": 0.5, "fox": float(played.infos["left"]), "cub": 2.0},
        "long": lambda played: len(played.mask) > 3,
        "team": "grey",
    }
    env = Pack()
    record_pack(tmp_path / "data", env, labels=labels).close()
    found = read_dataset(tmp_path / "data")
    values, specs = found.labels.values, {spec.name: spec for spec in found.labels.specs}
    lengths = np.array([len(steps) for steps in env.log])
    assert specs["length"].classes == ("3", "4") and specs["length"].kind == "class"
    np.testing.assert_array_equal(values["length"], lengths - 3)
    assert specs["long"].classes == ("False", "True") and values["long"].tolist() == (lengths > 3).astype(int).tolist()
    means = [
        np.mean(np.concatenate([np.pad(m, (0, 2 - len(m))) for _, ms in steps for m in ms.values()]))
        for steps in env.log
    ]
    np.testing.assert_allclose(values["mean_move"], means, atol=1e-6)
    assert specs["kind"].classes == ("old", "young") and values["kind"].tolist() == [[0, 1, 0]] * 6
    assert specs["left"].kind == "real" and values["left"].tolist() == [[0.5, 2.0, 0.0]] * 6
    assert specs["team"].classes == ("grey",) and specs["return_class"].kind == "quantile" and "progress" not in specs


def test_checkpoints_are_progress_and_hand_features_are_moments(tmp_path):
    with Recorder(tmp_path / "data", split=[1, 1, 1]) as recorder:
        for group in range(3):
            for checkpoint in (0, 5):
                recorder.record(Pack(), scripted, episodes=1, group=group, checkpoint=checkpoint)
    found = read_dataset(tmp_path / "data")
    assert found.rows.checkpoint.tolist() == [0, 5] * 3 and found.labels.values["progress"].tolist() == [0, 1] * 3
    assert found.labels.specs[-1].classes == ("checkpoint 0", "checkpoint 5")
    hand = dict(zip(found.hand.names, found.hand.values.T, strict=True))
    for row in range(6):
        place = found.batch.obs[row, :, [0, 2], 3][found.batch.mask[row][:, [0, 2]].T]
        np.testing.assert_allclose(hand["mean_place_0"][row], place.mean(), rtol=1e-4)
        np.testing.assert_allclose(hand["sd_place_0"][row], place.std(), rtol=1e-4)
        move = found.batch.actions[row, :, :, 1][found.batch.mask[row] & [True, False, True]]
        np.testing.assert_allclose(hand["mean_1"][row], move.mean(), rtol=1e-4, atol=1e-6)


def test_many_shards_are_the_same_data_set_as_one(tmp_path, monkeypatch):
    record_pack(tmp_path / "one").close()
    monkeypatch.setattr(shards, "SHARD_BYTES", 1500)
    record_pack(tmp_path / "many").close()
    assert len(present_shards(tmp_path / "one")) == 1 and len(present_shards(tmp_path / "many")) == 3
    one, many = (read_dataset(tmp_path / name) for name in ("one", "many"))
    for a, b in zip(jax.tree.leaves(one[:4]), jax.tree.leaves(many[:4]), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.split, many.split)
    assert one.labels.values["team_return"].tolist() == many.labels.values["team_return"].tolist()


def test_a_functional_environment_comes_back_step_by_step(tmp_path):
    with Recorder(tmp_path / "data", split=[1, 1, 1]) as recorder:
        for group in range(3):
            recorder.record(Grid(), dict.fromkeys(Grid.agents, choose), episodes=2, group=group)
    found = read_dataset(tmp_path / "data")
    obs, actions, mask = found.batch
    assert obs.shape == (6, 4, 2, 2) and found.action == ActionSpec("discrete", 3)
    np.testing.assert_array_equal(mask, np.broadcast_to(np.arange(4)[:, None] < [4, 2], (6, 4, 2)))
    np.testing.assert_array_equal(obs[:, :, 0, 1], np.broadcast_to(np.arange(4), (6, 4)))
    drift = obs[:, 1:, :, 0] - obs[:, :-1, :, 0] - (actions[:, :-1] - 1)
    assert 0.02 < np.abs(drift[:, :, 0]).mean() < 0.2, "an action moves the agent from its observation to the next one"
    np.testing.assert_allclose(found.outcomes.rewards[:, :-1, 0], -np.abs(obs[:, 1:, 0, 0]), rtol=1e-6)
    assert set(actions[mask].tolist()) == {0, 1, 2} and len({start.tobytes() for start in obs[:, 0]}) == 6
    assert not (actions[:, :2, 0] == actions[:, :2, 1]).all(), "each agent draws for itself"
    assert found.outcomes.terminated.tolist() == [[False, False, False, True]] * 6


def test_a_policy_is_told_of_a_new_episode(tmp_path):
    calls = []
    record_pack(tmp_path / "data", begin=lambda: calls.append(1))
    assert len(calls) == 6


def test_one_group_alone_is_recorded_to_be_embedded(tmp_path):
    with Recorder(tmp_path / "data") as recorder:
        recorder.record(Pack(), scripted, episodes=3, group=4)
    found = read_dataset(tmp_path / "data")
    assert found.split.tolist() == [2] * 3 and found.meta["recording"]["split"] == [0, 0, 1]
    assert "launch.embed" in (tmp_path / "data" / "README.md").read_text()
