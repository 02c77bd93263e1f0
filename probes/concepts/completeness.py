"""Completeness: how much of a probe's skill is left when it sees concept scores in place of the latent.

completeness = (score through concepts - floor) / (score of the full latent - floor), after Yeh et al. 2020, equation 1.
Letters: B rows, F features, G groups, K classes (1 for a real target), D bootstrap draws.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32, Num

from data_gen.trajectory import SPLITS, RowIndex
from probes.labels import Target
from probes.probe import Folds, Probe, predict
from probes.scores import Sums, class_sums, expanded_tail, interval, point, score, skill_sums
from probes.table.exam import group_folds


class Task(NamedTuple):
    """Rows and values of one label; `choosing` are the pairs (rows to fit on, rows to score) that choose anything."""

    kind: str
    n_classes: int
    values: Num[np.ndarray, " B"]
    groups: Int32[np.ndarray, " B"]
    train: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " m"]
    choosing: Folds


class Completeness(NamedTuple):
    """The ratio with its interval, NaN where undefined, the three scores it is made of, and why it is undefined."""

    value: float
    low: float
    high: float
    full: float
    floor: float
    through: float
    note: str


def make_task(target: Target, rows: RowIndex, split: Int32[np.ndarray, " B"], n_folds: int) -> Task:
    """Choices are made on validation groups, or on folds of training groups where those hold less than two values.

    A fold whose fitted rows hold one value cannot be fitted and is left out, so `choosing` can be empty.
    """
    train, validation, test = (np.flatnonzero(target.keep & (split == i)) for i in range(len(SPLITS)))
    choosing = [(train, validation)]
    if len(np.unique(target.values[validation])) < 2:
        choosing = group_folds(train, rows.group[train], n_folds)
    return Task(
        kind=target.kind,
        n_classes=max(len(target.classes), 1),
        values=target.values,
        groups=rows.group,
        train=train,
        test=test,
        choosing=[(fit, held) for fit, held in choosing if len(np.unique(target.values[fit])) > 1],
    )


def fit_and_score(
    task: Task, probe: str, features: list[Float[np.ndarray, "B _"]], folds: Folds, strength: float, config: Probe
) -> tuple[Sums, bool]:
    """Sums per group over the scored rows of all folds together, and whether every fit converged.

    There is one array of features a fold, because concepts are learned anew on the rows a fold fits on.
    """
    codes = np.zeros(len(task.values), int)
    scored = np.concatenate([held for _, held in folds])
    codes[scored] = np.unique(task.groups[scored], return_inverse=True)[1].ravel()
    parts, converged = [], True
    for (fit, held), x in zip(folds, features, strict=True):
        guess = predict(probe, task.kind, x[fit], task.values[fit], x[held], strength, config)
        parts.append(_sums(task, held, guess.values, float(task.values[fit].mean()), codes, int(codes.max()) + 1))
        converged &= guess.converged
    hits, totals = (np.sum(parts, axis=0) for parts in zip(*parts, strict=True))
    return Sums(hits=hits, totals=totals), converged


def _sums(task: Task, held: np.ndarray, guess: np.ndarray, constant: float, codes: np.ndarray, n_groups: int) -> Sums:
    if task.kind == "class":
        return class_sums(task.values[held], guess, codes[held], (n_groups, task.n_classes))
    return skill_sums(task.values[held], guess, constant, codes[held], n_groups)


def best_strength(
    task: Task, probe: str, features: list[Float[np.ndarray, "B _"]], config: Probe
) -> tuple[Sums, float]:
    """Sums of the strength that scores best over the choosing rows, and that strength; a tie goes to the stronger."""
    tried = [
        (fit_and_score(task, probe, features, task.choosing, strength, config)[0], strength)
        for strength in config.strengths_of(probe)
    ]
    return max(tried, key=lambda pair: point(pair[0]))


def floor_of(kind: str, sums: Sums, weights: Float[np.ndarray, "D G"]) -> Float[np.ndarray, " D"]:
    """What knowing nothing scores in each draw: 1 / the number of classes that are in it, or 0 for R2.

    The majority class scores this in balanced accuracy where it is in the draw.
    """
    if kind == "real":
        return np.zeros(len(weights))
    return 1 / ((weights @ sums.totals) > 0).sum(1)


def completeness(kind: str, full: Sums, through: Sums, weights: Float[np.ndarray, "D G"]) -> Completeness:
    """Completeness over all groups, and its expanded percentile 95 % interval over the same draws for all three scores.

    Undefined where the interval of full - floor reaches 0. In the few draws where the full latent is then still no
    better than the floor the ratio has no meaning: they count as -inf for the lower end and as +inf for the upper end.
    """
    once = np.ones((1, len(full.totals)))
    floor, full_value, through_value = float(floor_of(kind, full, once)[0]), point(full), point(through)
    floors = floor_of(kind, full, weights)
    gain, part = score(full, weights) - floors, score(through, weights) - floors
    n_groups = len(full.totals)
    low, high = interval(gain, n_groups)
    scores = {"full": full_value, "floor": floor, "through": through_value}
    if not low > 0 or full_value <= floor:
        note = f"undefined: full - floor is {full_value - floor:.3f}, its 95 % interval {low:.3f} to {high:.3f}"
        return Completeness(value=np.nan, low=np.nan, high=np.nan, note=note, **scores)
    tail = expanded_tail(n_groups)
    ratio = np.divide(part, gain, out=np.zeros_like(part), where=gain > 0)
    return Completeness(
        value=(through_value - floor) / (full_value - floor),
        low=float(np.quantile(np.where(gain > 0, ratio, -np.inf), tail, method="higher")),
        high=float(np.quantile(np.where(gain > 0, ratio, np.inf), 1 - tail, method="lower")),
        note="",
        **scores,
    )


def smallest_within_one_error(values: Float[np.ndarray, " M"], errors: Float[np.ndarray, " M"]) -> int:
    """Index of the first value that is at least the best minus the best's standard error (Breiman et al. 1984)."""
    best = int(np.argmax(values))
    return int(np.argmax(values >= values[best] - errors[best]))
