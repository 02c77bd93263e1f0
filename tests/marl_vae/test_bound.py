"""The bound against the exact linear-Gaussian hierarchy, whose log p(a) and posteriors are known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec
from marl_vae.bound import Terms, bound, bound_terms, make_noise
from marl_vae.latents import Gaussian
from marl_vae.model import Dims, HierarchicalVAE, Model
from tests.marl_vae.linear_gaussian import SCALE, N, R, S, T, W, batch_of, covariance, log_evidence

DRAWS = 40_000


class ExactJoint(nnx.Module):
    """q(z_ω | a): the mean of T actions is w z + noise of variance v, so precisions add to 1 + Σ w²/v."""

    def __init__(self, shift: float, stretch: float):
        self.shift, self.stretch = shift, stretch

    def __call__(self, team):
        v = S**2 + R**2 / T
        precision = 1 + (W**2).sum() / v
        mean = (team * jnp.asarray(W / v)[None]).sum(1, keepdims=True) / precision
        return moved(mean, precision**-0.5, self.shift, self.stretch)


def moved(mean, std: float, shift: float, stretch: float) -> Gaussian:
    return Gaussian(mean=mean + shift * std, log_std=jnp.full_like(mean, np.log(std * stretch)))


class LinearGaussian(HierarchicalVAE):
    """The hierarchy above with its exact posteriors, moved by `shift` of their deviations and stretched."""

    def __init__(self, shift: float, stretch: float):
        config = Model(joint_width=1, local_width=1, hidden=1, decoder_hidden=1, min_std=0.1)
        super().__init__(config, Dims(N, 1, ActionSpec("continuous", 1)), rngs=nnx.Rngs(0))
        self.shift, self.stretch = shift, stretch
        self.joint = ExactJoint(shift, stretch)

    def features(self, scale, batch):
        mean = batch.actions.mean(1)
        return mean[..., 0], mean

    def local_posterior(self, features, z_joint):
        precision = S**-2 + T * R**-2
        prior_mean = jnp.asarray(W)[None, :, None] * z_joint[:, None]
        mean = (prior_mean * S**-2 + features * T * R**-2) / precision
        return moved(mean, precision**-0.5, self.shift, self.stretch)

    def local_prior(self, z_joint):
        mean = jnp.asarray(W)[None, :, None] * z_joint[:, None]
        return Gaussian(mean=mean, log_std=jnp.full_like(mean, np.log(S)))

    def decode(self, obs, z_local, mask):
        mean = jnp.broadcast_to(z_local[:, None], obs.shape)
        # The policy's scale is floor * exp(softplus(raw − log floor)).
        raw = np.log(np.expm1(np.log(R / self.config.min_std))) + np.log(self.config.min_std)
        return jnp.concatenate([mean, jnp.full_like(mean, raw)], axis=-1)


def actions() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(T, N)) * 1.2 + np.array([0.5, -1.0, 0.3])


def exact() -> float:
    return float(log_evidence(actions()[None], covariance()))


def estimate(shift: float, stretch: float) -> tuple[float, float]:
    model = LinearGaussian(shift, stretch)
    batch = batch_of(np.broadcast_to(actions(), (DRAWS, T, N)))
    values = np.asarray(bound(bound_terms(model, SCALE, batch, make_noise(jax.random.key(1), model, DRAWS)), 1.0, 1.0))
    return float(values.mean()), float(values.std() / np.sqrt(DRAWS))


def test_the_bound_is_log_p_at_the_exact_posterior() -> None:
    value, error = estimate(shift=0.0, stretch=1.0)
    assert error < 0.01
    assert abs(value - exact()) < 4 * error


@pytest.mark.parametrize(("shift", "stretch"), [(1.0, 1.0), (0.0, 2.0), (0.0, 0.4)])
def test_the_bound_lies_below_elsewhere_by_the_divergence(shift: float, stretch: float) -> None:
    """The gap is KL(q‖exact), which for every one of the 1 + N latents is that of a moved and stretched Gaussian."""
    value, error = estimate(shift, stretch)
    gap = (1 + N) * (0.5 * (stretch**2 + shift**2 - 1) - np.log(stretch))
    assert abs(exact() - value - gap) < 4 * error + 1e-3


def test_weights_apply_to_their_own_level() -> None:
    kl_joint, kl_local = jnp.array([[1.0, 2.0]]), jnp.array([[[0.5], [0.25]]])
    terms = Terms(recon=jnp.array([10.0]), kl_joint=kl_joint, kl_local=kl_local, state=jnp.array([99.0]))
    assert float(bound(terms, 1.0, 1.0)[0]) == 10 - 3 - 0.75
    assert float(bound(terms, 0.5, 2.0)[0]) == 10 - 1.5 - 1.5
