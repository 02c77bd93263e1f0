"""The importance-weighted bound of both levels."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from data_gen.trajectory import InputError
from marl_vae.latents import log_density, standard_normal
from marl_vae.objectives.objective import Objective, Sample


@dataclass
class Importance(Objective):
    """−log 1/K Σ_k w_k, w = π(a|o, z_α) (p(z_ω)/q(z_ω|τ))^β_ω Π_i (p(z_α^i|z_ω)/q(z_α^i|z_ω,τ^i))^β_α.

    Burda et al. (2016), eq. 8, where both β are 1; K → ∞ then gives log p(a|o). The logarithm joins both levels, so all
    of it is the inner loss. Its gradient says less about the encoders as K grows (Rainforth et al. 2018).
    """

    draws: int = 8

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise InputError(f"objective.draws={self.draws} must be at least 1.")

    def inner_loss(self, sample: Sample, tuned: PyTree) -> Float[Array, " B"]:
        joint, local = log_ratios(sample)
        weights = sample.terms.recon + sample.beta.joint * joint + sample.beta.local * local
        return math.log(self.draws) - jax.nn.logsumexp(weights, axis=0)


def log_ratios(sample: Sample) -> tuple[Float[Array, "K B"], Float[Array, "K B"]]:
    """log p − log q of both latents at each draw; of z_α summed over the agents that are present."""
    found = sample.posteriors
    joint = log_density(standard_normal(found.joint), found.z_joint) - log_density(found.joint, found.z_joint)
    local = log_density(found.local_prior, found.z_local) - log_density(found.local, found.z_local)
    local = jnp.where(sample.present[None, :, :, None], local, 0.0)
    return joint.sum(-1), local.sum((-2, -1))
