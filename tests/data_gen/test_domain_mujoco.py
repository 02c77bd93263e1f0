"""Labels and hand features of bodies, against hand-made episodes."""

import numpy as np

from data_gen.domains.mujoco import control_energy, crossings, hand_features, measure
from data_gen.engines.scenarios import SCENARIOS, make_scenario
from data_gen.trajectory import TrajectoryBatch


def batch_of(name, n=3, steps=20, seed=0, scale=0.5):
    scenario, rng = make_scenario(name, 1), np.random.default_rng(seed)
    obs = rng.normal(size=(n, steps, *scenario.obs_mask.shape)) * scenario.obs_mask
    actions = rng.normal(size=(n, steps, *scenario.action_mask.shape)) * scenario.action_mask * scale
    mask = np.ones((n, steps, scenario.n_agents), bool)
    return scenario, TrajectoryBatch(obs.astype(np.float32), actions.astype(np.float32), mask)


def test_energy_is_what_the_body_felt():
    scenario, batch = batch_of("Humanoid 9|8")
    batch.actions[0, 0, 0, :2] = 3.0, -0.2  # the bound is .4: one control is cut to it, the other is half of it
    energy = control_energy(scenario, batch.actions, batch.mask)
    felt = np.clip(batch.actions[0, 0, 0], -0.4, 0.4) / 0.4
    np.testing.assert_allclose(felt[:2], [1.0, -0.5], rtol=1e-6)
    np.testing.assert_allclose(energy[0, 0, 0], (felt**2).sum(), rtol=1e-6)
    assert energy.shape == (3, 20, 2)


def test_labels_by_hand_with_an_episode_that_ended_early():
    scenario, batch = batch_of("HalfCheetah 2x3", n=2, steps=4)
    batch.actions[:] = 0
    batch.actions[0, :, 0], batch.actions[0, :, 1] = 1.0, 0.5
    batch.actions[1, :, 0], batch.actions[1, :, 1, 0] = 0.0, 2.0
    batch.mask[1, 2:] = False
    speed = np.array([[1, 2, 3, 4], [5, 7, 100, 100]], np.float32)
    found = measure(scenario, batch, speed).values
    np.testing.assert_allclose(found["speed"], [2.5, 6.0])
    np.testing.assert_allclose(found["energy"], [3 + 3 * 0.25, 1.0])
    np.testing.assert_allclose(found["energy_share"], [[0.8, 0.2], [0.0, 1.0]], rtol=1e-6)
    np.testing.assert_array_equal(found["limb"], [[0, 1], [0, 1]])
    specs = {spec.name: spec for spec in measure(scenario, batch, speed).specs}
    assert specs["limb"].classes == ("bthigh+bshin+bfoot", "fthigh+fshin+ffoot")
    assert specs["speed_class"].kind == specs["energy_class"].kind == "quantile"


def test_no_energy_is_no_share():
    scenario, batch = batch_of("HalfCheetah 2x3", n=1, scale=0.0)
    found = measure(scenario, batch, np.zeros((1, 20), np.float32)).values
    assert not found["energy_share"].any() and found["energy"] == 0


def test_hand_features_are_finite_named_and_blind_to_what_is_masked_or_padded():
    for name in SCENARIOS:
        scenario, batch = batch_of(name)
        batch.mask[1, 7:] = False
        found = hand_features(scenario, batch)
        assert found.values.shape == (3, len(found.names)) and len(set(found.names)) == len(found.names) >= 6
        assert np.isfinite(found.values).all()
        batch.obs[1, 7:], batch.actions[1, 7:] = 5.0, 5.0
        batch.obs[..., 0, :][..., ~scenario.obs_mask[0]] = 9.0
        np.testing.assert_array_equal(hand_features(scenario, batch).values, found.values)


def test_hand_features_by_hand_and_blind_to_forward_velocity():
    scenario, batch = batch_of("HalfCheetah 2x3", n=1, steps=5)
    for agent, names in enumerate(scenario.obs_names):
        batch.obs[..., agent, names.index("qvel 0")] = 1e6
        for joint, slope in zip(scenario.limbs[agent], (1.0, 2.0, 3.0), strict=True):
            batch.obs[0, :, agent, names.index(f"qpos {joint}")] = slope * np.arange(5)
            batch.obs[0, :, agent, names.index(f"qvel {joint}")] = slope * np.array([1, -1, 1, 1, -1])
    batch.actions[0, :, 0] = np.array([0, 0.5, 2, 2, -2])[:, None]
    batch.actions[0, :, 1] = 0.25
    got = dict(zip(*(hand_features(scenario, batch).names, hand_features(scenario, batch).values[0]), strict=True))
    assert max(abs(value) for value in got.values()) < 1e3
    np.testing.assert_allclose(got["joint_mean_1"], 2.0 * 2.0)
    np.testing.assert_allclose(got["joint_range_0"], np.sqrt((1 + 4 + 9) / 3 * 2), rtol=1e-6)
    np.testing.assert_allclose(got["joint_speed_0"], 2.0)
    np.testing.assert_allclose(got["stride_frequency_0"], 3 / 4)
    np.testing.assert_allclose([got["action_mean_0"], got["action_mean_1"]], [0.5, 0.25])
    np.testing.assert_allclose([got["action_saturation_0"], got["action_saturation_1"]], [3 / 5, 0])
    np.testing.assert_allclose([got["action_change_0"], got["action_change_1"]], [(0.5 + 1.5 + 0 + 4) / 4, 0])
    assert got["length"] == 5


def test_crossings_count_signs_that_change():
    values = np.array([[1.0, -1, -2, 3, -9], [1, 1, 1, -1, 1]])
    real = np.array([[True] * 5, [True, True, True, False, False]])
    np.testing.assert_allclose(crossings(values, real), [3 / 4, 0])
