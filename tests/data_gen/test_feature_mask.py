"""Which features are real: kept by the store, and refused where the mask and the data disagree."""

import re
from pathlib import Path

import numpy as np
import pytest

from data_gen.storage.dataset import digest, read_dataset, write_shard
from data_gen.storage.feature_mask import feature_mask_json, feature_mask_of
from data_gen.storage.shard import Shard
from data_gen.storage.store import read_manifest
from data_gen.trajectory import ActionSpec, FeatureMask, InputError, alike_columns, all_real
from tests.builders import ACTION_WIDTHS, OBS_WIDTHS, UNEVEN, N, tiny_batch, uneven_batch
from tests.data_gen.test_dataset import tiny_shard

DISCRETE = ActionSpec("discrete", 5)


def uneven_shard(index: int, **meta: object) -> Shard:
    batch, features = uneven_batch(index)
    meta = {"feature_mask": feature_mask_json(features)} | meta
    return tiny_shard(index, UNEVEN, **meta)._replace(batch=batch)


def test_the_mask_comes_back_as_written(tmp_path: Path):
    for index in range(3):
        assert write_shard(tmp_path, index, 3, uneven_shard(index), {})
    found = read_dataset(tmp_path)
    for real, widths in ((found.features.obs, OBS_WIDTHS), (found.features.actions, ACTION_WIDTHS)):
        assert real.dtype == bool
        np.testing.assert_array_equal(real, [[f < width for f in range(max(widths))] for width in widths])
    np.testing.assert_array_equal(found.batch.obs[:6], uneven_batch(0)[0].obs)
    kept = read_manifest(tmp_path / "shard-00001")["attrs"]["meta"]["feature_mask"]
    assert kept["obs"][0] == [1, 1, 1, 0, 0] and kept["actions"] == [[1, 1, 0], [1, 0, 0], [1, 1, 1]]


@pytest.mark.parametrize("action", [ActionSpec("continuous", 2), DISCRETE])
def test_without_the_key_all_is_real(tmp_path: Path, action: ActionSpec):
    for index in range(3):
        write_shard(tmp_path, index, 3, tiny_shard(index, action), {})
    assert "feature_mask" not in read_manifest(tmp_path / "shard-00000")["attrs"]["meta"]
    obs, actions = read_dataset(tmp_path).features
    assert obs.shape == (N, 4) and obs.all() and actions.shape == (N, action.size) and actions.all()


def test_the_mask_is_part_of_what_the_data_are(tmp_path: Path):
    other = uneven_shard(0).meta["feature_mask"] | {"actions": [[1, 1, 0], [1, 1, 0], [1, 1, 1]]}
    write_shard(tmp_path / "a", 0, 1, uneven_shard(0), {})
    write_shard(tmp_path / "b", 0, 1, uneven_shard(0, feature_mask=other), {})
    assert digest(tmp_path / "a") != digest(tmp_path / "b")
    write_shard(tmp_path / "c", 0, 2, uneven_shard(0), {})
    write_shard(tmp_path / "c", 1, 2, uneven_shard(1, feature_mask=other), {})
    with pytest.raises(InputError, match="meta.feature_mask.actions"):
        read_dataset(tmp_path / "c")


GARBLED = {
    "no dictionary": ([[1]], "must hold obs and actions"),
    "a part missing": ({"obs": [[1] * 5] * 3}, "must hold obs and actions"),
    "no list": ({"obs": 1, "actions": [[1] * 3] * 3}, "feature_mask.obs must be a list an agent"),
    "no rows": ({"obs": [], "actions": [[1] * 3] * 3}, "feature_mask.obs must be a list an agent"),
    "not 0 or 1": (
        {"obs": [[1, 1, 1, 1, 2]] * 3, "actions": [[1] * 3] * 3},
        "feature_mask.obs must be a list an agent",
    ),
    "ragged": ({"obs": [[1] * 5] * 3, "actions": [[1], [1, 1], [1]]}, "feature_mask.actions must be a list an agent"),
    "an agent too many": ({"obs": [[1] * 5] * 4, "actions": [[1] * 3] * 3}, "obs is bool[4, 5]; it must be bool[3, 5]"),
    "too narrow": ({"obs": [[1] * 5] * 3, "actions": [[1] * 2] * 3}, "actions is bool[3, 2]; it must be bool[3, 3]"),
}


