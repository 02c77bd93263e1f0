import jax.numpy as jnp
import numpy as np

from data_gen.learners.moments import LEAST_STD, LIMIT, merge, no_moments, scale_of, scaled

REAL = np.array([[True, True, True], [True, False, True]])


def test_merged_moments_are_those_of_everything_seen():
    rng = np.random.default_rng(0)
    parts = [rng.normal(3, 5, size=(n, t, 2, 3)).astype(np.float32) for n, t in ((2, 5), (1, 1), (7, 3))]
    moments = no_moments(2, 3)
    for part in parts:
        moments = merge(moments, jnp.asarray(part))
    every = np.concatenate([part.reshape(-1, 2, 3) for part in parts])
    assert moments.count == len(every)
    scale = scale_of(moments)
    np.testing.assert_allclose(scale.mean, every.mean(0), rtol=1e-4)
    np.testing.assert_allclose(scale.std, every.std(0), rtol=1e-4)


def test_nothing_is_scaled_before_anything_was_seen():
    obs = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2, 3)), jnp.float32)
    got = scaled(scale_of(no_moments(2, 3)), obs, jnp.asarray(REAL))
    np.testing.assert_allclose(got, np.where(REAL, obs, 0))


def test_scaled_observations_are_bounded_and_padding_is_zero():
    seen = np.random.default_rng(0).normal(size=(50, 2, 3))
    seen[:, 0, 2] = 4.0  # a constant feature
    scale = scale_of(merge(no_moments(2, 3), jnp.asarray(seen, jnp.float32)))
    obs = seen[:2].astype(np.float32)
    obs[0, 0, 0], obs[0, 1, 0], obs[0, 0, 2] = 1e6, -1e6, 4.0 + 3 * LEAST_STD
    got = np.asarray(scaled(scale, jnp.asarray(obs), jnp.asarray(REAL)))
    assert got[0, 0, 0] == LIMIT and got[0, 1, 0] == -LIMIT and (got[:, 1, 1] == 0).all()
    np.testing.assert_allclose(got[0, 0, 2], 3.0, rtol=1e-2)
    np.testing.assert_allclose(got[1, 0, :2], (seen[1, 0] - seen[:, 0].mean(0))[:2] / seen[:, 0].std(0)[:2], rtol=1e-4)
