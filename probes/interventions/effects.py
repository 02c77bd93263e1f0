"""Means over pairs of episodes, with intervals that know which pairs share a group.

Letters: R rows (rollouts), G groups, D bootstrap draws, S settings of an intervention.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from probes.scores import interval


class Estimate(NamedTuple):
    """A mean and its 95 % interval; NaN where there was nothing to average."""

    value: float
    low: float
    high: float


NOTHING = Estimate(np.nan, np.nan, np.nan)


def pair_weights(draws: Float[np.ndarray, "D G"], ends: list[Int[np.ndarray, " R"]]) -> Float[np.ndarray, "D R"]:
    """How often each row is in a draw of the groups: the product over its ends of how often their groups are.

    A pair is there once for every way to take its ends from the groups drawn (Owen 2007, The pigeonhole bootstrap).
    Rows that share one end are dependent: to draw pairs, or the groups of one end alone, gives too narrow intervals.
    """
    weights = np.ones((len(draws), len(ends[0])))
    for end in ends:
        weights *= draws[:, end]
    return weights


def estimate(
    values: Float[np.ndarray, " R"], ends: list[Int[np.ndarray, " R"]], draws: Float[np.ndarray, "D G"]
) -> Estimate:
    """The mean of the values that are there (NaN is not), with an expanded interval over the draws of the groups."""
    there = np.isfinite(values)
    if not there.any():
        return NOTHING
    weights = pair_weights(draws, [end[there] for end in ends])
    total = weights.sum(1)
    means = np.divide(weights @ values[there], total, out=np.full(len(total), np.nan), where=total > 0)
    if not np.isfinite(means).any():
        return Estimate(float(values[there].mean()), np.nan, np.nan)
    return Estimate(float(values[there].mean()), *interval(means, draws.shape[1]))


def slopes(outcomes: Float[np.ndarray, "S R"], at: list[float]) -> Float[np.ndarray, " R"]:
    """Least-squares slope of each row's outcome over the settings: sum (s - mean s) o(s) / sum (s - mean s)^2."""
    centred = np.array(at) - np.mean(at)
    return centred @ outcomes / np.sum(centred**2)


def correlation(a: Float[np.ndarray, " R"], b: Float[np.ndarray, " R"]) -> float:
    """Pearson's, over the rows where both are there; NaN where one of them never changes."""
    there = np.isfinite(a) & np.isfinite(b)
    if there.sum() < 2 or np.ptp(a[there]) == 0 or np.ptp(b[there]) == 0:
        return np.nan
    return float(np.corrcoef(a[there], b[there])[0, 1])
