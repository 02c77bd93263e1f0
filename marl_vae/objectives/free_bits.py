"""The bound in which some information of every latent dimension is free."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float

from marl_vae.model import AUTOENCODER
from marl_vae.objectives.objective import Objective, Sample, Tuned, at_least


@dataclass
class FreeBits(Objective):
    """Σ_d max(λ, mean over the batch of KL_d) in place of the KL, with a λ of its own at each level, in nats.

    Kingma et al. (2016), eq. 15. Below λ a dimension has no gradient to lose what it says. For z_α the mean is over the
    agents that are present, and λ is paid by each of them.
    """

    joint: float = 0.25
    local: float = 0.1

    def __post_init__(self) -> None:
        at_least(self, 0.0, "joint", "local")

    def why_not(self, form: str) -> str:
        return "it has no KL, of which a part could be free" if form == AUTOENCODER else ""

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        agents = sample.present.sum()
        of_agent = sample.terms.kl_local.mean(0).sum((0, 1)) / jnp.maximum(agents, 1)  # 0 where an agent is absent
        paid = jnp.maximum(self.local, of_agent).sum() * sample.present.sum(-1)
        return sample.beta.local * paid - sample.likelihood.mean(0)

    def outer_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        paid = jnp.maximum(self.joint, sample.terms.kl_joint.mean((0, 1))).sum()
        return jnp.broadcast_to(sample.beta.joint * paid, (len(sample.rows),))
