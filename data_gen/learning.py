"""How well the agents of a data set learned, in a few lines."""

import numpy as np

from data_gen.recording import normalised_return
from data_gen.rollout import team_return
from data_gen.trajectory import Dataset

LEARNED = 0.6


def describe_learning(found: Dataset) -> list[str]:
    """The share of training seeds whose team learned, between a random team at 0 and a scripted one at 1."""
    share = normalised_return(team_return(found.outcomes.rewards), found.rows, found.meta["baselines"])
    return [
        f"learning: (R − random) / (scripted − random) at the last checkpoint is {np.median(share):.2f} in the median, "
        f"and at least {LEARNED} in {np.mean(share >= LEARNED):.0%} of {len(share)} training seeds"
    ]
