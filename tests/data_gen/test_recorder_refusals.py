"""What goes wrong while an environment is recorded has a message, and nothing is written."""

import numpy as np
import pytest
from gymnasium import spaces

from data_gen import Recorder
from data_gen.storage.dataset import digest
from data_gen.trajectory import InputError
from tests.data_gen.recorded import Grid, Pack, choose, record_pack, scripted


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
