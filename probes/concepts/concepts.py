"""Concepts of the joint latent for every team label: how many, how complete, and what each of them looks like.

Letters: B rows, F features (the latent's width), M concepts.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Int32
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from data_gen.trajectory import SPLITS, RowIndex
from probes.audit import check_split
from probes.concepts.completeness import (
    Task,
    best_strength,
    completeness,
    fit_and_score,
    make_task,
    smallest_within_one_error,
)
from probes.concepts.episodes import episode_records, make_up, nearest_rows
from probes.concepts.vectors import Concepts, concept_scores, learn_concepts, make_lesson, unit_rows
from probes.controls import generator
from probes.features import check_values, standardise
from probes.labels import Target
from probes.probe import Probe, choose_strength
from probes.scores import METRICS, draw_groups, point, score
from probes.table.exam import group_folds
from probes.table.rows import FEW_GROUPS

COLUMNS = "label g n_concepts completeness ci_low ci_high full floor through metric n_groups note".split()
CURVE_COLUMNS = "label g n_concepts through se full floor completeness chosen".split()
VECTOR_COLUMNS = "label n_concepts concept stands_for make_up nearness on nearest_other".split()
EPISODE_COLUMNS = "label n_concepts concept rank row episode group checkpoint t0 cosine score value".split()


class ConceptTables(NamedTuple):
    """`concepts`: a row a label and g. `curve`: every number of concepts, on the rows that chose it. `vectors`: a row a
    concept, with its direction in the standardised latent. `episodes`: its nearest episodes. Docs: docs/concepts.md.
    """

    concepts: pd.DataFrame
    curve: pd.DataFrame
    vectors: pd.DataFrame
    episodes: pd.DataFrame


class Latent(NamedTuple):
    """The rows in an order that does not depend on the data set's, and the number each has there."""

    z: Float[np.ndarray, "B F"]
    rows: RowIndex
    split: Int32[np.ndarray, " B"]
    numbers: Int[np.ndarray, " B"]


class Records(NamedTuple):
    """One label's rows of the four tables."""

    concepts: list[dict[str, Any]]
    curve: list[dict[str, Any]]
    vectors: list[dict[str, Any]]
    episodes: list[dict[str, Any]]


def concept_tables(
    config: Concepts,
    probe: Probe,
    *,
    z_omega: Float[np.ndarray, "_ F"],
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    targets: tuple[Target, ...],
) -> ConceptTables:
    """Concepts of every team label in `targets`; `probe` says which g there are and how they are fitted.

    Concepts and g are fitted on training groups, their number is chosen on validation groups, completeness is of test
    groups. Nothing depends on the order of the rows or on the number of jobs. Raises InputError where a group is in two
    splits, or z_omega has not one row an episode or a number that is not finite.
    """
    check_split(rows, split)
    check_values("z_omega", z_omega[None], len(split), 1)
    order = np.lexsort((rows.t0, rows.episode, rows.checkpoint, rows.group))
    rows, split = RowIndex(*(column[order] for column in rows)), split[order]
    z = standardise(z_omega[order].astype(float), split == SPLITS.index("train"), together=False)
    latent = Latent(z=z, rows=rows, split=split, numbers=order)
    team = [
        target._replace(**{name: getattr(target, name)[order] for name in ("values", "keep", "unit")})
        for target in targets
        if target.level == "team"
    ]
    calls = [delayed(label_records)(target, latent, config, probe) for target in team]
    found = list(Parallel(n_jobs=probe.jobs or -1, max_nbytes=None)(calls))
    columns = (COLUMNS, CURVE_COLUMNS, [*VECTOR_COLUMNS, *direction_columns(z.shape[1])], EPISODE_COLUMNS)
    joined = [sum(parts, start=[]) for parts in zip(*found, strict=True)] or [[]] * len(columns)
    return ConceptTables(*(pd.DataFrame(part, columns=names) for part, names in zip(joined, columns, strict=True)))


def direction_columns(width: int) -> list[str]:
    """Names of the columns that hold a concept's unit vector."""
    return [f"z_{i}" for i in range(width)]


def label_records(target: Target, latent: Latent, config: Concepts, probe: Probe) -> Records:
    """One label's concepts, on one BLAS thread."""
    if target.failure:
        return Records([failed_record(target, g, target.failure) for g in probe.probes], [], [], [])
    task = make_task(target, latent.rows, latent.split, probe.folds)
    if not task.choosing:
        reason = "no part of the training groups holds two values, so the number of concepts cannot be chosen"
        return Records([failed_record(target, g, reason) for g in probe.probes], [], [], [])
    with threadpool_limits(1):
        return evaluated_records(target, task, latent, config, probe)


def evaluated_records(target: Target, task: Task, latent: Latent, config: Concepts, probe: Probe) -> Records:
    """Learn 1..most concepts on every choosing fold; each g then chooses its number and is scored once."""
    numbers = range(1, config.most + 1)
    folds = {m: [vectors_of(target, task, latent.z, fit, m, config) for fit, _ in task.choosing] for m in numbers}
    scores = {m: [concept_scores(latent.z, vectors, config.threshold) for vectors in folds[m]] for m in numbers}
    whole = len(task.choosing) == 1 and np.array_equal(task.choosing[0][0], task.train)
    records, shown = Records([], [], [], []), {}
    for g in probe.probes:
        penalty = full_strength(task, latent.z, g, probe)
        curve, chosen, strength = choose_number(target, task, latent.z, g, penalty, list(scores.values()), probe)
        vectors = folds[chosen][0] if whole else vectors_of(target, task, latent.z, task.train, chosen, config)
        record = test_record(target, task, latent.z, g, penalty, vectors, strength, config.threshold, probe)
        records.curve.extend(curve)
        records.concepts.append(record)
        if np.isfinite(record["completeness"]):
            shown[chosen] = vectors
    for vectors in shown.values():
        concepts, episodes = shown_records(target, task, latent, vectors, config)
        records.vectors.extend(concepts)
        records.episodes.extend(episodes)
    return records


