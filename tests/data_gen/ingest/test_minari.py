"""Data sets written by Minari come back as they were written, or a message says which file is wrong and where."""

import json
import warnings
from pathlib import Path
from typing import Any

import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatten
from minari.data_collector import EpisodeBuffer

from data_gen.ingest.readers.minari import Minari, open_minari
from data_gen.trajectory import ActionSpec, InputError

FORMATS = ("hdf5", "arrow", "parquet")
LENGTHS = (4, 1, 6)
WIDE = spaces.Dict(
    {"goal": spaces.Discrete(3, start=1), "place": spaces.Box(-9, 9, (2,)), "touch": spaces.MultiBinary(2)}
)
NARROW = spaces.Dict({"place": spaces.Box(-9, 9, (2,))})
TEAM = spaces.Dict({"hare": WIDE, "hound": NARROW})
MOVES = spaces.Dict({"hare": spaces.Box(-1, 1, (2,)), "hound": spaces.Box(-1, 1, (1,))})
CHOICES = spaces.Dict({"hare": spaces.Discrete(5), "hound": spaces.Discrete(3, start=2)})


def samples(space: spaces.Space, n: int) -> Any:
    """Values of a space as an episode buffer holds them: one array for each leaf."""
    if isinstance(space, spaces.Dict):
        return {key: samples(part, n) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(samples(part, n) for part in space)
    return np.stack([np.asarray(space.sample()) for _ in range(n)])


def at(values: Any, t: int) -> Any:
    if isinstance(values, dict):
        return {key: at(part, t) for key, part in values.items()}
    return tuple(at(part, t) for part in values) if isinstance(values, tuple) else values[t]


def episode(seen: spaces.Space, done: spaces.Space, n: int, cut: bool = False) -> EpisodeBuffer:
    last = np.arange(n) == n - 1
    return EpisodeBuffer(
        observations=samples(seen, n + 1),
        actions=samples(done, n),
        rewards=np.random.default_rng(n).normal(size=n).tolist(),
        terminations=(last & (not cut)).tolist(),
        truncations=(last & cut).tolist(),
        infos={"noise": np.zeros((n + 1, 2))},
    )


def write(root: Path, monkeypatch, form: str, episodes: list[EpisodeBuffer], seen=TEAM, done=MOVES) -> Path:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Minari asks for an author and a link
        minari.create_dataset_from_buffers(
            "own/play-v0", episodes, observation_space=seen, action_space=done, data_format=form
        )
    return root / "own" / "play-v0"


def read(path: Path):
    reader = open_minari(Minari(str(path)))
    return reader.layout, list(reader.recordings())


@pytest.fixture(autouse=True)
def seeded():
    for number, space in enumerate((TEAM, MOVES, CHOICES)):
        space.seed(number)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("done", [MOVES, CHOICES], ids=["moves", "choices"])
def test_a_team_comes_back_as_minari_wrote_it(tmp_path, monkeypatch, form, done):
    """Action t goes with the observation before it; the observation after the last action is left out."""
    written = [episode(TEAM, done, n, cut=n == 6) for n in LENGTHS]
    path = write(tmp_path, monkeypatch, form, written, done=done)
    layout, found = read(path)
    assert layout.agents == ("hare", "hound")
    assert layout.features == ("goal_0", "goal_1", "goal_2", "place_0", "place_1", "touch_0", "touch_1")
    assert layout.feature_mask.obs.tolist() == [[True] * 7, [False, False, False, True, True, False, False]]
    assert [one.terminated for one in found] == [True, True, False]
    for one, own, n in zip(found, written, LENGTHS, strict=True):
        assert one.features.shape == (n, 2, 7) and one.present.all() and one.time.tolist() == list(range(n))
        for t in range(n):
            hare, hound = (at(own.observations[agent], t) for agent in ("hare", "hound"))
            np.testing.assert_array_equal(one.features[t, 0], flatten(WIDE, hare))
            np.testing.assert_array_equal(one.features[t, 1], [0, 0, 0, *hound["place"], 0, 0])
            np.testing.assert_array_equal(one.rewards[t], np.float32([own.rewards[t]] * 2))
        if done is MOVES:
            np.testing.assert_array_equal(one.actions[:, 0], own.actions["hare"])
            np.testing.assert_array_equal(one.actions[:, 1], np.pad(own.actions["hound"], [(0, 0), (0, 1)]))
        else:
            np.testing.assert_array_equal(one.actions, np.stack([own.actions["hare"], own.actions["hound"] - 2], 1))
    if done is MOVES:
        assert layout.action_names == ("0", "1") and layout.feature_mask.actions.tolist() == [[True] * 2, [True, False]]
    else:
        assert layout.action == ActionSpec("discrete", 5) and layout.feature_mask.actions.all()


@pytest.mark.parametrize("form", FORMATS)
def test_one_agent_comes_back_as_minari_wrote_it(tmp_path, monkeypatch, form):
    """The order of Minari's own reader; spaces that nest, choices in several, and a number without an axis."""
    seen = spaces.Tuple((spaces.MultiDiscrete([2, 3], start=[0, 1]), spaces.Box(-1, 1, (2, 2)), spaces.Box(-1, 1, ())))
    done = spaces.Box(-1, 1, (2,))
    path = write(tmp_path, monkeypatch, form, [episode(seen, done, n) for n in LENGTHS], seen, done)
    layout, found = read(path / "data")
    assert layout.agents == ("agent_0",) and layout.feature_mask is None
    assert layout.features[:6] == ("0_0_0", "0_0_1", "0_1_0", "0_1_1", "0_1_2", "1_0") and layout.features[-1] == "2"
    for one, own in zip(found, minari.load_dataset("own/play-v0"), strict=True):
        assert len(own.observations[0]) == len(own.actions) + 1 == len(one.time) + 1
        each = [flatten(seen, at(own.observations, t)) for t in range(len(own.actions))]
        np.testing.assert_array_equal(one.features[:, 0], np.float32(each))
        np.testing.assert_array_equal(one.actions[:, 0], own.actions)


def test_an_episode_without_a_step_is_named(tmp_path, monkeypatch):
    path = write(tmp_path, monkeypatch, "hdf5", [episode(TEAM, MOVES, n) for n in LENGTHS])
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        for name in ("rewards", "terminations", "truncations", "actions/hare", "actions/hound"):
            file[f"episode_0/{name}"].resize(0, axis=0)
    reader = open_minari(Minari(str(path)))
    for _ in range(2):
        found = list(reader.recordings())
        assert [one.name for one in found] == ["episode_1", "episode_2"]
        assert "episode 0 has no action" in found[0].dropped[0] and found[1].dropped == ()


def test_home_is_expanded_and_other_folders_are_refused(tmp_path, monkeypatch):
    write(tmp_path, monkeypatch, "hdf5", [episode(TEAM, MOVES, 3)])
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(read(Path("~/own/play-v0"))[1]) == 1
    for path, match in (("nothing", "is no folder"), ("own", "no metadata.json")):
        with pytest.raises(InputError, match=match):
            read(tmp_path / path)


def drop_leaf(file):
    del file["episode_1/observations/hare/place"]


def text(file):
    del file["episode_1/actions/hound"]
    file["episode_1/actions/hound"] = np.array([b"left"])


def short(file):
    file["episode_2/observations/hound/place"].resize(6, axis=0)


def wider(file):
    del file["episode_0/observations/hound/place"]
    file["episode_0/observations/hound/place"] = np.zeros((5, 3))


def two_in_one(file):
    file["episode_2/terminations"][2] = True


def no_such_goal(file):
    file["episode_2/observations/hare/goal"][3] = 4


def drop_episode(file):
    del file["episode_1"]


def no_rewards(file):
    del file["episode_1/rewards"]


def leaf_for_group(file):
    del file["episode_1/observations/hare"]
    file["episode_1/observations/hare"] = np.zeros(2)


SPOILED = {
    drop_leaf: "episode_1/observations/hare/place is damaged",
    text: r"episode_1/actions/hound holds \|S4, which is not numbers",
    short: r"episode_2/observations/hound.place has shape \(6, 2\); by its space it is \(7, 2\)",
    wider: r"episode_0/observations/hound.place has shape \(5, 3\); by its space it is \(5, 2\)",
    two_in_one: "episode_2/terminations is set at step 2 of 6",
    no_such_goal: r"episode_2/observations/hare.goal is 4 at \[3\]; by its space it is one of 1\.\.3",
    drop_episode: "holds 2 episodes, but its metadata.json says 3",
    no_rewards: "episode_1/rewards is damaged",
    leaf_for_group: "episode_1/observations/hare/.* is damaged",
}


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_spoiled_file_is_named_with_its_place(tmp_path, monkeypatch, spoil):
    path = write(tmp_path, monkeypatch, "hdf5", [episode(TEAM, MOVES, n) for n in LENGTHS])
    with h5py.File(path / "data" / "main_data.hdf5", "a") as file:
        spoil(file)
    with pytest.raises(InputError, match=SPOILED[spoil]) as told:
        read(path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("form", FORMATS)
def test_truncated_files_are_named(tmp_path, monkeypatch, form):
    """Each file in turn: cut to half, empty, or gone."""
    path = write(tmp_path, monkeypatch, form, [episode(TEAM, MOVES, n) for n in LENGTHS])
    for file in sorted(file for file in path.rglob("*.*") if file.suffix != ".json" or file.parent.name == "data"):
        content = file.read_bytes()
        for damage in (content[: len(content) // 2], b"", None):
            file.unlink() if damage is None else file.write_bytes(damage)
            with pytest.raises(InputError) as told:
                read(path)
            assert str(path) in str(told.value)
        file.write_bytes(content)
    assert len(read(path)[1]) == len(LENGTHS)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"observation_space": None}, "observation_space is not JSON"),
        ({"action_space": json.dumps({"type": "Text"})}, "action_space is a space of kind Text"),
        ({"action_space": json.dumps({"type": "Box"})}, "action_space is not a space .*shape"),
        ({"data_format": "csv"}, "data_format 'csv' is not hdf5"),
        ({"total_episodes": 0}, "holds 3 episodes, but its metadata.json says 0"),
    ],
)
def test_metadata_that_does_not_fit(tmp_path, monkeypatch, change, match):
    path = write(tmp_path, monkeypatch, "hdf5", [episode(TEAM, MOVES, n) for n in LENGTHS])
    file = path / "data" / "metadata.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(InputError, match=match):
        read(path)


@pytest.mark.parametrize(
    ("done", "match"),
    [
        (spaces.Dict({"hare": spaces.Box(-1, 1, (1,)), "fox": spaces.Box(-1, 1, (1,))}), "'fox' is a key of one space"),
        (
            spaces.Dict({"hare": spaces.Box(-1, 1, (1,)), "hound": spaces.Discrete(2)}),
            "discrete for all agents or for none",
        ),
        (spaces.Dict({"hare": spaces.MultiDiscrete([2, 2]), "hound": spaces.Discrete(2)}), "several choices at once"),
    ],
    ids=["other agents", "mixed", "several choices"],
)
def test_spaces_that_make_no_team(tmp_path, monkeypatch, done, match):
    path = write(tmp_path, monkeypatch, "hdf5", [episode(TEAM, done, 3)], done=done)
    with pytest.raises(InputError, match=match):
        read(path)
