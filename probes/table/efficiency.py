"""Label efficiency: how well a label is read where only a few training groups have it.

Letters: B rows, G groups, F features, E encoder seeds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Num
from threadpoolctl import threadpool_limits

from probes.bootstrap import draw_weights, interval_of, mean_of, sample
from probes.controls import generator
from probes.jobs import call_all, silent
from probes.probe import Probe, choose_strength, predict
from probes.scores import Sums
from probes.table.exam import Exam, group_folds, sums_of

COLUMNS = "label features probe n_train_groups value ci_low ci_high note".split()
FEATURES = ("z_omega", "pca", "hand", "random_encoder")
PROBE = "linear"


class Subset(NamedTuple):
    """Training rows of a few groups, and the groups of those rows."""

    rows: Int[np.ndarray, " n"]
    groups: Int[np.ndarray, " n"]


def efficiency_table(
    sets: dict[str, Float[np.ndarray, "_ B _"]],
    exams: dict[str, Exam],
    groups: Int[np.ndarray, " B"],
    config: Probe,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] = silent,
) -> pd.DataFrame:
    """The linear probe fitted on 2, 4, ... and all training groups, scored on all test groups; columns are `COLUMNS`.

    A value is the mean over repeats (random subsets, the smaller within the larger) and encoder seeds; its interval
    draws test groups and encoder seeds.
    """
    features = [name for name in FEATURES if name in sets]
    subsets = {label: nested_subsets(label, exam, groups, config) for label, exam in exams.items()}
    calls = {}
    for label, exam in exams.items():
        alone = exam._replace(permuted=exam.permuted[:0])  # the labels of the control are not needed in each process
        for name, size in ((name, size) for name in features for size in subsets[label]):
            for encoder, x in enumerate(sets[name]):
                for repeat, subset in enumerate(subsets[label][size]):
                    calls[label, name, size, repeat, encoder] = (x, alone, subset, config.fit_only())
    sums = call_all(fit_subset, calls, jobs=config.jobs, folder=cache, progress=progress)
    records = []
    for label, exam in exams.items():
        n_encoders = {len(sets[name]) for name in features}
        weights = draw_weights(config.seed, label, exam.n_groups, n_encoders, config.bootstrap)
        for name, (size, repeats) in ((name, item) for name in features for item in subsets[label].items()):
            of_repeats = [
                sample([sums[label, name, size, repeat, encoder] for encoder in range(len(sets[name]))], weights)
                for repeat in range(len(repeats))
            ]
            whole = mean_of(of_repeats)
            records.append((label, name, PROBE, size, whole.value, *interval_of(whole), note_of(exam, repeats)))
    return pd.DataFrame.from_records(records, columns=COLUMNS)


def nested_subsets(label: str, exam: Exam, groups: Int[np.ndarray, " B"], config: Probe) -> dict[int, list[Subset]]:
    """Subsets by number of groups; those of one repeat lie within each other. All groups are one subset."""
    rng = generator(config.seed, label, "label efficiency")
    own = groups[exam.train]
    orders = [group_order(exam.values[exam.train], own, exam.kind, rng) for _ in range(config.efficiency_repeats)]
    n = len(orders[0])
    sizes = sorted({size for size in config.efficiency if size < n} | {n})
    return {
        size: [
            Subset(exam.train[np.isin(own, order[:size])], own[np.isin(own, order[:size])])
            for order in (orders if size < n else orders[:1])
        ]
        for size in sizes
    }


def group_order(
    values: Num[np.ndarray, " n"], groups: Int[np.ndarray, " n"], kind: str, rng: np.random.Generator
) -> Int[np.ndarray, " G"]:
    """Groups in random order; where a class is constant in each group, one of every class before a second of any."""
    order = rng.permutation(np.unique(groups))
    if kind == "real" or len(np.unique(np.stack([groups, values]), axis=1).T) > len(order):
        return order
    own = np.array([values[groups == group][0] for group in order])
    turn = np.array([(own[:i] == own[i]).sum() for i in range(len(own))])
    return order[np.argsort(turn, kind="stable")]


def fit_subset(x: Float[np.ndarray, "B F"], exam: Exam, subset: Subset, config: Probe) -> Sums:
    """Fit on the subset with a strength chosen by folds within it; where it has one value, say that value."""
    y, test = exam.values, exam.test
    fitted = y[subset.rows]
    if len(np.unique(fitted)) < 2:
        return sums_of(exam, y[test], np.full(len(test), fitted[0]), float(y[exam.train].mean()))
    with threadpool_limits(1):
        folds = group_folds(subset.rows, subset.groups, config.folds)
        choice = choose_strength(PROBE, exam.kind, x, y, folds, config)
        guess = predict(PROBE, exam.kind, x[subset.rows], fitted, x[test], choice.strength, config)
    return sums_of(exam, y[test], guess.values, float(y[exam.train].mean()))


def note_of(exam: Exam, repeats: list[Subset]) -> str:
    """Whether a subset leaves out a class, which the probe then cannot name."""
    if exam.kind == "real":
        return ""
    short = sum(len(np.unique(exam.values[subset.rows])) < exam.n_classes for subset in repeats)
    return f"{short} of {len(repeats)} subsets lack a class" if short else ""
