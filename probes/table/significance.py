"""Tests of a paired difference: its p-value, Holm's correction over labels, and how many groups would be needed.

Letters: P p-values.
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

from probes.bootstrap import NOTHING, Sample, variances, widening

DIFFERENCE, POWER, SIZE = 0.05, 0.8, 0.05


def p_value(difference: Sample) -> float:
    """Two-sided p of no difference: one minus the level at which `interval_of` just reaches zero.

    The share of draws at or beyond zero counts the observed value as one more draw (Davison and Hinkley 1997, eq.
    4.11), so that p is never 0; its least value depends on the number of draws.
    """
    draws = difference.draws[np.isfinite(difference.draws)]
    beyond = min((draws <= 0).sum(), (draws >= 0).sum())
    share = min((1 + beyond) / (1 + len(draws)), 0.5)
    factor, freedom = widening(difference)
    return float(2 * t.cdf(norm.ppf(share) / factor, freedom))


def holm(p: Float[np.ndarray, " P"]) -> Float[np.ndarray, " P"]:
    """Step-down p-values that hold for all hypotheses together (Holm 1979): max over i <= rank of (P - i) p_(i)."""
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(steps, 1)
    return corrected


def groups_needed(difference: Sample) -> float:
    """Test groups at which a true difference of .05 is seen with 80 % power at two-sided 5 %.

    The least n with .05 >= (t_.975 + t_.8) sqrt(s^2 / n + v), both t with n - 1 degrees of freedom, s^2 / n the squared
    standard error from n groups and v the one from the encoder seeds, which more groups do not lower: infinite where v
    alone is too large. With one encoder seed v is unknown and taken as 0. NaN where the groups do not differ at all, as
    between a latent that is always right and the majority class.
    """
    of_groups, of_encoders = variances(difference)
    if not of_groups > NOTHING:
        return math.nan
    spread = of_groups * difference.n_groups
    room = (DIFFERENCE / (norm.ppf(1 - SIZE / 2) + norm.ppf(POWER))) ** 2 - of_encoders
    if room <= 0:
        return math.inf
    n = max(math.ceil(spread / room), 2)
    while (t.ppf(1 - SIZE / 2, n - 1) + t.ppf(POWER, n - 1)) * math.sqrt(spread / n + of_encoders) > DIFFERENCE:
        n += 1
    return float(n)
