"""What a user's environment did is what the data set holds, step by step; or a message, and nothing is written."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from mpe2 import simple_speaker_listener_v4, simple_spread_v3
from pettingzoo import ParallelEnv

from data_gen import Recorder
from data_gen.collecting import shards
from data_gen.storage.dataset import digest, present_shards, read_dataset
from data_gen.trajectory import ActionSpec, InputError


def uniform(env: ParallelEnv):
    """A policy for the team, all of whose randomness is what it is given."""

    def policy(observations, rng):
        return {agent: int(rng.integers(env.action_space(agent).n)) for agent in observations}

    return policy


class Logged:
    """A PettingZoo environment that keeps what went in and came out, by episode and step."""

    def __init__(self, env: ParallelEnv):
        self.env, self.possible_agents, self.log = env, env.possible_agents, []
        self.observation_space, self.action_space = env.observation_space, env.action_space

    @property
    def agents(self):
        return self.env.agents

    def reset(self, seed=None, options=None):
        self.last, infos = self.env.reset(seed=seed)
        self.log.append([])
        return self.last, infos

    def step(self, actions):
        observations, rewards, *rest = self.env.step(actions)
        self.log[-1].append(({k: v.copy() for k, v in self.last.items()}, actions, dict(rewards)))
        self.last = observations
        return observations, rewards, *rest


def record_spread(root: Path, seed: int = 0, env: Any = None, **settings: Any) -> None:
    env = env or simple_spread_v3.parallel_env(max_cycles=6)
    with Recorder(root, split=[2, 1, 1], seed=seed) as recorder:
        for group in range(4):
            recorder.record(env, uniform(env), episodes=2, group=group, **settings)


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


class Pack(ParallelEnv):
    """Dict and Tuple observations, moves of different widths; the cub leaves first, and the fox comes a step late."""

    metadata = {"name": "pack"}
    possible_agents = ["wolf", "cub", "fox"]
    seen = {
        "wolf": spaces.Dict({"place": spaces.Box(-9, 9, (2,)), "mood": spaces.Discrete(3, start=1)}),
        "cub": spaces.Tuple((spaces.MultiBinary(2), spaces.Box(-9, 9, (1, 2)))),
        "fox": spaces.Dict({"place": spaces.Box(-9, 9, (2,))}),
    }
    widths = {"wolf": 2, "cub": 1, "fox": 2}

    def __init__(self, spoil=None):
        self.spoil = spoil or (lambda t, observations, rewards: None)
        self.log = []

    def observation_space(self, agent):
        return self.seen[agent]

    def action_space(self, agent):
        return spaces.Box(-1, 1, (self.widths[agent],))

    def reset(self, seed=None, options=None):
        self.t, self.length, self.agents = 0, 3 + seed % 2, ["wolf", "cub"]
        for number, agent in enumerate(self.possible_agents):
            self.seen[agent].seed(seed + number)
        self.log.append([])
        return self._see(), {}

    def _see(self):
        self.now = {agent: self.seen[agent].sample() for agent in self.agents}
        return dict(self.now)

    def step(self, actions):
        self.log[-1].append((self.now, actions))
        acting, self.t = list(actions), self.t + 1
        over = self.t == self.length
        terminated = {agent: over or (agent == "cub" and self.t == 2) for agent in acting}
        self.agents = [agent for agent in self.agents if not terminated[agent]] + ["fox"] * (self.t == 1)
        observations, rewards = self._see(), {agent: float(self.t) for agent in acting}
        self.spoil(self.t, observations, rewards)
        return observations, rewards, terminated, dict.fromkeys(acting, False), {"left": self.length - self.t}


def scripted(observations, rng):
    return {agent: rng.normal(size=Pack.widths[agent]).astype(np.float32) for agent in observations}


def record_pack(root: Path, env: Pack | None = None, policy: Any = scripted, **settings: Any) -> Recorder:
    recorder = Recorder(root, split=[1, 1, 1])
    for group in range(3):
        recorder.record(env or Pack(), policy, episodes=2, group=group, **settings)
    return recorder


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
        np.testing.assert_allclose(hand["mean of place_0"][row], place.mean(), rtol=1e-4)
        np.testing.assert_allclose(hand["deviation of place_0"][row], place.std(), rtol=1e-4)
        move = found.batch.actions[row, :, :, 1][found.batch.mask[row] & [True, False, True]]
        np.testing.assert_allclose(hand["mean of action 1"][row], move.mean(), rtol=1e-4, atol=1e-6)


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


class Discrete(NamedTuple):
    n: int


class Box(NamedTuple):
    shape: tuple[int, ...]


class State(NamedTuple):
    place: jax.Array
    t: jax.Array


class Grid:
    """As JaxMARL's: functional, reset by a key, observations by agent, and the whole world's beside them."""

    agents = ["a", "b"]

    def observation_space(self, agent):
        return Box((2,))

    def action_space(self, agent):
        return Discrete(3)

    def reset(self, key):
        state = State(jax.random.normal(key, (2,)), jnp.int32(0))
        return self._see(state), state

    def _see(self, state):
        seen = {agent: jnp.stack([state.place[n], state.t.astype(float)]) for n, agent in enumerate(self.agents)}
        return seen | {"world_state": state.place}

    def step(self, key, state, actions):
        moves = jnp.stack([actions[agent] for agent in self.agents]) - 1
        state = State(state.place + moves + 0.1 * jax.random.normal(key, (2,)), state.t + 1)
        rewards = {agent: -jnp.abs(state.place[n]) for n, agent in enumerate(self.agents)}
        dones = {"a": state.t >= 4, "b": state.t >= 2, "__all__": state.t >= 4}
        return self._see(state), state, rewards, dones, {}


def choose(observation, key):
    return jax.random.randint(key, (), 0, 3)


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


def nan_seen(t, observations, rewards):
    if t == 2:
        observations["wolf"]["place"] = np.array([0, np.nan], np.float32)


def lost_seen(t, observations, rewards):
    observations.pop("wolf", None)


def other_shape(t, observations, rewards):
    observations["wolf"]["place"] = np.zeros(3)


def odd_mood(t, observations, rewards):
    observations["wolf"]["mood"] = 0


def nan_reward(t, observations, rewards):
    rewards["cub"] = np.nan


def no_reward(t, observations, rewards):
    rewards.pop("cub", None)


def crash(t, observations, rewards):
    if t == 2:
        raise ZeroDivisionError("in the environment")


SPOILED = {
    nan_seen: "Pack, group 7, checkpoint 2, episode 0, step 2, wolf: the observation is nan in 'place_1'",
    lost_seen: "step 1: wolf is there, but has no observation",
    other_shape: r"step 1, wolf: the observation.place has shape \(3,\); by its space it is \(2,\)",
    odd_mood: "step 1, wolf: the observation.mood is 0; by its space it is one of 1..3",
    nan_reward: "step 0, cub: the reward is nan",
    no_reward: "step 0, cub: there is no reward",
    crash: "in the environment",
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_what_goes_wrong_is_named_and_leaves_nothing(tmp_path, spoil):
    """The call that failed is as if it had not been made; what was recorded before is kept, on closing only."""
    recorder = record_pack(tmp_path / "data")
    with pytest.raises(ZeroDivisionError if spoil is crash else InputError, match=SPOILED[spoil]):
        recorder.record(Pack(spoil), scripted, episodes=2, group=7, checkpoint=2)
    assert not (tmp_path / "data").exists()
    recorder.close()
    record_pack(tmp_path / "same").close()
    assert digest(tmp_path / "data") == digest(tmp_path / "same")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "same"]


def test_interrupted_within_with_nothing_is_left(tmp_path):
    with pytest.raises(KeyboardInterrupt), Recorder(tmp_path / "data", split=[1, 1, 1]) as recorder:
        recorder.record(Pack(), scripted, episodes=2, group=0)
        assert [entry.name.startswith(".data.") for entry in tmp_path.iterdir()] == [True]
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    recorder = record_pack(tmp_path / "data")
    del recorder
    assert not list(tmp_path.iterdir()), "never closed"


def test_a_policy_is_told_of_a_new_episode(tmp_path):
    calls = []
    record_pack(tmp_path / "data", begin=lambda: calls.append(1))
    assert len(calls) == 6


class Turns(Pack):
    def reset(self, seed=None, options=None):
        pass


class Mute:
    def reset(self):
        pass


class Mixed(Pack):
    def action_space(self, agent):
        return spaces.Discrete(3) if agent == "cub" else spaces.Box(-1, 1, (2,))


class Wordy(Pack):
    def observation_space(self, agent):
        return spaces.Text(5)


class Endless(Pack):
    def step(self, actions):
        self.length = self.t + 9
        return super().step(actions)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"group": -1}, "group=-1 must be a whole number of at least 0"),
        ({"episodes": 0}, "episodes=0 must be a whole number of at least 1"),
        ({"checkpoint": -2}, "checkpoint=-2 must be"),
        ({"max_steps": True}, "max_steps=True must be"),
        ({"env": Turns()}, "reset returned NoneType.*aec_to_parallel"),
        ({"env": Mute()}, "reset takes neither a seed .* nor a key"),
        ({"env": 3}, "int is no environment"),
        ({"env": Mixed()}, "discrete for all agents or for none; here are wolf continuous, cub discrete"),
        ({"env": Wordy()}, "Wordy: observation_space of wolf is a space of kind Text"),
        ({"policy": {"wolf": lambda seen, rng: np.zeros(2)}}, "no policy for cub"),
        ({"policy": lambda seen, rng: np.zeros(2)}, "policy returned ndarray"),
        ({"policy": lambda seen, rng: {}}, "gave no action for wolf"),
        ({"policy": lambda seen, rng: dict.fromkeys(seen, np.zeros(3))}, r"wolf: the action has shape \(3,\)"),
        ({"policy": lambda seen, rng: {"wolf": [np.inf, 0], "cub": [0]}}, "wolf: the action is inf in '0'"),
        ({"labels": {"return_class": 1}}, "one that the recorder makes itself"),
        ({"labels": {"a/b": 1}}, "a name is letters"),
        ({"labels": {"kind": ["x", "y"]}}, r"label 'kind' has shape \(2,\); .* for each of 3 agents"),
        ({"labels": {"kind": [1, [2, 3], 4]}}, "label 'kind' is a list of lists"),
        ({"labels": {"kind": {"wolf": 1}}}, "label 'kind' has no value for cub"),
        ({"labels": {"kind": None}}, "label 'kind' is NoneType"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, given, match):
    recorder = Recorder(tmp_path / "data", split=[1, 1, 1])
    env, policy = given.pop("env", None) or Pack(), given.pop("policy", scripted)
    with pytest.raises(InputError, match=match):
        recorder.record(env, policy, **{"episodes": 1, "group": 0, **given})
    with pytest.raises(InputError, match="nothing was recorded"):
        recorder.close()


def test_an_episode_without_an_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("data_gen.collecting.episode.ENDLESS", 12)
    with pytest.raises(InputError, match="episode 0: no end after 12 steps. Give max_steps"):
        record_pack(tmp_path / "data", Endless())


def test_other_teams_and_labels_are_refused_and_few_groups_can_be_added_to(tmp_path):
    recorder = Recorder(tmp_path / "data", split=[1, 1, 1])
    recorder.record(Pack(), scripted, episodes=1, group=0, labels={"kind": 1})
    with pytest.raises(InputError, match="Grid has other agents or observations than Pack"):
        recorder.record(Grid(), dict.fromkeys(Grid.agents, choose), episodes=1, group=1, labels={"kind": 1})
    with pytest.raises(InputError, match="label 'kind' is not given to all episodes"):
        recorder.record(Pack(), scripted, episodes=1, group=1)
    with pytest.raises(InputError, match="has 1 group"):
        recorder.close()
    for group in (1, 2):
        recorder.record(Pack(), scripted, episodes=1, group=group, labels={"kind": 2.5})
    with pytest.raises(InputError, match="label 'kind' is of kinds float, int"):
        recorder.close()
    assert not (tmp_path / "data").exists()


def test_a_folder_in_use_and_a_split_that_is_none_are_refused(tmp_path):
    record_pack(tmp_path / "data").close()
    with pytest.raises(InputError, match="is not empty"):
        Recorder(tmp_path / "data", split=[1, 1, 1])
    for split in ([1, 1], [1, 0, 1], [0.5, 0.25, 0.25]):
        with pytest.raises(InputError, match="three whole numbers"):
            Recorder(tmp_path / "other", split=split)
    recorder = record_pack(tmp_path / "other")
    recorder.close()
    recorder.close()
    with pytest.raises(InputError, match="was closed"):
        recorder.record(Pack(), scripted, episodes=1, group=0)
