"""A linear-Gaussian hierarchy whose log p(a) is known in closed form (SciPy's), and its episodes as batches.

z_ω ~ N(0, 1); z_α^i | z_ω ~ N(w_i z_ω, s²); a_t^i ~ N(z_α^i, r²), for N agents and T steps. All is jointly Gaussian.
"""

import jax.numpy as jnp
import numpy as np
import scipy.stats

from data_gen.trajectory import TrajectoryBatch
from marl_vae.normalise import Normaliser

W, S, R, T = np.array([0.9, -0.6, 1.4]), 0.5, 0.8, 4
N = len(W)
SCALE = Normaliser(
    *(np.array([x], np.float32) for x in (0.0, 1.0, 0.0, 1.0)),
    obs_real=np.ones((N, 1), np.float32),
    action_real=np.ones((N, 1), np.float32),
)


def log_evidence(actions: np.ndarray, between: np.ndarray) -> np.ndarray:
    """log p(a) of episodes [B, T, N] whose local latents have this covariance between agents."""
    cov = of_actions(between)
    return scipy.stats.multivariate_normal(np.zeros(T * N), cov).logpdf(actions.reshape(len(actions), T * N))


def of_actions(between: np.ndarray) -> np.ndarray:
    """Covariance of all T N actions, from that of the local latents between agents."""
    return np.kron(np.ones((T, T)), between) + R**2 * np.eye(T * N)


def covariance() -> np.ndarray:
    """Of z_α^1..N, with z_ω integrated out."""
    return np.outer(W, W) + S**2 * np.eye(N)


def draw_actions(rng: np.random.Generator, number: int) -> np.ndarray:
    """Actions [B, T, N] drawn from the hierarchy."""
    z_local = W * rng.normal(size=(number, 1)) + S * rng.normal(size=(number, N))
    return z_local[:, None] + R * rng.normal(size=(number, T, N))


def batch_of(actions) -> TrajectoryBatch:
    """Actions [B, T, N] with one observation that is always 0."""
    wide = jnp.asarray(actions, jnp.float32)[..., None]
    return TrajectoryBatch(obs=jnp.zeros_like(wide), actions=wide, mask=jnp.ones(wide.shape[:3], bool))
