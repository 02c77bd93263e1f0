"""Stored states come back for the rows that are asked for, from no more files than hold them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from data_gen.storage.dataset import digest, read_dataset, shard_path, write_shard
from data_gen.storage.shard import Shard
from data_gen.storage.states import read_states
from data_gen.trajectory import InputError
from tests.builders import B, T
from tests.data_gen.test_dataset import N_SHARDS, tiny_shard

NQ = 5


def states_of(index: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(100 + index)
    return {
        "qpos": rng.normal(size=(B, T, NQ)).astype(np.float32),
        "time": rng.integers(0, 9, (B, T)).astype(np.int32),
    }


def shard_with(index: int, states: dict[str, np.ndarray]) -> Shard:
    return tiny_shard(index)._replace(states=states)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for index in range(N_SHARDS):
        assert write_shard(tmp_path, index, N_SHARDS, shard_with(index, states_of(index)), {})
    return tmp_path


def test_rows_come_back_in_the_order_that_was_asked_for(root: Path) -> None:
    rows = np.array([2 * B + 1, 0, B, B - 1, 3 * B - 1, 0])
    read = read_states(root, rows)
    assert read.keys() == {"qpos", "time"}
    for name, values in read.items():
        stored = np.concatenate([states_of(index)[name] for index in range(N_SHARDS)])
        np.testing.assert_array_equal(values, stored[rows])
        assert values.dtype == stored.dtype
    empty = read_states(root, np.zeros(0, int))
    assert empty["qpos"].shape == (0, T, NQ) and empty["time"].shape == (0, T)


def test_only_the_states_of_the_shards_in_question_are_read(root: Path) -> None:
    def chunk(shard: int, array: str) -> Path:
        return shard_path(root, shard) / "arrays.zarr" / array / "c" / "0" / "0" / "0"

    chunk(0, "states/qpos").unlink()
    shutil.rmtree(shard_path(root, 1) / "arrays.zarr" / "obs")
    np.testing.assert_array_equal(read_states(root, np.array([B + 2]))["qpos"], states_of(1)["qpos"][[2]])
    with pytest.raises(InputError, match="states/qpos/c/0/0/0 is missing"):
        read_states(root, np.array([B + 2, B - 1]))
    chunk(2, "states/qpos").write_bytes(b"")
    with pytest.raises(InputError, match="states/qpos/c/0/0/0 was altered"):
        read_states(root, np.array([2 * B]))


def test_rows_out_of_range_are_named(root: Path) -> None:
    for row in (-1, N_SHARDS * B):
        with pytest.raises(InputError, match=f"no episode {row}; the data set has {N_SHARDS * B}"):
            read_states(root, np.array([0, row]))


def test_data_without_states(tmp_path: Path) -> None:
    write_shard(tmp_path, 0, 1, tiny_shard(0), {})
    assert read_states(tmp_path, np.array([1, 0])) == {}
    assert not (shard_path(tmp_path, 0) / "arrays.zarr" / "states").exists()
    with pytest.raises(InputError, match="holds no data set"):
        read_states(tmp_path / "nowhere", np.array([0]))


def test_states_change_nothing_else(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    plain = tmp_path_factory.mktemp("plain")
    for index in range(N_SHARDS):
        write_shard(plain, index, N_SHARDS, tiny_shard(index), {})
    with_states, without = read_dataset(root), read_dataset(plain)
    np.testing.assert_array_equal(with_states.batch.obs, without.batch.obs)
    assert with_states.meta.keys() == without.meta.keys()
    assert digest(root) != digest(plain)


def test_states_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for states in ({"qpos": np.zeros((B, T + 1, NQ))}, {"a/b": np.zeros((B, T))}, {"x": np.zeros(B)}):
        with pytest.raises(InputError, match=rf"state .* must begin with \({B}, {T}\)"):
            write_shard(tmp_path, 0, 1, shard_with(0, states), {})
    assert list(tmp_path.iterdir()) == []


def test_shards_with_other_states_do_not_mix(tmp_path: Path) -> None:
    write_shard(tmp_path, 0, 2, shard_with(0, states_of(0)), {})
    write_shard(tmp_path, 1, 2, tiny_shard(1), {})
    with pytest.raises(InputError, match="shard-00001 and .*shard-00000 do not hold the same states"):
        read_states(tmp_path, np.array([0]))
