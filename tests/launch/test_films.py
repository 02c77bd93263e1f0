"""From stored states to film strips: the rows, steps, body and colours that reach the renderer."""

from pathlib import Path

import numpy as np
import pytest

from data_gen.engines.film import NoRendering
from data_gen.storage.dataset import read_dataset, write_shard
from data_gen.trajectory import Dataset
from launch import films as films_module
from launch.films import films_of
from probes.report.films import pick_films
from tests.builders import B, T
from tests.data_gen.test_dataset import tiny_shard

NQ = 15  # Ant
N_SHARDS = 2


def recorded(root: Path, name: str = "mujoco", with_states: bool = True) -> tuple[Dataset, np.ndarray]:
    qpos = np.random.default_rng(0).normal(size=(N_SHARDS * B, T, NQ)).astype(np.float32)
    for index in range(N_SHARDS):
        shard = tiny_shard(
            index, domain={"name": name, "scenario": "Ant 4x2"}, recording={"split": [2, 1, 1], "seed": 0}
        )
        states = {"qpos": qpos[index * B : (index + 1) * B]} if with_states else {}
        write_shard(root, index, N_SHARDS, shard._replace(states=states), {})
    return read_dataset(root), qpos


def test_the_picked_steps_of_the_picked_episodes_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, stored = recorded(tmp_path)
    shots, asked = pick_films(found), []

    def draw(body, qpos, height, width, paint):
        asked.append((body.name, qpos, paint))
        return np.zeros((*qpos.shape[:2], height, width, 3), np.uint8)

    monkeypatch.setattr(films_module, "film", draw)
    films = films_of(tmp_path, found)
    assert films is not None and films.titles == shots.titles and films.absent == ""
    ((body, qpos, paint),) = asked
    assert body == "Ant"
    for k, row in enumerate(shots.rows):
        for f, step in enumerate(shots.steps[k]):
            np.testing.assert_array_equal(qpos[k, f], stored[row, step])
            assert films.seconds[k, f] == pytest.approx(0.05 * step)
            assert films.metres[k, f] == pytest.approx(stored[row, step, 0] - qpos[k, 0, 0])
    # Ant's actuators begin with leg 4; agents 0 to 3 drive legs 1 to 4.
    assert [len(np.unique(paint[pair], axis=0)) for pair in ([0, 1], [2, 3], [4, 5], [6, 7])] == [1] * 4
    np.testing.assert_allclose(paint[[2, 0]], np.array([[0x00, 0x72, 0xB2], [0xCC, 0x79, 0xA7]]) / 255)


def test_a_machine_without_a_graphics_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_):
        raise NoRendering("Nothing was rendered, because.")

    found, _ = recorded(tmp_path)
    monkeypatch.setattr(films_module, "film", cannot)
    films = films_of(tmp_path, found)
    assert films is not None and films.absent == "Nothing was rendered, because." and films.titles == ()


def test_other_data_has_no_films(tmp_path: Path) -> None:
    for name, with_states in (("tiny", True), ("mujoco", False)):
        found, _ = recorded(tmp_path / name, name, with_states)
        assert films_of(tmp_path / name, found) is None
