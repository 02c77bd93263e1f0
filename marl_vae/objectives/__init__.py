"""The objectives by name."""

from marl_vae.objectives.beta_bound import BetaBound
from marl_vae.objectives.free_bits import FreeBits
from marl_vae.objectives.importance import Importance
from marl_vae.objectives.mmd import MMD
from marl_vae.objectives.two_level import TwoLevel

OBJECTIVES = {
    "beta_bound": BetaBound,
    "free_bits": FreeBits,
    "importance": Importance,
    "mmd": MMD,
    "two_level": TwoLevel,
}
