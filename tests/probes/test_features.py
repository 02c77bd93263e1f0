"""Flattened trajectories against a loop, and nothing fitted on test rows."""

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, Features, InputError, all_real
from probes.features import FEATURES, Encoded, feature_sets, flatten, principal, standardise
from tests.builders import ACTION_WIDTHS, DO, OBS_WIDTHS, B, N, T, tiny_batch, uneven_batch, widened
from tests.probes.planted import ZW, planted_data

TRAIN = np.arange(B) < 4


@pytest.mark.parametrize("action", [ActionSpec("continuous", 2), ActionSpec("discrete", 5)])
def test_flattened_trajectories_are_normalised_observations_actions_and_mask(action):
    batch = tiny_batch(action)
    batch.obs[~batch.mask] = np.nan
    flat = flatten(batch, TRAIN, all_real(N, DO, action))
    real = batch.obs[:4][batch.mask[:4]]
    for b, t, n in np.ndindex(B, T, N):
        part = flat.reshape(B, T, N, -1)[b, t, n]
        if not batch.mask[b, t, n]:
            assert (part == 0).all()
            continue
        np.testing.assert_allclose(part[:DO], (batch.obs[b, t, n] - real.mean(0)) / real.std(0), rtol=1e-4, atol=1e-5)
        acted = batch.actions[b, t, n]
        if action.kind == "discrete":
            np.testing.assert_array_equal(part[DO:-1], np.eye(action.size)[acted])
        else:
            chosen = batch.actions[:4][batch.mask[:4]]
            np.testing.assert_allclose(part[DO:-1], (acted - chosen.mean(0)) / chosen.std(0), rtol=1e-4, atol=1e-5)
        assert part[-1] == 1


def test_padding_of_narrow_agents_is_zero_and_moves_no_principal_component():
    """The oracle never sees a padded column: each agent's own ones, scaled over the agents that have them."""
    batch, features = uneven_batch(n_episodes=40)
    train, columns = np.arange(40) < 30, []
    for values, widths in ((batch.obs, OBS_WIDTHS), (batch.actions, ACTION_WIDTHS)):
        for n, f in ((n, f) for n, width in enumerate(widths) for f in range(width)):
            own = [values[b, t, m, f] for b, t, m in np.argwhere(batch.mask) if b < 30 and f < widths[m]]
            columns.append(np.where(batch.mask[:, :, n], (values[:, :, n, f] - np.mean(own)) / np.std(own), 0))
    narrow = np.concatenate([*columns, *batch.mask.transpose(2, 0, 1)], axis=1).astype(np.float32)
    padded = flatten(batch, train, features)
    parts = padded.reshape(40, T, N, -1)
    padding = ~np.concatenate([features.obs, features.actions, np.ones((N, 1), bool)], 1)
    assert (parts[:, :, padding] == 0).all() and (parts[batch.mask][:, ~padding.any(0)] != 0).all()
    wider, mask = widened(batch, features, 9, 5)
    for form in (padded, flatten(wider, train, mask)):
        found, want = principal(form, train, 6, 0), principal(narrow, train, 6, 0)
        np.testing.assert_allclose(found, want * np.sign((found * want).sum(0)), rtol=1e-3, atol=1e-3)


def test_test_rows_change_nothing_that_was_fitted():
    data = planted_data()
    train = data["split"] == 0
    first = flatten(data["batch"], train, data["features"])
    data["batch"].obs[~train] += 3
    data["batch"].actions[~train] *= 5
    second = flatten(data["batch"], train, data["features"])
    np.testing.assert_array_equal(first[train], second[train])
    np.testing.assert_array_equal(principal(first, train, 4, 0)[train], principal(second, train, 4, 0)[train])
    assert (first[~train] != second[~train]).any()


def test_components_are_those_of_a_singular_value_decomposition():
    rng = np.random.default_rng(0)
    flat = (rng.normal(size=(60, 9)) * np.arange(9, 0, -1)).astype(np.float32)
    train = np.arange(60) < 50
    mean = flat[train].mean(0)
    axes = np.linalg.svd(flat[train] - mean)[2][:3]
    want = (flat - mean) @ axes.T
    got = principal(flat, train, 3, 0)
    np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=1e-3, atol=1e-3)