@pytest.mark.parametrize(("value", "said"), GARBLED.values(), ids=GARBLED)
def test_a_garbled_mask_is_refused(tmp_path: Path, monkeypatch, value: object, said: str):
    with pytest.raises(InputError, match=re.escape(said)):
        write_shard(tmp_path, 0, 1, uneven_shard(0, feature_mask=value), {})
    assert list(tmp_path.iterdir()) == []
    with monkeypatch.context() as patch:  # a writer of somebody else
        patch.setattr("data_gen.storage.dataset.feature_mask_of", lambda *args: None)
        write_shard(tmp_path, 0, 1, uneven_shard(0, feature_mask=value), {})
    with pytest.raises(InputError, match=re.escape(said)) as refused:
        read_dataset(tmp_path)
    assert str(refused.value).startswith(str(tmp_path))


@pytest.mark.parametrize("field", ["obs", "actions"])
def test_padding_that_holds_a_value_is_refused_at_real_steps_alone(field: str):
    batch, features = uneven_batch()
    values, (b, t, n, f) = getattr(batch, field), {"obs": (2, 1, 0, 4), "actions": (4, 2, 1, 2)}[field]
    meta = {"feature_mask": feature_mask_json(features)}
    values[0, 0, 1, -1] = 0.0  # agent 1 comes late to episode 0
    values[~batch.mask] = 7.0
    assert feature_mask_of(meta, batch, UNEVEN, "here") is not None
    values[b, t, n, f] = -0.25
    said = f"here: {field} is -0.25 at episode {b}, step {t}, agent {n}, feature {f}, which the feature mask calls"
    with pytest.raises(InputError, match=said):
        feature_mask_of(meta, batch, UNEVEN, "here")


def test_a_masked_choice_of_discrete_actions_is_refused():
    batch, features = tiny_batch(DISCRETE), all_real(N, 4, DISCRETE)
    meta = {"feature_mask": feature_mask_json(features)}
    assert feature_mask_of(meta, batch, DISCRETE, "here").actions.all()
    meta["feature_mask"]["actions"][2][3] = 0
    with pytest.raises(InputError, match="takes choice 3 from agent 2, which is not supported"):
        feature_mask_of(meta, batch, DISCRETE, "here")


def test_columns_of_the_same_agents_come_together_in_the_order_of_the_rows():
    batch, features = uneven_batch()
    features = FeatureMask(obs=features.obs[:, [0, 4, 1, 2, 3]], actions=features.actions)
    found = {tuple(np.flatnonzero(c)): seen for c, seen in alike_columns(batch.obs, batch.mask, features.obs)}
    agents = {(0, 2, 3): [0, 1, 2], (1,): [1], (4,): [1, 2]}
    assert found.keys() == agents.keys()
    for columns, own in agents.items():
        there = batch.mask & np.isin(np.arange(N), own)
        np.testing.assert_array_equal(found[columns], batch.obs[there][:, list(columns)])
        assert found[columns].flags.c_contiguous  # else sums over rows round in another order


def test_columns_without_a_value_are_left_out():
    batch, features = uneven_batch()
    features.obs[:, 2] = False
    batch.mask[:, :, 1] = False  # the one agent with five observations is never there
    seen = [tuple(np.flatnonzero(columns)) for columns, _ in alike_columns(batch.obs, batch.mask, features.obs)]
    assert sorted(seen) == [(0, 1), (3,)]
