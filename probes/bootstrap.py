"""The bootstrap of stored predictions: test groups and encoder seeds are drawn, crossed; nothing is fitted again.

Letters: D draws, G test groups, E encoder seeds.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from probes.controls import generator
from probes.scores import Sums, draw_groups, interval, point, score

NOTHING = 1e-20  # a variance that is rounding


class Weights(NamedTuple):
    """How often each draw holds each group, and each encoder seed where there are E of them."""

    groups: Float[np.ndarray, "D G"]
    encoders: dict[int, Float[np.ndarray, "D E"]]


class Sample(NamedTuple):
    """A score, or a difference of two, over bootstrap draws of both, of the groups alone and of the encoders alone."""

    value: float
    draws: Float[np.ndarray, " D"]
    over_groups: Float[np.ndarray, " D"]
    over_encoders: Float[np.ndarray, " D"]
    n_groups: int
    n_encoders: int


def draw_weights(seed: int, label: str, n_groups: int, n_encoders: set[int], n_draws: int) -> Weights:
    """The draws of one label: the same for every feature set and probe, so that differences are paired."""
    groups = draw_groups(generator(seed, label, "bootstrap"), n_groups, n_draws)
    encoders = {n: draw_groups(generator(seed, label, f"bootstrap of {n} encoders"), n, n_draws) for n in n_encoders}
    return Weights(groups=groups, encoders=encoders)


def sample(sums: list[Sums], weights: Weights) -> Sample:
    """The mean score over encoder seeds, one Sums each, in every draw."""
    n = len(sums)
    of_draws = np.stack([score(one, weights.groups) for one in sums], 1)
    points = np.array([point(one) for one in sums])
    chosen = weights.encoders[n]
    return Sample(
        value=float(points.mean()),
        draws=(chosen * of_draws).sum(1) / n,
        over_groups=of_draws.mean(1),
        over_encoders=(chosen * points).sum(1) / n,
        n_groups=weights.groups.shape[1],
        n_encoders=n,
    )


def minus(first: Sample, second: Sample) -> Sample:
    """The paired difference. Of two numbers of encoder seeds the smaller above one counts, the cautious choice."""
    several = [n for n in (first.n_encoders, second.n_encoders) if n > 1]
    return Sample(
        value=first.value - second.value,
        draws=first.draws - second.draws,
        over_groups=first.over_groups - second.over_groups,
        over_encoders=first.over_encoders - second.over_encoders,
        n_groups=first.n_groups,
        n_encoders=min(several, default=1),
    )


def mean_of(samples: list[Sample]) -> Sample:
    """The mean of several scores over the same draws."""
    return samples[0]._replace(
        value=float(np.mean([one.value for one in samples])),
        draws=np.mean([one.draws for one in samples], 0),
        over_groups=np.mean([one.over_groups for one in samples], 0),
        over_encoders=np.mean([one.over_encoders for one in samples], 0),
    )


def variances(one: Sample) -> tuple[float, float]:
    """Squared standard errors from the groups and from the encoder seeds, each times n / (n - 1).

    A bootstrap of n things has the variance of their mean times (n - 1) / n. One encoder seed has no variance to show.
    """
    of_groups = float(np.nanvar(one.over_groups)) * one.n_groups / max(one.n_groups - 1, 1)
    of_encoders = float(np.nanvar(one.over_encoders)) * one.n_encoders / max(one.n_encoders - 1, 1)
    return of_groups, of_encoders


def widening(one: Sample) -> tuple[float, float]:
    """By how much the draws' standard error is too small, and the degrees of freedom behind it (Satterthwaite 1946)."""
    of_groups, of_encoders = variances(one)
    whole = of_groups + of_encoders
    drawn = float(np.nanvar(one.over_groups)) + float(np.nanvar(one.over_encoders))
    if not drawn > NOTHING:
        return float(np.sqrt(one.n_groups / max(one.n_groups - 1, 1))), float(max(one.n_groups - 1, 1))
    parts = of_groups**2 / max(one.n_groups - 1, 1) + of_encoders**2 / max(one.n_encoders - 1, 1)
    return float(np.sqrt(whole / drawn)), whole**2 / parts


def interval_of(one: Sample) -> tuple[float, float]:
    """The expanded percentile 95 % interval, with the widening of both groups and encoder seeds."""
    factor, freedom = widening(one)
    return interval(one.draws, one.n_groups, widening=factor, freedom=freedom)
