"""The bound with a distance between distributions beside, or in place of, the KL: InfoVAE."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Scalar

from marl_vae.latents import draw
from marl_vae.model import AUTOENCODER
from marl_vae.objectives.objective import Objective, Sample, Tuned, at_least


@dataclass
class MMD(Objective):
    """β (share · KL + weight · MMD²) at each level (Zhao, Song and Ermon 2019, eq. 6).

    MMD² is between the latents of the batch and draws from their priors: it asks that all episodes together look like
    the prior, not that each one does, so that information about an episode costs nothing. In their letters share is
    1 − α and weight is α + λ − 1. `joint` and `local` are weights in nats an episode; z_α is compared agent by agent
    with draws from p(z_α^i | z_ω), both in the prior's own standard deviations, lest smaller latents look closer.
    """

    joint: float = 20.0
    local: float = 20.0
    joint_share: float = 0.1
    local_share: float = 0.1

    def __post_init__(self) -> None:
        at_least(self, 0.0, "joint", "local", "joint_share", "local_share")

    def why_not(self, form: str) -> str:
        return "it has no prior to compare its latents with" if form == AUTOENCODER else ""

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        prior = sample.posteriors.local_prior
        real = sample.present[None, :, :, None]
        spread = (
            jnp.where(real, jnp.exp(prior.log_std), 0.0).sum((0, 1), keepdims=True) / jnp.maximum(real.sum(1), 1)[None]
        )
        theirs = draw(prior, sample.fresh.local[None])[0] / spread[0]
        ours = sample.posteriors.z_local[0] / spread[0]
        agents = range(ours.shape[1]) if ours.shape[2] else []  # a flat model has no latents of theirs
        apart = [mmd2(ours[:, i], theirs[:, i], sample.present[:, i]) for i in agents]
        paid = self.local_share * sample.terms.kl_local.sum((-2, -1)).mean(0) + self.local * sum(apart)
        return sample.beta.local * paid - sample.likelihood.mean(0)

    def outer_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        apart = mmd2(sample.posteriors.z_joint[0], sample.fresh.joint, jnp.ones(len(sample.rows), bool))
        paid = self.joint_share * sample.terms.kl_joint.sum(-1).mean(0) + self.joint * apart
        return sample.beta.joint * paid


def mmd2(x: Float[Array, "B Z"], y: Float[Array, "B Z"], real: Bool[Array, " B"]) -> Scalar:
    """MMD² = E k(x, x') − 2 E k(x, y) + E k(y, y') over real rows; biased, so never below 0.

    Gretton et al. (2012), eq. 5, with k(x, y) = exp(−‖x − y‖² / Z).
    """
    both = (real[:, None] & real[None]).astype(x.dtype)

    def mean(a: Float[Array, "B Z"], b: Float[Array, "B Z"]) -> Scalar:
        apart = ((a[:, None] - b[None]) ** 2).mean(-1)
        return (both * jnp.exp(-apart)).sum() / jnp.maximum(both.sum(), 1.0)

    return mean(x, x) - 2 * mean(x, y) + mean(y, y)
