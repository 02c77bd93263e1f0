"""Diagonal Gaussians, and the latents of both levels. B episodes, N agents, Zw joint and Za local width."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from data_gen.trajectory import AnyArray


class Gaussian(NamedTuple):
    """A Gaussian with diagonal covariance."""

    mean: Float[Array, "... Z"]
    log_std: Float[Array, "... Z"]


class Posteriors(NamedTuple):
    """q(z_ω|τ), q(z_α|z_ω,τ) and p(z_α|z_ω), the last two at one sample of z_ω, with the samples drawn.

    What a form of the model lacks has width 0.
    """

    joint: Gaussian
    local: Gaussian
    local_prior: Gaussian
    z_joint: Float[Array, "B Zw"]
    z_local: Float[Array, "B N Za"]


class Embeddings(NamedTuple):
    """Posterior means and standard deviations; those of z_α are taken at the mean of z_ω.

    Of a model without a local level, z_α is z_ω once more for each agent, with deviation 0.
    """

    omega_mean: Float[AnyArray, "B Zw"]
    omega_std: Float[AnyArray, "B Zw"]
    alpha_mean: Float[AnyArray, "B N Za"]
    alpha_std: Float[AnyArray, "B N Za"]


def standard_normal(like: Gaussian) -> Gaussian:
    """N(0, I) of the same shape."""
    return Gaussian(mean=jnp.zeros_like(like.mean), log_std=jnp.zeros_like(like.log_std))


def point(mean: Float[Array, "... Z"]) -> Gaussian:
    """All mass at the mean. It has no density, so neither `kl` nor `log_density` is defined."""
    return Gaussian(mean=mean, log_std=jnp.full_like(mean, -jnp.inf))


def draw(gaussian: Gaussian, noise: Float[Array, "... Z"]) -> Float[Array, "... Z"]:
    """Reparameterised sample: mean + std * noise, with noise ~ N(0, I)."""
    return gaussian.mean + jnp.exp(gaussian.log_std) * noise


def kl(q: Gaussian, p: Gaussian) -> Float[Array, "... Z"]:
    """KL(q‖p) = log(σp/σq) + (σq² + (μq−μp)²)/(2σp²) − 1/2, in nats a dimension (Kingma & Welling 2014, app. B)."""
    gap = (q.mean - p.mean) * jnp.exp(-p.log_std)
    log_ratio = q.log_std - p.log_std
    return 0.5 * (jnp.exp(2 * log_ratio) + gap**2 - 1) - log_ratio


def log_density(gaussian: Gaussian, value: Float[Array, "... Z"]) -> Float[Array, "... Z"]:
    """log N(value; mean, std²) in nats for each dimension."""
    gap = (value - gaussian.mean) * jnp.exp(-gaussian.log_std)
    return -0.5 * (gap**2 + jnp.log(2 * jnp.pi)) - gaussian.log_std
