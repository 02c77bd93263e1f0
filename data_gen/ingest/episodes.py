"""What becomes of a recording: episodes of one length and one set of features, as the store holds them.

Letters: T steps, N agents, Do observation, Da action.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int32, Shaped

from data_gen.trajectory import ActionSpec, LabelSpec


class Outline(NamedTuple):
    """What every episode of a data set has in common. `position` are the columns of obs that are a place in the plane.

    `rate` is in steps a second, 0 where it is not known; `frame` and `derived` say how observations and actions were
    made (frame of reference; given, displacement or velocity).
    """

    obs_names: tuple[str, ...]
    action: ActionSpec
    action_names: tuple[str, ...]
    agents: tuple[str, ...]
    position: tuple[int, ...]
    labels: tuple[LabelSpec, ...]
    rate: float
    units: Mapping[str, str]
    frame: str
    derived: str


class Episode(NamedTuple):
    """A window of a recording, or the whole of it; `t0` is its first step in the recording, at the outline's rate.

    Values under the mask are 0. Labels are single values, or [N] for a label of each agent.
    """

    obs: Float32[np.ndarray, "T N Do"]
    actions: Float32[np.ndarray, "T N Da"] | Int32[np.ndarray, "T N"]
    mask: Bool[np.ndarray, "T N"]
    rewards: Float32[np.ndarray, "T N"]
    terminated: Bool[np.ndarray, " T"]
    truncated: Bool[np.ndarray, " T"]
    labels: Mapping[str, Shaped[np.ndarray, "..."]]
    t0: int
