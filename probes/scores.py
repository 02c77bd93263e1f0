"""Scores as sums per group, so that a bootstrap over groups needs no refit, and two scores that are no such sums.

Letters: G groups, K classes (1 for a real target), D bootstrap draws, m scored rows.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.stats import norm, rankdata, t

METRICS = {"class": "balanced_accuracy", "real": "r2"}

LEAST_DRAWS = 40  # of a bootstrap, so that a tail of 2.5 % holds one


class Sums(NamedTuple):
    """Per group and class: `hits` of `totals`. A score is the mean over classes of (sum of hits / sum of totals)."""

    hits: Float[np.ndarray, "G K"]
    totals: Float[np.ndarray, "G K"]


def class_sums(
    y: Int[np.ndarray, " m"], predicted: Int[np.ndarray, " m"], groups: Int[np.ndarray, " m"], size: tuple[int, int]
) -> Sums:
    """Rows of each class and how many of them were predicted right, for `size` = (G, K)."""
    cell = groups * size[1] + y
    totals = np.bincount(cell, minlength=size[0] * size[1])
    hits = np.bincount(cell, weights=predicted == y, minlength=size[0] * size[1])
    return Sums(hits=hits.reshape(size), totals=totals.reshape(size).astype(float))


def skill_sums(
    y: Num[np.ndarray, " m"],
    predicted: Num[np.ndarray, " m"],
    constant: float,
    groups: Int[np.ndarray, " m"],
    n_groups: int,
) -> Sums:
    """Squared error of a constant (totals) and how much of it the prediction removes (hits).

    Their ratio is R2 = 1 - sum (y - predicted)^2 / sum (y - constant)^2, the skill over the training mean.
    """
    totals = np.bincount(groups, weights=(y - constant) ** 2, minlength=n_groups)
    left = np.bincount(groups, weights=(y - predicted) ** 2, minlength=n_groups)
    return Sums(hits=(totals - left)[:, None], totals=totals[:, None])


def recall_of_groups(sums: Sums) -> Sums:
    """Sums for a target whose classes are the groups themselves: each group counts its own recall once.

    Balanced accuracy counts a class once however often its group is drawn, so the bootstrap needs this form.
    """
    share = sums.hits.sum(1) / sums.totals.sum(1)
    return Sums(hits=share[:, None], totals=np.ones((len(share), 1)))


def score(sums: Sums, weights: Num[np.ndarray, "D G"]) -> Float[np.ndarray, " D"]:
    """The score of each draw, `weights` saying how often each group is in it; a class absent from a draw is left out.

    For class targets this is balanced accuracy: the mean recall over the classes that are there to be recalled.
    """
    hits, totals = weights @ sums.hits, weights @ sums.totals
    there = totals > 0
    share = np.divide(hits, totals, out=np.zeros_like(hits), where=there)
    return np.divide(share.sum(1), there.sum(1), out=np.full(len(share), np.nan), where=there.any(1))


def point(sums: Sums) -> float:
    """The score of all groups, each once."""
    return float(score(sums, np.ones((1, len(sums.totals))))[0])


def draw_groups(rng: np.random.Generator, n_groups: int, n_draws: int) -> Float[np.ndarray, "D G"]:
    """How often each group is in each bootstrap draw of `n_groups` groups with replacement."""
    return rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n_draws).astype(float)


def interval(
    values: Float[np.ndarray, " D"], n_groups: int, *, widening: float | None = None, freedom: float | None = None
) -> tuple[float, float]:
    """The expanded percentile 95 % interval of bootstrap draws (Hesterberg 2015, section 5.3).

    The plain percentile interval is too narrow for few groups. One group has no interval: NaN.
    """
    if n_groups < 2:
        return float("nan"), float("nan")
    tail = expanded_tail(n_groups, widening=widening, freedom=freedom)
    low, high = np.nanquantile(values, (tail, 1 - tail))
    return float(low), float(high)


def expanded_tail(n_groups: int, *, widening: float | None = None, freedom: float | None = None) -> float:
    """The share of draws below a 95 % interval: Phi(-w t), t the .975 quantile of Student's distribution.

    With draws of G groups the widening w is sqrt(G / (G - 1)) and the freedom of t is G - 1, unless they are given. A
    plain percentile interval takes z for w t.
    """
    factor = float(np.sqrt(n_groups / (n_groups - 1))) if widening is None else widening
    return float(norm.cdf(-factor * t.ppf(0.975, n_groups - 1 if freedom is None else freedom)))


def value_of(kind: str, y: Num[np.ndarray, " m"], predicted: Num[np.ndarray, " m"], constant: float) -> float:
    """The score of one set of predictions: balanced accuracy, or R2 over the constant."""
    nowhere = np.zeros(len(y), int)
    if kind == "class":
        return point(class_sums(y, predicted, nowhere, (1, int(max(y.max(), predicted.max())) + 1)))
    return point(skill_sums(y, predicted, constant, nowhere, 1))


def macro_f1(y: Int[np.ndarray, " m"], predicted: Int[np.ndarray, " m"]) -> float:
    """F1 = 2 TP / (2 TP + FP + FN), averaged over the classes that occur in y.

    A class that is not in y has no F1; rows wrongly given to it count as missed in their own class.
    """
    shares = []
    for code in np.unique(y):
        here, said = y == code, predicted == code
        shares.append(2 * (here & said).sum() / (here.sum() + said.sum()))
    return float(np.mean(shares))


def auroc(y: Int[np.ndarray, " m"], probabilities: Float[np.ndarray, "m K"]) -> float:
    """Area under the ROC curve, one class against the rest, averaged over the classes (Mann and Whitney 1947).

    For a class it is the share of pairs (a row of the class, a row of another) in which the first has the higher
    probability of the class, ties a half. A class that no row has, or every row, has no pairs and is left out.
    """
    areas = []
    for code in np.unique(y):
        here = y == code
        inside, outside = int(here.sum()), int((~here).sum())
        if outside:
            ranks = rankdata(probabilities[:, code])[here].sum()
            areas.append((ranks - inside * (inside + 1) / 2) / (inside * outside))
    return float(np.mean(areas)) if areas else np.nan
