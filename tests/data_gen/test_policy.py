import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from data_gen.learners.policy import DISTRIBUTIONS, head_of, init_actor, init_network, network
from data_gen.trajectory import ActionSpec
from tests.data_gen.oracles_plane import mlp

KINDS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 5)}


def test_gaussian_agrees_with_scipy():
    rng = np.random.default_rng(0)
    mean, log_std, a = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    head, gaussian = jnp.asarray(np.concatenate([mean, log_std], -1)), DISTRIBUTIONS["continuous"]
    normal = stats.norm(mean, np.exp(log_std))
    np.testing.assert_allclose(gaussian.log_prob(head, jnp.asarray(a)), normal.logpdf(a).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(gaussian.entropy(head), normal.entropy().sum(-1), rtol=1e-5)
    drawn = np.asarray(gaussian.sample(jnp.tile(head[:1], (20000, 1)), jax.random.key(0)))
    np.testing.assert_allclose(drawn.mean(0), mean[0], atol=5 * np.exp(log_std[0]).max() / 20000**0.5)
    np.testing.assert_allclose(drawn.std(0), np.exp(log_std[0]), rtol=0.03)


def test_categorical_agrees_with_scipy():
    rng = np.random.default_rng(0)
    logits, a = rng.normal(size=(4, 5)), rng.integers(0, 5, 4)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    head, categorical = jnp.asarray(logits), DISTRIBUTIONS["discrete"]
    np.testing.assert_allclose(categorical.log_prob(head, jnp.asarray(a)), np.log(p[range(4), a]), rtol=1e-5)
    np.testing.assert_allclose(categorical.entropy(head), [stats.entropy(row) for row in p], rtol=1e-5)
    drawn = np.asarray(categorical.sample(jnp.tile(head[:1], (20000, 1)), jax.random.key(0)))
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 20000, p[0], atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_new_policies_are_nearly_standard_and_networks_are_plain_tanh_layers(kind):
    params = init_actor(jax.random.key(0), 4, 16, KINDS[kind])
    x = np.random.default_rng(0).normal(size=(7, 4))
    head = np.asarray(head_of(params, jnp.asarray(x), kind))
    np.testing.assert_allclose(head, 0, atol=0.15)
    params = init_network(jax.random.key(1), (4, 16, 16, 3), 1.0)
    np.testing.assert_allclose(network(params, jnp.asarray(x)), mlp(params, x), rtol=1e-4, atol=1e-5)


def test_a_new_policy_has_the_standard_deviation_that_was_asked_for():
    for std in (0.15, 0.5, 1.0, 3.0):
        params = init_actor(jax.random.key(0), 4, 16, KINDS["continuous"], std)
        log_std = np.asarray(head_of(params, jnp.zeros((1, 4)), "continuous"))[0, 2:]
        np.testing.assert_allclose(np.exp(log_std), std, rtol=1e-4)


def test_standard_deviation_has_a_floor():
    params = init_actor(jax.random.key(0), 4, 16, KINDS["continuous"]) | {"raw_std": jnp.full(2, -50.0)}
    log_std = np.asarray(head_of(params, jnp.zeros((1, 4)), "continuous"))[0, 2:]
    np.testing.assert_allclose(np.exp(log_std), 0.1, rtol=1e-5)
