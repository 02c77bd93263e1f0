"""Actions of agents that were only watched: what they did next, by how their body parts moved.

Letters: T steps, N agents, P body parts, D axes.
"""

import numpy as np
from jaxtyping import Float, Float64

from data_gen.ingest.clean import place_names
from data_gen.ingest.frames import Bodies, axes_in, turn
from data_gen.ingest.recording import Layout

ACTIONS = ("auto", "given", "displacement", "velocity")


def action_names(layout: Layout, frame: str) -> tuple[str, ...]:
    """Names of the columns of derived actions: each part's way along each axis."""
    return place_names(layout.parts, axes_in(layout, frame))


def derive(position: Float[np.ndarray, "T N P D"], bodies: Bodies, scale: float) -> Float64[np.ndarray, "T N PD"]:
    """a(t) = scale (x(t+1) - x(t)) of every part, turned to the heading at t where there is one.

    Nothing before t or after t+1 is looked at, so an observation up to t never holds its own action. NaN where the
    agent is not there at both, where a teleport lies between them, and at the last step.
    """
    found = np.full_like(position, np.nan, dtype=np.float64)
    way = np.diff(position.astype(np.float64), axis=0) * scale
    found[:-1] = np.where(bodies.linked[1:, :, None, None], way, np.nan)
    if bodies.facing is not None:
        for n in range(found.shape[1]):
            found[:, n] = turn(found[:, n], bodies.facing[:, n])
    return found.reshape(*bodies.linked.shape, -1)
