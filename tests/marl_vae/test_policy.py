import jax.numpy as jnp
import numpy as np
import scipy.stats

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real, to_device
from marl_vae.normalise import Normaliser, fit_normaliser
from marl_vae.policy import action_log_likelihood
from tests.builders import DO, N, tiny_batch

MIN_STD = 0.1


def scales(batch: TrajectoryBatch, action: ActionSpec) -> Normaliser:
    return fit_normaliser(batch, action, all_real(N, DO, action))


def test_gaussian_likelihood_is_in_the_units_of_the_actions() -> None:
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action)
    batch.actions[...] = 3.0 + 5.0 * batch.actions
    scale = scales(batch, action)
    out = np.random.default_rng(1).normal(size=(*batch.mask.shape, 4)).astype(np.float32)
    real = batch.actions[batch.mask].astype(np.float64)
    mean = real.mean(0) + real.std(0) * out[..., :2]
    std = real.std(0) * MIN_STD * np.exp(np.log1p(np.exp(out[..., 2:] - np.log(MIN_STD))))
    want = np.where(batch.mask, scipy.stats.norm(mean, std).logpdf(batch.actions).sum(-1), 0.0)
    found = action_log_likelihood(jnp.asarray(out), to_device(batch), action, scale, MIN_STD)
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=1e-4)


def test_categorical_likelihood() -> None:
    action = ActionSpec("discrete", 5)
    batch = tiny_batch(action)
    out = np.random.default_rng(1).normal(size=(*batch.mask.shape, 5)).astype(np.float32)
    chance = np.exp(out) / np.exp(out).sum(-1, keepdims=True)
    want = np.where(batch.mask, np.log(np.take_along_axis(chance, batch.actions[..., None], -1)[..., 0]), 0.0)
    found = action_log_likelihood(jnp.asarray(out), to_device(batch), action, scales(batch, action), MIN_STD)
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_scales_come_from_real_steps_alone() -> None:
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action)
    before = scales(batch, action)
    batch.obs[~batch.mask], batch.actions[~batch.mask] = 1e6, np.nan
    for old, new in zip(before, scales(batch, action), strict=True):
        np.testing.assert_array_equal(old, new)
    np.testing.assert_allclose(before.obs_mean, batch.obs[batch.mask].mean(0), rtol=1e-4, atol=1e-6)


def test_a_constant_feature_keeps_unit_scale() -> None:
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action)
    batch.obs[..., 2] = 0.7
    assert scales(batch, action).obs_std[2] == 1.0
