"""Which episodes a report shows: of the first and the last checkpoint, those with low, median and high return."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from data_gen.trajectory import Dataset

QUANTILES = {"low": 0.05, "median": 0.5, "high": 0.95}


class Picked(NamedTuple):
    """A row of the data set, and what it stands for."""

    row: int
    title: str


def pick_episodes(dataset: Dataset) -> list[Picked]:
    """For the first and last checkpoint, the episodes whose return is nearest to each of QUANTILES.

    Where nobody was ever rewarded they are episodes from begin, middle and end, and their titles say so.
    """
    returns = episode_returns(dataset)
    real = np.asarray(dataset.batch.mask).any(axis=(1, 2))
    checkpoints = np.unique(dataset.rows.checkpoint[real])[[0, -1]].tolist()
    picked = []
    for checkpoint in dict.fromkeys(checkpoints):
        rows = np.flatnonzero(real & (dataset.rows.checkpoint == checkpoint))
        ranked = rows[np.argsort(returns[rows], kind="stable")]
        for name, share in QUANTILES.items():
            row = int(ranked[round(share * (len(ranked) - 1))])
            of_return = f"{name} return {returns[row]:.2f}" if returns.any() else "no rewards"
            title = f"checkpoint {checkpoint}, {of_return}, group {dataset.rows.group[row]}"
            picked.append(Picked(row=row, title=title))
    return picked


def episode_returns(dataset: Dataset) -> Float[np.ndarray, " B"]:
    """Σ_t of the mean reward of the agents who are there at t."""
    mask = np.asarray(dataset.batch.mask)
    rewards = np.where(mask, np.nan_to_num(dataset.outcomes.rewards), 0)
    return (rewards.sum(2) / np.maximum(mask.sum(2), 1)).sum(1).astype(np.float64)
