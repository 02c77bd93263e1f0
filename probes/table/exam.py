"""One target's examination: who is fitted on, who is scored, and with which control labels; the same for all features.

Letters: B rows, P permutations, F features, K classes.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32, Num
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_limits

from data_gen.trajectory import SPLITS, RowIndex
from probes.controls import generator, halves_within, negative_labels, unit_labels
from probes.labels import Target
from probes.probe import Folds, Prediction, Probe, choose_strength, predict
from probes.scores import Sums, auroc, class_sums, macro_f1, point, recall_of_groups, skill_sums
from probes.table.mdl import code_bits, code_blocks


class Exam(NamedTuple):
    """Rows and labels of one target. `groups` numbers each row's bootstrap group; `folds` choose a probe's strength.

    `permuted` [P, B] are the labels of the negative control, `drawn` those of the memorised control with its own rows,
    `blocks` the training rows as the online code sends them; each is empty where it does not apply.
    """

    kind: str
    n_classes: int
    values: Num[np.ndarray, " B"]
    groups: Int[np.ndarray, " B"]
    n_groups: int
    train: Int[np.ndarray, " n"]
    validation: Int[np.ndarray, " v"]
    test: Int[np.ndarray, " m"]
    folds: dict[str, Folds]
    permuted: Num[np.ndarray, "P B"]
    drawn: Num[np.ndarray, " B"]
    drawn_fit: Int[np.ndarray, " a"]
    drawn_score: Int[np.ndarray, " b"]
    blocks: list[Int[np.ndarray, " _"]]
    within_groups: bool


class Result(NamedTuple):
    """What one probe of one feature set did: sums per group for the task and each permutation, scores, and a note."""

    task: Sums
    negative: list[Sums]
    memorised: float
    macro_f1: float
    auroc: float
    code_bits: float
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
    coded = config.online_code and target.kind == "class"
    order = generator(config.seed, target.name, "online code")
    return Exam(
        kind=target.kind,
        n_classes=max(len(target.classes), 1),
        values=target.values,
        groups=codes,
        n_groups=int(codes.max()) + 1,
        train=train,
        validation=validation,
        test=test,
        folds={"linear": folds, "mlp": [(train, validation)] if len(validation) else folds},
        permuted=np.stack(permuted) if permuted else np.zeros((0, len(split))),
        drawn=unit_labels(target.values, target.unit, target.keep, rng),
        drawn_fit=drawn_fit,
        drawn_score=drawn_score,
        blocks=code_blocks(target.values, rows.group, train, order) if coded else [],
        within_groups=False,
    )


def within_group_exam(target: Target, config: Probe) -> Exam:
    """The examination of the group: half of each one's episodes fitted on, the other half scored."""
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
        validation=np.zeros(0, int),
        test=test,
        folds={"linear": [fold], "mlp": [fold]},
        permuted=np.zeros((0, len(values))),
        drawn=values,
        drawn_fit=np.zeros(0, int),
        drawn_score=np.zeros(0, int),
        blocks=[],
        within_groups=True,
    )


def group_folds(rows: Int[np.ndarray, " n"], groups: Int[np.ndarray, " n"], n_folds: int) -> Folds:
    """Pairs of (rows to fit on, rows to score), no group on both sides."""
    n_folds = min(n_folds, len(np.unique(groups)))
    return [(rows[fit], rows[score]) for fit, score in GroupKFold(n_folds).split(rows, groups=groups)]


