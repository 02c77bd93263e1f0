"""One target's examination: who is fitted on, who is scored, and with which control labels; the same for all features.

Letters: B rows, P permutations, F features.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32, Num
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from data_gen.trajectory import SPLITS, RowIndex
from probes.controls import generator, halves_within, negative_labels, unit_labels
from probes.labels import Target
from probes.probe import Folds, Probe, choose_strength, predict
from probes.scores import Sums, class_sums, point, recall_of_groups, skill_sums


class Exam(NamedTuple):
    """Rows and labels of one target. `groups` numbers each row's bootstrap group; `folds` choose a probe's strength.

    `permuted` [P, B] are the labels of the negative control, `drawn` those of the memorised control with its own rows;
    both are empty where a control does not apply.
    """

    kind: str
    n_classes: int
    values: Num[np.ndarray, " B"]
    groups: Int[np.ndarray, " B"]
    n_groups: int
    train: Int[np.ndarray, " n"]
    test: Int[np.ndarray, " m"]
    folds: dict[str, Folds]
    permuted: Num[np.ndarray, "P B"]
    drawn: Num[np.ndarray, " B"]
    drawn_fit: Int[np.ndarray, " a"]
    drawn_score: Int[np.ndarray, " b"]
    within_groups: bool


class Result(NamedTuple):
    """What one probe of one feature set did: sums per group for the task and each permutation, and a note."""

    task: Sums
    negative: list[Sums]
    memorised: float
    note: str


def group_exam(target: Target, rows: RowIndex, split: Int32[np.ndarray, " B"], config: Probe) -> Exam:
    """The examination of a label: fitted on training groups, scored once on test groups.

    The linear probe's strength comes from folds of whole training groups, the MLP's from the validation groups
    (from the same folds where there are none).
    """
    train, validation, test = (np.flatnonzero(target.keep & (split == i)) for i in range(len(SPLITS)))
    folds = group_folds(train, rows.group[train], config.folds)
    codes = np.zeros(len(split), int)
    codes[test] = np.unique(rows.group[test], return_inverse=True)[1].ravel()
    rng = generator(config.seed, target.name, "negative control")
    n_permuted = max(config.permutations_of(probe) for probe in config.probes)
    permuted = [negative_labels(target.values, target.unit, train, test, rng) for _ in range(n_permuted)]
    rng = generator(config.seed, target.name, "memorised control")
    drawn_fit, drawn_score = halves_within(target.unit, np.flatnonzero(target.keep), rng)
    return Exam(
        kind=target.kind,
        n_classes=max(len(target.classes), 1),
        values=target.values,
        groups=codes,
        n_groups=int(codes.max()) + 1,
        train=train,
        test=test,
        folds={"linear": folds, "mlp": [(train, validation)] if len(validation) else folds},
        permuted=np.stack(permuted) if permuted else np.zeros((0, len(split))),
        drawn=unit_labels(target.values, target.unit, target.keep, rng),
        drawn_fit=drawn_fit,
        drawn_score=drawn_score,
        within_groups=False,
    )


def seed_exam(target: Target, config: Probe) -> Exam:
    """The examination of the training seed: half of each seed's episodes fitted on, the other half scored."""
    rng = generator(config.seed, target.name, "halves")
    train, test = halves_within(target.unit, np.flatnonzero(target.keep), rng)
    fold = halves_within(target.unit, train, rng)
    codes = np.unique(target.values[target.keep], return_inverse=True)[1].ravel()
    values = np.zeros(len(target.values), int)
    values[target.keep] = codes
    return Exam(
        kind="class",
        n_classes=int(codes.max()) + 1,
        values=values,
        groups=values,
        n_groups=int(codes.max()) + 1,
        train=train,
        test=test,
        folds={"linear": [fold], "mlp": [fold]},
        permuted=np.zeros((0, len(values))),
        drawn=values,
        drawn_fit=np.zeros(0, int),
        drawn_score=np.zeros(0, int),
        within_groups=True,
    )


def group_folds(rows: Int[np.ndarray, " n"], groups: Int[np.ndarray, " n"], n_folds: int) -> Folds:
    """Pairs of (rows to fit on, rows to score), no group on both sides."""
    n_folds = min(n_folds, len(np.unique(groups)))
    return [(rows[fit], rows[score]) for fit, score in GroupKFold(n_folds).split(rows, groups=groups)]


def run_exam(x: Float[np.ndarray, "B F"], exam: Exam, probe: str, config: Probe) -> Result:
    """One probe of one feature set: strength, task, negative control and memorised control, on one BLAS thread.

    The controls use the strength that the task chose.
    """
    with threadpool_limits(1):
        choice = choose_strength(probe, exam.kind, x, exam.values, exam.folds[probe], config)
        task, task_ok = _fit(x, exam, probe, exam.values, choice.strength, config)
        permuted = exam.permuted[: config.permutations_of(probe)]
        negative = [_fit(x, exam, probe, labels, choice.strength, config) for labels in permuted]
        memorised, memory_ok = _memorise(x, exam, probe, choice.strength, config)
    notes = []
    if not task_ok:
        notes.append(f"lbfgs did not converge at strength {choice.strength:g}")
    n_others = choice.n_unconverged + sum(not ok for _, ok in negative) + (not memory_ok)
    if n_others:
        notes.append(f"lbfgs did not converge in {n_others} fits of strength choice and controls")
    return Result(task=task, negative=[sums for sums, _ in negative], memorised=memorised, note="; ".join(notes))


def _fit(
    x: np.ndarray, exam: Exam, probe: str, labels: np.ndarray, strength: float, config: Probe
) -> tuple[Sums, bool]:
    labels = labels.astype(exam.values.dtype)
    fitted, scored = labels[exam.train], labels[exam.test]
    guess = predict(probe, exam.kind, x[exam.train], fitted, x[exam.test], strength, config)
    return sums_of(exam, scored, guess.values, float(fitted.mean())), guess.converged


def sums_of(exam: Exam, scored: Num[np.ndarray, " m"], predicted: Num[np.ndarray, " m"], constant: float) -> Sums:
    """Sums per bootstrap group of predictions for the test rows."""
    groups = exam.groups[exam.test]
    if exam.kind == "real":
        return skill_sums(scored, predicted, constant, groups, exam.n_groups)
    sums = class_sums(scored, predicted, groups, (exam.n_groups, exam.n_classes))
    return recall_of_groups(sums) if exam.within_groups else sums


def majority_result(exam: Exam) -> Result:
    """The commonest training class, or the training mean, for every row."""
    fitted = exam.values[exam.train]
    constant = float(fitted.mean())
    guess = np.bincount(fitted).argmax() if exam.kind == "class" else constant
    predicted = np.full(len(exam.test), guess, dtype=exam.values.dtype)
    return Result(
        task=sums_of(exam, exam.values[exam.test], predicted, constant), negative=[], memorised=np.nan, note=""
    )


def _memorise(x: np.ndarray, exam: Exam, probe: str, strength: float, config: Probe) -> tuple[float, bool]:
    fit, score = exam.drawn_fit, exam.drawn_score
    if not len(score) or len(np.unique(exam.drawn[fit])) < 2:
        return np.nan, True
    guess = predict(probe, exam.kind, x[fit], exam.drawn[fit], x[score], strength, config)
    nowhere, constant = np.zeros(len(score), int), float(exam.drawn[fit].mean())
    if exam.kind == "real":
        return point(skill_sums(exam.drawn[score], guess.values, constant, nowhere, 1)), guess.converged
    return point(class_sums(exam.drawn[score], guess.values, nowhere, (1, exam.n_classes))), guess.converged