def test_pca_has_the_width_of_z_omega_and_raw_at_most_a_hundred():
    data = planted_data()
    sets = _sets(data)
    assert list(sets) == [name for name in FEATURES if name not in ("majority", "flat_vae")]
    assert sets["pca"].shape == (1, 480, ZW) and sets["raw"].shape == (1, 480, 50)
    np.testing.assert_array_equal(sets["pca"], sets["raw"][..., :ZW])
    column, train = data["encoded"].z_alpha[0, :, 1, 1].astype(float), data["split"] == 0
    want = (column - column[train].mean()) / column[train].std()
    np.testing.assert_allclose(sets["z_alpha"][0, :, 7], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(sets["z_both"], np.concatenate([sets["z_omega"], sets["z_alpha"]], 2))


def _sets(data: dict) -> dict[str, np.ndarray]:
    inputs = {name: data[name] for name in ("features", "hand", "encoded")}
    return feature_sets(data["batch"], data["split"] == 0, seed=0, **inputs)


def test_each_encoder_seed_is_scaled_by_itself_and_a_flat_vae_is_one_more_set():
    data = planted_data()
    first, alone = data["encoded"], _sets(data)
    second = Encoded(*(part[:, ::-1] * 2 + 1 for part in first[:3]))
    data["encoded"] = Encoded(*map(np.concatenate, zip(first[:3], second[:3], strict=True)))
    both = _sets(data)
    turned = _sets(data | {"encoded": second})
    for name in ("z_omega", "z_alpha", "z_both", "random_encoder"):
        np.testing.assert_array_equal(both[name], np.concatenate([alone[name], turned[name]]))
    assert both["pca"].shape[0] == both["hand"].shape[0] == 1
    data["encoded"] = data["encoded"]._replace(flat_vae=data["encoded"].z_omega[..., :3])
    flat = _sets(data)
    assert list(flat)[-1] == "flat_vae"
    np.testing.assert_array_equal(flat["flat_vae"], both["z_omega"][..., :3])
    data["encoded"] = data["encoded"]._replace(random_encoder=first.random_encoder)
    with pytest.raises(InputError, match="random_encoder has 1 encoder seeds, but z_omega has 2"):
        _sets(data)


def test_columns_are_standardised_by_the_training_rows_each_or_together():
    rng = np.random.default_rng(0)
    x, train = rng.normal(size=(50, 3)) * [1, 4, 0] + 7, np.arange(50) < 30
    each, together = standardise(x, train, together=False), standardise(x, train, together=True)
    np.testing.assert_allclose(each[train].std(0), [1, 1, 0], atol=1e-9)
    np.testing.assert_allclose(together, (x - x[:30].mean(0)) / x[:30, 1].std())
    np.testing.assert_allclose(each[:, 0], (x[:, 0] - x[:30, 0].mean()) / x[:30, 0].std())


@pytest.mark.parametrize("name", ["hand", "z_omega", "z_alpha", "random_encoder"])
def test_features_that_are_short_or_not_finite_are_refused(name):
    data = planted_data()
    whole = data["hand"].values if name == "hand" else getattr(data["encoded"], name)[0]
    broken = whole.copy()
    broken[(5,) + (1,) * (whole.ndim - 1)] = np.inf
    for values, words in ((whole[:-1], "rows, but the data set"), (broken, f"{name} is inf at row 5")):
        changed = {"encoded": data["encoded"]._replace(**{name: values[None]})} if name != "hand" else {}
        changed |= {"hand": Features(values, data["hand"].names)} if name == "hand" else {}
        with pytest.raises(InputError, match=words):
            _sets(data | changed)


def test_a_data_set_without_hand_features_is_probed_without_them():
    data = planted_data()
    rows = len(data["split"])
    bare = _sets(data | {"hand": Features(np.zeros((rows, 0), np.float32), ())})
    whole = _sets(data)
    assert list(bare) == [name for name in whole if name != "hand"]
    for name, values in bare.items():
        np.testing.assert_array_equal(values, whole[name])
