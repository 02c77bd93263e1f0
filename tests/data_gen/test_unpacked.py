"""A data set that is read episode by episode gives what it gives when it is read whole."""

import os
from pathlib import Path

import numpy as np
import pytest

from data_gen.storage import dataset, unpacked
from data_gen.storage.dataset import read_dataset, shard_path, write_shard
from data_gen.storage.unpacked import open_dataset
from data_gen.trajectory import ActionSpec, InputError, TrajectoryBatch, take
from tests.data_gen.test_dataset import CONTINUOUS, DISCRETE, N_SHARDS, tiny_shard


def written(root: Path, action: ActionSpec = CONTINUOUS) -> Path:
    for index in range(N_SHARDS):
        write_shard(root, index, N_SHARDS, tiny_shard(index, action), {})
    return root


def same(found: TrajectoryBatch, want: TrajectoryBatch) -> bool:
    pairs = list(zip(found, want, strict=True))
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("action", [CONTINUOUS, DISCRETE], ids=lambda action: action.kind)
def test_an_open_data_set_gives_what_a_read_one_holds(tmp_path: Path, action: ActionSpec) -> None:
    root = written(tmp_path / "data", action)
    whole, found = read_dataset(root), open_dataset(root)
    assert len(found.batch) == len(whole.split) == 18
    assert found.action == whole.action
    for a, b in zip(
        [*found.rows, found.split, *found.features], [*whole.rows, whole.split, *whole.features], strict=True
    ):
        np.testing.assert_array_equal(a, b)
    rows = np.array([17, 3, 3, 0, 11], np.int32)
    assert same(found.batch.take(rows), take(whole.batch, rows))
    part = found.batch.part(np.array([9, 1, 16], np.int32))
    assert len(part) == 3
    assert same(part.take(np.array([2, 0], np.int32)), take(whole.batch, np.array([16, 9], np.int32)))
    last = part.part(np.array([2], np.int32))
    assert same(last.take(np.zeros(1, np.int32)), take(whole.batch, np.array([16], np.int32)))


def test_chunks_of_a_shard_come_in_order(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("data_gen.storage.store.CHUNK_BYTES", 700)  # two episodes of observations
    root = written(tmp_path / "data")
    assert len(list((shard_path(root, 0) / "arrays.zarr" / "obs" / "c").iterdir())) == 3
    rows = np.arange(18, dtype=np.int32)
    assert same(open_dataset(root).batch.take(rows), read_dataset(root).batch)


def test_the_copy_is_made_once_and_anew_for_other_data(tmp_path: Path) -> None:
    root = written(tmp_path / "data")
    open_dataset(root)
    made = (root / "unpacked" / "obs").stat().st_ino
    open_dataset(root)
    assert (root / "unpacked" / "obs").stat().st_ino == made
    other = written(tmp_path / "other", DISCRETE)
    (root / "unpacked").rename(other / "unpacked")
    rows = np.arange(18, dtype=np.int32)
    assert same(open_dataset(other).batch.take(rows), read_dataset(other).batch)


def test_a_copy_that_another_process_made_first_stays(tmp_path: Path, monkeypatch) -> None:
    root, check = written(tmp_path / "data"), unpacked._check_values
    ours: list[int] = []

    def overtaken(*given) -> None:
        check(*given)
        if not ours:
            ours.append(0)
            open_dataset(root)
            ours.append((root / "unpacked" / "obs").stat().st_ino)

    monkeypatch.setattr(unpacked, "_check_values", overtaken)
    found = open_dataset(root)
    assert (root / "unpacked" / "obs").stat().st_ino == ours[1]
    assert same(found.batch.take(np.arange(18, dtype=np.int32)), read_dataset(root).batch)
    assert not list(root.glob(".*"))


def test_a_copy_that_was_cut_is_refused(tmp_path: Path) -> None:
    root = written(tmp_path / "data")
    found = open_dataset(root)
    os.truncate(root / "unpacked" / "obs", 1000)
    with pytest.raises(InputError, match="obs ends before episode 17.*remove"):
        found.batch.take(np.array([0, 17], np.int32))
    with pytest.raises(InputError, match="obs has 1000 bytes and must have 6048"):
        open_dataset(root)


def test_a_damaged_shard_leaves_no_copy(tmp_path: Path) -> None:
    root = written(tmp_path / "data")
    file = next((shard_path(root, 1) / "arrays.zarr" / "mask" / "c").rglob("0"))
    file = file if file.is_file() else next(one for one in file.rglob("*") if one.is_file())
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    with pytest.raises(InputError, match="altered after it was written"):
        open_dataset(root)
    assert {entry.name for entry in root.iterdir()} == {shard_path(root, index).name for index in range(N_SHARDS)}


def test_a_value_that_is_not_finite_is_refused_before_training(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(dataset, "check_batch", lambda *given: None)
    shard = tiny_shard(1)
    shard.batch.obs[4, 1, 2, 3] = np.nan
    for index in range(N_SHARDS):
        write_shard(tmp_path, index, N_SHARDS, shard if index == 1 else tiny_shard(index), {})
    with pytest.raises(InputError, match="obs is nan at episode 10, step 1, agent 2, feature 3"):
        open_dataset(tmp_path)
    assert not (tmp_path / "unpacked").exists()


def test_a_full_disk_is_said_before_anything_is_copied(tmp_path: Path, monkeypatch) -> None:
    root = written(tmp_path / "data")
    monkeypatch.setattr("data_gen.storage.unpacked.shutil.disk_usage", lambda path: type("Usage", (), {"free": 5}))
    with pytest.raises(InputError, match="room for an uncompressed copy"):
        open_dataset(root)
