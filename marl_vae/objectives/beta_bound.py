"""The bound with its KL terms weighted by the schedule: what is trained unless something else is asked for."""

from dataclasses import dataclass

from jaxtyping import Array, Float

from marl_vae.objectives.objective import Objective, Sample, Tuned


@dataclass
class BetaBound(Objective):
    """−recon + β_α Σ_i KL_α^i and β_ω KL_ω (Higgins et al. 2017, here with a β of its own at each level)."""

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        return (sample.beta.local * sample.terms.kl_local.sum((-2, -1)) - sample.likelihood).mean(0)

    def outer_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        return sample.beta.joint * sample.terms.kl_joint.sum(-1).mean(0)
