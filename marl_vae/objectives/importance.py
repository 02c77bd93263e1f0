"""The importance-weighted bound of both levels."""

import math
from dataclasses import dataclass

import jax
from jaxtyping import Array, Float

from data_gen.trajectory import InputError
from marl_vae.bound import log_ratios
from marl_vae.model import AUTOENCODER
from marl_vae.objectives.objective import Objective, Sample, Tuned


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

    def why_not(self, form: str) -> str:
        return "its latents are points, which have no density to weigh" if form == AUTOENCODER else ""

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        joint, local = log_ratios(sample.posteriors, sample.present)
        weights = sample.likelihood + sample.beta.joint * joint + sample.beta.local * local
        return math.log(self.draws) - jax.nn.logsumexp(weights, axis=0)