def run_exam(x: Float[np.ndarray, "B F"], exam: Exam, probe: str, config: Probe) -> Result:
    """One probe of one feature set: strength, task, controls and online code, on one BLAS thread.

    The controls use the strength that the task chose.
    """
    with threadpool_limits(1):
        folds = exam.folds[probe]
        choice = choose_strength(probe, exam.kind, x, exam.values, folds, config)
        # The MLP's choice has fitted the training rows already.
        fitted = len(folds) == len(choice.fits) == 1 and np.array_equal(folds[0][0], exam.train)
        task = choice.fits[0](x[exam.test]) if fitted else _fit(x, exam, probe, exam.values, choice.strength, config)
        permuted = [labels.astype(exam.values.dtype) for labels in exam.permuted[: config.permutations_of(probe)]]
        negative = [_fit(x, exam, probe, labels, choice.strength, config) for labels in permuted]
        memorised, memory_ok = _memorise(x, exam, probe, choice.strength, config)
        bits = np.nan
        if exam.blocks:
            bits = code_bits(probe, x, exam.values, exam.blocks, exam.n_classes, config)
    notes = []
    if not task.converged:
        notes.append(f"lbfgs did not converge at strength {choice.strength:g}")
    n_others = choice.n_unconverged + sum(not guess.converged for guess in negative) + (not memory_ok)
    if n_others:
        notes.append(f"lbfgs did not converge in {n_others} fits of strength choice and controls")
    return result_of(exam, task)._replace(
        negative=[
            sums_of(exam, labels[exam.test], guess.values, float(labels[exam.train].mean()))
            for labels, guess in zip(permuted, negative, strict=True)
        ],
        memorised=memorised,
        code_bits=bits,
        note="; ".join(notes),
    )


def _fit(x: np.ndarray, exam: Exam, probe: str, labels: np.ndarray, strength: float, config: Probe) -> Prediction:
    return predict(probe, exam.kind, x[exam.train], labels[exam.train], x[exam.test], strength, config)


def result_of(exam: Exam, guess: Prediction) -> Result:
    """The scores of a prediction of the test rows, without controls and code."""
    y, classes = exam.values[exam.test], exam.kind == "class"
    whole = np.zeros((len(y), exam.n_classes))
    whole[:, guess.classes] = guess.probabilities
    return Result(
        task=sums_of(exam, y, guess.values, float(exam.values[exam.train].mean())),
        negative=[],
        memorised=np.nan,
        macro_f1=macro_f1(y, guess.values) if classes else np.nan,
        auroc=auroc(y, whole) if classes else np.nan,
        code_bits=np.nan,
        note="",
    )


def sums_of(exam: Exam, scored: Num[np.ndarray, " m"], predicted: Num[np.ndarray, " m"], constant: float) -> Sums:
    """Sums per bootstrap group of predictions for the test rows."""
    groups = exam.groups[exam.test]
    if exam.kind == "real":
        return skill_sums(scored, predicted, constant, groups, exam.n_groups)
    sums = class_sums(scored, predicted, groups, (exam.n_groups, exam.n_classes))
    return recall_of_groups(sums) if exam.within_groups else sums


def majority_result(exam: Exam) -> Result:
    """The commonest training class with the training frequencies, or the training mean, for every row."""
    fitted, m = exam.values[exam.train], len(exam.test)
    if exam.kind == "real":
        return result_of(exam, Prediction(np.full(m, fitted.mean()), True, np.zeros(0, int), np.zeros((m, 0))))
    counts = np.bincount(fitted, minlength=exam.n_classes)
    shares = np.tile(counts / counts.sum(), (m, 1))
    return result_of(exam, Prediction(np.full(m, counts.argmax()), True, np.arange(exam.n_classes), shares))


def _memorise(x: np.ndarray, exam: Exam, probe: str, strength: float, config: Probe) -> tuple[float, bool]:
    fit, score = exam.drawn_fit, exam.drawn_score
    if not len(score) or len(np.unique(exam.drawn[fit])) < 2:
        return np.nan, True
    guess = predict(probe, exam.kind, x[fit], exam.drawn[fit], x[score], strength, config)
    nowhere, constant = np.zeros(len(score), int), float(exam.drawn[fit].mean())
    if exam.kind == "real":
        return point(skill_sums(exam.drawn[score], guess.values, constant, nowhere, 1)), guess.converged
    return point(class_sums(exam.drawn[score], guess.values, nowhere, (1, exam.n_classes))), guess.converged
