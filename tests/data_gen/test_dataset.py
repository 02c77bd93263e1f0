"""A data set comes back as it was written, whole, or a message says what is wrong with it."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray

from data_gen.storage.dataset import digest, present_shards, read_dataset, shard_path, write_shard
from data_gen.storage.shard import Shard
from data_gen.storage.store import read_manifest
from data_gen.trajectory import (
    SPLITS,
    ActionSpec,
    Features,
    InputError,
    Labels,
    LabelSpec,
    Outcomes,
    RowIndex,
    TrajectoryBatch,
)
from tests.builders import DO, B, N, T, tiny_batch

CONTINUOUS, DISCRETE = ActionSpec("continuous", 2), ActionSpec("discrete", 5)
SPECS = (
    LabelSpec(name="return_class", source="team_return", kind="quantile", bins=3),
    LabelSpec(name="goal", source="goal", kind="class", classes=("north", "south", "none")),
    LabelSpec(name="hill", source="hill", kind="class", classes=("low", "high")),
)
SEEDS, UPDATES, N_SHARDS = 2, 8, 3


def tiny_shard(index: int, action: ActionSpec = CONTINUOUS, **meta: object) -> Shard:
    """Two training seeds of three episodes each; every value depends on the shard."""
    rng = np.random.default_rng(index)
    values = {
        "team_return": rng.normal(size=B).astype(np.float32),
        "goal": rng.integers(0, 3, B).astype(np.int32),
        "hill": rng.integers(0, 2, (B, N)).astype(np.int32),
    }
    numbers = np.arange(B, dtype=np.int32)
    return Shard(
        batch=tiny_batch(action, seed=index),
        rows=RowIndex(
            episode=index * B + numbers,
            group=index * SEEDS + numbers // (B // SEEDS),
            checkpoint=numbers % 3,
            t0=np.zeros(B, np.int32),
        ),
        outcomes=Outcomes(
            rewards=rng.normal(size=(B, T, N)).astype(np.float32),
            terminated=rng.random((B, T)) < 0.1,
            truncated=rng.random((B, T)) < 0.1,
        ),
        labels=Labels(values=values, specs=SPECS),
        hand=Features(values=rng.normal(size=(B, 5)).astype(np.float32), names=("a", "b", "c", "d", "e")),
        policies={"actor/w": rng.normal(size=(SEEDS, 4, 3, 2)).astype(np.float32), "scale": np.ones((SEEDS, 4))},
        curve=rng.normal(size=(SEEDS, UPDATES)).astype(np.float32),
        action=action,
        meta={"domain": {"name": "tiny"}, "recording": {"split": [3, 1, 2], "seed": 0}, "position": (0, 1), **meta},
    )


def write_all(root: Path, action: ActionSpec = CONTINUOUS) -> None:
    for index in range(N_SHARDS):
        assert write_shard(root, index, N_SHARDS, tiny_shard(index, action), {"revision": f"r{index}"})


@pytest.mark.parametrize("action", [CONTINUOUS, DISCRETE])
def test_comes_back_as_written(tmp_path: Path, action: ActionSpec):
    write_all(tmp_path, action)
    read = read_dataset(tmp_path)
    shards = [tiny_shard(index, action) for index in range(N_SHARDS)]
    for field in ("batch", "rows", "outcomes"):
        for name in getattr(shards[0], field)._fields:
            expected = np.concatenate([np.asarray(getattr(getattr(s, field), name)) for s in shards])
            got = getattr(getattr(read, field), name)
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    for name in shards[0].labels.values:
        np.testing.assert_array_equal(read.labels.values[name], np.concatenate([s.labels.values[name] for s in shards]))
    assert read.labels.specs == SPECS and read.action == action
    np.testing.assert_array_equal(read.hand.values, np.concatenate([s.hand.values for s in shards]))
    assert read.hand.names == ("a", "b", "c", "d", "e")
    np.testing.assert_array_equal(read.meta["curves"], np.concatenate([s.curve for s in shards]))
    assert read.meta["provenance"] == [{"revision": f"r{index}"} for index in range(N_SHARDS)]
    assert read.meta["position"] == [0, 1] and read.meta["domain"] == {"name": "tiny"}
    assert "policies" not in read.meta


def test_the_split_is_by_group(tmp_path: Path):
    write_all(tmp_path)
    read = read_dataset(tmp_path)
    groups = [set(read.rows.group[read.rows_of(name)].tolist()) for name in SPLITS]
    assert [len(found) for found in groups] == [3, 1, 2] and len(set.union(*groups)) == 6


def test_present_shards_are_whole_ones(tmp_path: Path):
    assert present_shards(tmp_path / "nowhere") == []
    for index in (2, 0):
        write_shard(tmp_path, index, N_SHARDS, tiny_shard(index), {})
    (tmp_path / ".shard-00001.host.1.0123abcd.tmp").mkdir()
    (tmp_path / "shard-1").mkdir()
    assert present_shards(tmp_path) == [0, 2]


def test_no_data_set(tmp_path: Path):
    with pytest.raises(InputError, match="holds no data set .*run generate first"):
        read_dataset(tmp_path)


def test_an_incomplete_set_names_what_is_missing(tmp_path: Path):
    write_shard(tmp_path, 1, 4, tiny_shard(1), {})
    write_shard(tmp_path, 3, 4, tiny_shard(3), {})
    message = "2 of 4 shards are there; missing shard-00000, shard-00002. Run generate again"
    for read in (read_dataset, digest):
        with pytest.raises(InputError, match=message):
            read(tmp_path)


def test_shards_of_two_recordings_do_not_mix(tmp_path: Path):
    write_shard(tmp_path, 0, 2, tiny_shard(0, learner={"updates": 10}), {})
    write_shard(tmp_path, 1, 2, tiny_shard(1, learner={"updates": 20}), {})
    with pytest.raises(InputError, match="meta.learner.updates is 20 and 10"):
        read_dataset(tmp_path)


def test_shards_of_another_number_do_not_mix(tmp_path: Path):
    write_shard(tmp_path, 0, 2, tiny_shard(0), {})
    for index in (1, 2):
        write_shard(tmp_path, index, 3, tiny_shard(index), {})
    with pytest.raises(InputError, match="one of 2 shards, but .* also holds shard-00002"):
        read_dataset(tmp_path)


def test_shards_of_other_shapes_do_not_mix(tmp_path: Path):
    write_shard(tmp_path, 0, 2, tiny_shard(0), {})
    other = tiny_shard(1)
    obs, actions, mask = other.batch
    longer = TrajectoryBatch(obs=np.concatenate([obs, obs], axis=-1), actions=actions, mask=mask)
    write_shard(tmp_path, 1, 2, other._replace(batch=longer), {})
    with pytest.raises(InputError, match=re.escape(f"obs is float32{[B, T, N, 2 * DO]}")):
        read_dataset(tmp_path)


def test_an_episode_stored_twice_is_refused(tmp_path: Path):
    write_shard(tmp_path, 0, 2, tiny_shard(0), {})
    write_shard(tmp_path, 1, 2, tiny_shard(0), {})
    with pytest.raises(InputError, match=f"episode 0 from step 0 is stored 2 times, and {B} episode"):
        read_dataset(tmp_path)


def test_damage_is_found(tmp_path: Path):
    write_all(tmp_path)
    (shard_path(tmp_path, 1) / "arrays.zarr" / "rewards" / "c" / "0" / "0" / "0").unlink()
    with pytest.raises(InputError, match="rewards/c/0/0/0 is missing"):
        read_dataset(tmp_path)


def test_damage_among_the_policies_is_found_too(tmp_path: Path):
    write_all(tmp_path)
    (shard_path(tmp_path, 2) / "arrays.zarr" / "policies" / "scale" / "c" / "0" / "0").write_bytes(b"")
    with pytest.raises(InputError, match="array 'policies/scale'"):
        read_dataset(tmp_path)


def test_unsound_shards_are_not_written(tmp_path: Path):
    shard = tiny_shard(0)
    obs, actions, mask = (np.array(field) for field in shard.batch)
    obs[1, 0, 0, 2] = np.nan
    with pytest.raises(InputError, match="obs is nan at episode 1, step 0, agent 0, feature 2"):
        write_shard(tmp_path, 0, 1, shard._replace(batch=TrajectoryBatch(obs, actions, mask)), {})
    with pytest.raises(InputError, match=r"shard 3 is outside 0\.\.2"):
        write_shard(tmp_path, 3, 3, tiny_shard(3), {})
    assert list(tmp_path.iterdir()) == []


def test_a_label_without_its_source_is_refused(tmp_path: Path):
    shard = tiny_shard(0)
    values = {name: array for name, array in shard.labels.values.items() if name != "team_return"}
    write_shard(tmp_path, 0, 1, shard._replace(labels=Labels(values=values, specs=SPECS)), {})
    with pytest.raises(InputError, match="'return_class' is made from 'team_return', which is not stored"):
        read_dataset(tmp_path)


def test_a_label_cut_within_another_comes_back_and_other_labels_are_stored_as_before(tmp_path: Path):
    shard = tiny_shard(0, recording={"split": [1, 1, 1], "seed": 0})
    shard = shard._replace(rows=shard.rows._replace(group=np.arange(B, dtype=np.int32) // 2))
    specs = (SPECS[0]._replace(within="goal"), *SPECS[1:])
    write_shard(tmp_path / "a", 0, 1, shard._replace(labels=shard.labels._replace(specs=specs)), {})
    assert read_dataset(tmp_path / "a").labels.specs == specs
    write_shard(tmp_path / "b", 0, 1, shard, {})
    stored = read_manifest(shard_path(tmp_path / "b", 0))["attrs"]["label_specs"]
    assert [sorted(spec) for spec in stored] == [["bins", "classes", "kind", "name", "source"]] * len(SPECS)
    assert digest(tmp_path / "a") != digest(tmp_path / "b")
    specs = (SPECS[0]._replace(within="layout"), *SPECS[1:])
    write_shard(tmp_path / "c", 0, 1, shard._replace(labels=shard.labels._replace(specs=specs)), {})
    with pytest.raises(InputError, match="'return_class' is made from 'layout', which is not stored"):
        read_dataset(tmp_path / "c")


def test_a_set_without_a_split_is_refused(tmp_path: Path):
    write_shard(tmp_path, 0, 1, tiny_shard(0, recording={"seed": 0}), {})
    with pytest.raises(InputError, match="names no split"):
        read_dataset(tmp_path)


def test_many_jobs_write_at_once_and_the_second_copy_is_discarded(tmp_path: Path):
    jobs = [index % N_SHARDS for index in range(4 * N_SHARDS)]
    with ThreadPoolExecutor(8) as pool:
        wrote = list(pool.map(lambda k: write_shard(tmp_path, k, N_SHARDS, tiny_shard(k), {}), jobs))
    assert sum(wrote) == N_SHARDS
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [f"shard-{k:05d}" for k in range(N_SHARDS)]
    assert len(read_dataset(tmp_path).rows.episode) == N_SHARDS * B


def test_a_second_copy_from_other_settings_is_an_error(tmp_path: Path):
    write_shard(tmp_path, 0, 1, tiny_shard(0), {"revision": "one"})
    assert not write_shard(tmp_path, 0, 1, tiny_shard(0), {"revision": "two"})
    with pytest.raises(InputError, match="meta.learner is None and {'updates': 3}"):
        write_shard(tmp_path, 0, 1, tiny_shard(0, learner={"updates": 3}), {})


def test_the_digest_names_the_data_and_not_who_made_it(tmp_path: Path):
    write_all(tmp_path / "a")
    for index in reversed(range(N_SHARDS)):
        write_shard(tmp_path / "b", index, N_SHARDS, tiny_shard(index), {"revision": "other"})
        write_shard(tmp_path / "c", index, N_SHARDS, tiny_shard(index + (index == 1)), {})
    assert digest(tmp_path / "a") == digest(tmp_path / "b") != digest(tmp_path / "c")


def code_of(page: str) -> str:
    """The Python lines of a page in docs/."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text()
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def test_xarray_opens_the_subgroups(tmp_path: Path):
    write_all(tmp_path)
    path = shard_path(tmp_path, 0) / "arrays.zarr"
    for group, name, expected in (("policies/actor", "w", "actor/w"), ("policies", "scale", "scale")):
        with xarray.open_zarr(path, group=group, consolidated=False) as opened:
            np.testing.assert_array_equal(opened[name].values, tiny_shard(0).policies[expected])


def test_the_lines_in_the_docs_run(tmp_path: Path):
    write_all(tmp_path)
    names: dict[str, object] = {}
    exec(code_of("store.md").replace("runs/hill_climbing/data", str(tmp_path)), names)
    whole = names["whole"]
    assert isinstance(whole, xarray.Dataset)
    read = read_dataset(tmp_path)
    np.testing.assert_array_equal(whole["obs"].values, np.asarray(read.batch.obs))
    np.testing.assert_array_equal(whole["episode"].values, read.rows.episode)
    np.testing.assert_array_equal(whole["label_hill"].values, read.labels.values["hill"])
    assert whole["obs"].dims == ("episode", "step", "agent", "obs_dim")
    assert whole["label_hill"].dims == ("episode", "agent") and whole["label_goal"].dims == ("episode",)
    whole.close()
