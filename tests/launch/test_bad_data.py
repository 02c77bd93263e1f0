"""A data set that cannot be trusted ends a job with one paragraph and exit code 2, before anything is written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from data_gen.storage.store import read_group, read_manifest, write_group
from tests.launch.commands import SMALL_DATA, run


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("made")
    assert run("generate", *SMALL_DATA, "name=made", f"runs={runs}") == 0
    return runs / "made" / "data"


def rewrite(shard: Path, change: Callable[[dict], None]) -> None:
    """The same shard with other arrays, sound in every checksum."""
    dims = {name: tuple(entry["dims"]) for name, entry in read_manifest(shard)["arrays"].items()}
    arrays, attrs = read_group(shard)
    arrays |= {f"{g}/{n}": a for g in ("learner", "policies/actor") for n, a in read_group(shard, g)[0].items()}
    change(arrays)
    write_group(shard, {name: (dims[name], array) for name, array in arrays.items()}, attrs, replace=True)


def nan(data: Path) -> None:
    def change(arrays: dict) -> None:
        arrays["obs"][3, 4, 1, 2] = np.nan

    rewrite(data / "shard-00001", change)


def edit_manifest(data: Path) -> None:
    path = data / "shard-00000" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 99}))


def flip_a_byte(data: Path) -> None:
    chunk = next(
        file
        for file in sorted((data / "shard-00000/arrays.zarr/obs").rglob("*"))
        if file.is_file() and "json" not in file.name
    )
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)


def remove_a_chunk(data: Path) -> None:
    next(file for file in (data / "shard-00001/arrays.zarr/actions").rglob("0") if file.is_file()).unlink()


def nan_in_a_hand_feature(data: Path) -> None:
    rewrite(data / "shard-00000", lambda arrays: arrays["hand"].__setitem__((3, 2), np.nan))


def nan_in_a_reward(data: Path) -> None:
    rewrite(data / "shard-00000", lambda arrays: arrays["rewards"].__setitem__((3, 2, 0), np.nan))


DAMAGE = {
    "missing": (shutil.rmtree, "data"),
    "half the shards": (lambda data: shutil.rmtree(data / "shard-00001"), "1"),
    "no manifest": (lambda data: (data / "shard-00000/manifest.json").unlink(), "manifest.json"),
    "garbled manifest": (lambda data: (data / "shard-00000/manifest.json").write_text("{"), "manifest.json"),
    "another schema": (edit_manifest, "schema"),
    "a byte changed": (flip_a_byte, "arrays.zarr/obs"),
    "a chunk removed": (remove_a_chunk, "arrays.zarr/actions"),
    "NaN": (nan, "feature 2"),
    "NaN in a hand feature": (nan_in_a_hand_feature, "hand feature 'straightness'"),
    "NaN in a reward": (nan_in_a_reward, "rewards"),
}


@pytest.mark.parametrize(("damage", "said"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_data_end_a_job_at_once(
    made: Path, tmp_path: Path, capsys, damage: Callable[[Path], object], said: str
) -> None:
    data = tmp_path / "data"
    shutil.copytree(made, data)
    damage(data)
    for stage in ("train", "pipeline"):
        assert run(stage, f"data={data}", f"runs={tmp_path / 'runs'}") == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and said in error and "Traceback" not in error
    assert not (tmp_path / "runs").exists()
