"""Is a level of latents used at all? Active units, and the likelihood under shuffled latents and without any."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from data_gen.trajectory import AnyArray
from marl_vae.latents import Embeddings

ACTIVE = 0.01


class ActiveUnits(NamedTuple):
    """Which dimensions of each level vary over episodes."""

    omega: Bool[np.ndarray, " Zw"]
    alpha: Bool[np.ndarray, " Za"]


def active_units(latents: Embeddings, mask: Bool[AnyArray, "B T N"]) -> ActiveUnits:
    """Dimensions whose posterior mean has a variance above 0.01 over episodes (Burda et al. 2016, §5.3).

    For z_α the variance is taken within each agent and then averaged, so that who an agent is does not count.
    """
    present = np.any(mask, axis=1)
    within = [latents.alpha_mean[present[:, n], n].var(0) for n in range(present.shape[1]) if present[:, n].any()]
    return ActiveUnits(omega=latents.omega_mean.var(0) > ACTIVE, alpha=np.mean(within, axis=0) > ACTIVE)
