"""The levels of the latent: their names in tables, and whether one says anything at all.

Letters: B episodes, N agents, Z latents, Zw joint latent, Za local latent.
"""

import numpy as np
from jaxtyping import Float

JOINT = "z_omega"
ACTIVE = 0.01  # least variance of a unit that is in use, as in docs/model.md


def local_level(agent: int) -> str:
    """The level of one agent."""
    return f"z_alpha_{agent}"


def title_of(level: str) -> str:
    """A level's name for people."""
    return "z_ω (team)" if level == JOINT else f"z_α of agent {level.rsplit('_', 1)[1]}"


def latents_of(
    z_omega: Float[np.ndarray, "B Zw"], z_alpha: Float[np.ndarray, "B N Za"]
) -> dict[str, Float[np.ndarray, "B _"]]:
    """The latents of every level, the joint one first."""
    return {JOINT: z_omega} | {local_level(i): z_alpha[:, i] for i in range(z_alpha.shape[1])}


def collapsed(z: Float[np.ndarray, "B Z"]) -> bool:
    """Whether no unit is in use: each one's mean varies by ACTIVE or less over the episodes."""
    return not (z.var(axis=0, dtype=float) > ACTIVE).any()
