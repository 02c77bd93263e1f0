"""How well the agents of a data set learned, in a few lines."""

import numpy as np
from jaxtyping import Float, Float32

from data_gen.learners.rollout import team_return
from data_gen.trajectory import Dataset, RowIndex

LEARNED = 0.6


def describe_learning(found: Dataset) -> list[str]:
    """How far the teams of the training seeds came, and what was thrown away.

    Where the domain has a scripted team, a share between a random team's return at 0 and the scripted one's at 1; else
    returns at the first and last checkpoint.
    """
    returns, rows = team_return(found.outcomes.rewards), found.rows
    lines = [f"discarded: {line}" for line in found.meta["discarded"]]
    if "scripted" in found.meta.get("baselines", {}):
        share = normalised_return(returns, rows, found.meta["baselines"])
        return lines + [
            f"learning: (R − random) / (scripted − random) at the last checkpoint is {np.median(share):.2f} in the "
            f"median, and at least {LEARNED} in {np.mean(share >= LEARNED):.0%} of {len(share)} training seeds"
        ]
    first, last = (returns_by_seed(returns, rows, edge) for edge in (rows.checkpoint.min(), rows.checkpoint.max()))
    return lines + [
        f"learning: return of a recorded episode, median over {len(last)} training seeds, is {np.median(first):.1f} at "
        f"the first checkpoint and {np.median(last):.1f} at the last (lowest seed {min(last):.1f}, highest "
        f"{max(last):.1f})"
    ]


def returns_by_seed(
    returns: Float32[np.ndarray, " B"], rows: RowIndex, checkpoint: int | np.integer
) -> Float[np.ndarray, " G"]:
    """Mean return at a checkpoint of each training seed that has episodes there, in the order of the seeds."""
    here = rows.checkpoint == checkpoint
    return np.array([returns[here & (rows.group == group)].mean() for group in np.unique(rows.group[here])])


def normalised_return(
    returns: Float32[np.ndarray, " B"], rows: RowIndex, references: dict[str, float]
) -> Float[np.ndarray, " G"]:
    """(R − random) / (scripted − random) of each training seed's last checkpoint, in the order of the seeds."""
    span = references["scripted"] - references["random"]
    return (returns_by_seed(returns, rows, rows.checkpoint.max()) - references["random"]) / span
