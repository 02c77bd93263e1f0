"""The delete-a-group jackknife: standard errors of anything that is computed from pairs of episodes.

Pairs share episodes, and episodes share groups, so pairs are not independent and a bootstrap of pairs is too narrow. A
bootstrap of groups pairs an episode with its own copy, at distance 0. Leaving out one group with every pair that
touches it has neither fault (Arvesen 1969 for statistics of pairs; Efron and Stein 1981: its variance errs upwards).

Letters: G groups.
"""

import numpy as np
from jaxtyping import Float
from scipy.stats import t


def error(without: Float[np.ndarray, " G"]) -> float:
    """sqrt((G − 1) / G · Σ (θ_g − mean)²), θ_g the value without group g; NaN for one group, or without a value."""
    n = len(without)
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum())) if n > 1 else float("nan")


def t_interval(value: float, without: Float[np.ndarray, " G"]) -> tuple[float, float]:
    """value ± t · error, 95 %, with G − 1 degrees of freedom."""
    if len(without) < 2:
        return float("nan"), float("nan")
    half = float(t.ppf(0.975, len(without) - 1)) * error(without)
    return value - half, value + half