def vectors_of(
    target: Target, task: Task, z: Float[np.ndarray, "B F"], fit: Int[np.ndarray, " n"], m: int, config: Concepts
) -> Float[np.ndarray, "M F"]:
    """The m concepts that are learned from some rows; a random stream of its own for each label and number."""
    lesson = make_lesson(z[fit], task.values[fit], task.kind, task.n_classes)
    return learn_concepts(lesson, m, config, generator(config.seed, target.name, f"{m} concepts")).vectors


def full_strength(task: Task, z: Float[np.ndarray, "B F"], g: str, probe: Probe) -> float:
    """The penalty of the probe of all of z_omega, chosen as in the probe table."""
    folds = group_folds(task.train, task.groups[task.train], probe.folds) if g == "linear" else task.choosing
    return choose_strength(g, task.kind, z, task.values, folds, probe).strength


def choose_number(
    target: Target,
    task: Task,
    z: Float[np.ndarray, "B F"],
    g: str,
    full_penalty: float,
    scores: list[list[Float[np.ndarray, "B _"]]],
    probe: Probe,
) -> tuple[list[dict[str, Any]], int, float]:
    """The curve over 1..most concepts, the number chosen from it and that number's penalty; test rows play no part."""
    full = fit_and_score(task, g, [z] * len(task.choosing), task.choosing, full_penalty, probe)[0]
    tried = [best_strength(task, g, features, probe) for features in scores]
    rng = generator(probe.seed, target.name, "number of concepts")
    weights = draw_groups(rng, len(full.totals), probe.bootstrap)
    through = np.array([point(sums) for sums, _ in tried])
    n = len(full.totals)  # a bootstrap of n groups has the variance of their mean times (n - 1) / n
    errors = np.array([np.nanstd(score(sums, weights)) for sums, _ in tried]) * np.sqrt(n / max(n - 1, 1))
    chosen = smallest_within_one_error(through, errors)
    records = []
    for i, (sums, _) in enumerate(tried):
        one = completeness(task.kind, full, sums, weights)
        record = {"label": target.name, "g": g, "n_concepts": i + 1, "through": one.through, "se": float(errors[i])}
        records.append(
            record | {"full": one.full, "floor": one.floor, "completeness": one.value, "chosen": i == chosen}
        )
    return records, chosen + 1, tried[chosen][1]


def test_record(
    target: Target,
    task: Task,
    z: Float[np.ndarray, "B F"],
    g: str,
    full_penalty: float,
    vectors: Float[np.ndarray, "M F"],
    strength: float,
    threshold: float,
    probe: Probe,
) -> dict[str, Any]:
    """Completeness over the test groups, by the bootstrap draws of the probe table."""
    folds = [(task.train, task.test)]
    full, full_ok = fit_and_score(task, g, [z], folds, full_penalty, probe)
    scores = concept_scores(z, vectors, threshold)
    through, through_ok = fit_and_score(task, g, [scores], folds, strength, probe)
    n_groups = len(full.totals)
    weights = draw_groups(generator(probe.seed, target.name, "bootstrap"), n_groups, probe.bootstrap)
    found = completeness(task.kind, full, through, weights)
    notes = [target.note, found.note]
    notes += ["lbfgs did not converge"] * (not (full_ok and through_ok))
    notes += [f"only {n_groups} test groups: the interval is too narrow"] * (n_groups < FEW_GROUPS)
    return {
        "label": target.name,
        "g": g,
        "n_concepts": len(vectors),
        "completeness": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "full": found.full,
        "floor": found.floor,
        "through": found.through,
        "metric": METRICS[task.kind],
        "n_groups": n_groups,
        "note": "; ".join(note for note in notes if note),
    }


def failed_record(target: Target, g: str, reason: str) -> dict[str, Any]:
    """The row of a label that cannot be evaluated."""
    empty = dict.fromkeys(COLUMNS, np.nan)
    named = {"label": target.name, "g": g, "n_concepts": 0, "metric": METRICS[target.kind], "n_groups": 0}
    return empty | named | {"note": f"not evaluated: {reason}"}


def shown_records(
    target: Target, task: Task, latent: Latent, vectors: Float[np.ndarray, "M F"], config: Concepts
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each concept with what it stands for, and its nearest episodes of the test groups, which did not shape it."""
    cosine = unit_rows(latent.z) @ vectors.T
    scores = concept_scores(latent.z, vectors, config.threshold)
    between = np.abs(vectors @ vectors.T) - np.eye(len(vectors))
    concepts, episodes = [], []
    for j, vector in enumerate(vectors):
        near = nearest_rows(cosine[:, j], latent.rows, task.test, config.nearest, config.per_group)
        named = {"label": target.name, "n_concepts": len(vectors), "concept": j}
        about = {
            "nearness": float(cosine[near, j].mean()),
            "on": float((scores[task.test, j] > 0).mean()),
            "nearest_other": float(between[j].max()),
        }
        directions = dict(zip(direction_columns(len(vector)), vector.tolist(), strict=True))
        concepts.append(named | make_up(target, near, task.test) | about | directions)
        found = episode_records(target, near, latent.rows, latent.numbers, cosine[:, j], scores[:, j])
        episodes.extend(named | one for one in found)
    return concepts, episodes
