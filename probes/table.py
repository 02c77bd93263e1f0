"""The probe table: every label, feature set and probe in one frame, with controls, intervals and paired differences.

Letters: B episodes, N agents, Zw joint latent, Za local latent.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from jaxtyping import Float, Int32
from joblib import Parallel, delayed

from data_gen.trajectory import SPLITS, Dataset, FeatureMask, Features, InputError, Labels, RowIndex, TrajectoryBatch
from probes.controls import generator
from probes.exam import Exam, Result, group_exam, majority_result, run_exam, seed_exam
from probes.features import FEATURES, feature_sets
from probes.labels import CONFOUNDS, Target, checkpoint_target, make_targets, seed_target
from probes.probe import Probe
from probes.scores import METRICS, draw_groups, interval, point, score

COLUMNS = (
    "label level features probe metric value ci_low ci_high chance control selectivity "
    "zw_minus_this zw_minus_low zw_minus_high n_groups n_rows note "
    "minus_control minus_control_low minus_control_high"
).split()
FEW_GROUPS = 10


class Scored(NamedTuple):
    """A result with its score over all test groups and over each bootstrap draw of them."""

    result: Result
    value: float
    draws: Float[np.ndarray, " D"]


def silent(done: int, total: int) -> None:
    """Progress for nobody."""


def probe_table(
    config: Probe,
    *,
    batch: TrajectoryBatch,
    features: FeatureMask,
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    labels: Labels,
    hand: Features,
    z_omega: Float[np.ndarray, "_ Zw"],
    z_alpha: Float[np.ndarray, "_ N Za"],
    random_encoder: Float[np.ndarray, "_ Zr"],
    progress: Callable[[int, int], None] = silent,
) -> pd.DataFrame:
    """Probe every label from every feature set; columns are `COLUMNS`, one row a label, feature set and probe.

    A label that cannot be evaluated is one row that says why. The result does not depend on the number of jobs.
    Raises InputError where a named label does not exist or cannot be evaluated, none can be, a group is in two splits,
    or the inputs do not fit together.
    """
    check_split(rows, split)
    targets = make_targets(labels, rows, split, config.labels)
    check_targets(targets, config)
    targets = (*targets, seed_target(rows), checkpoint_target(rows, split))
    sets = feature_sets(
        batch,
        split == SPLITS.index("train"),
        features=features,
        hand=hand,
        z_omega=z_omega,
        z_alpha=z_alpha,
        random_encoder=random_encoder,
        seed=config.seed,
    )
    exams = {target.name: make_exam(target, rows, split, config) for target in targets if not target.failure}
    results = run_all(sets, exams, config, progress)
    records = []
    for target in targets:
        if target.failure:
            records.append(failed_record(target, config))
            continue
        for probe in config.probes:
            of_probe = {name: results[target.name, name, probe] for name in FEATURES}
            records.extend(records_of(target, exams[target.name], probe, of_probe, config))
    return pd.DataFrame.from_records(records, columns=COLUMNS)


def check_split(rows: RowIndex, split: Int32[np.ndarray, " B"]) -> None:
    """Raise InputError where a group is in two splits, or there is nothing to fit on or to score."""
    pairs = np.unique(np.stack([rows.group, split], 1), axis=0)
    groups, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        raise InputError(
            f"group {groups[counts > 1][0]} has episodes in more than one split, {(counts > 1).sum()} group(s) in all; "
            "a probe scored on it would be scored on what it was fitted on. Split the data set by group."
        )
    for name in ("train", "test"):
        if not (split == SPLITS.index(name)).any():
            raise InputError(
                f"the {name} split is empty, so no probe can be fitted and scored; split the groups again."
            )


def check_targets(targets: tuple[Target, ...], config: Probe) -> None:
    """Raise InputError where nothing of a label the user named can be evaluated, or no label at all can be."""
    for target in targets:
        if target.name in CONFOUNDS:
            raise InputError(f"a label is called '{target.name}', a name kept for the confound rows; rename the label.")
    for name in config.labels:
        chosen = [target for target in targets if name in (target.label, target.name)]
        if all(target.failure for target in chosen):
            raise InputError(f"probe.labels: '{name}' cannot be evaluated. {_reasons(chosen)} Name other labels.")
    if all(target.failure for target in targets):
        raise InputError(f"probes: the data set has no label that can be evaluated. {_reasons(targets)}")


def check_labels(config: Probe, found: Dataset) -> None:
    """Raise InputError, before any training, where a label to probe is not in the data set or cannot be evaluated."""
    check_targets(make_targets(found.labels, found.rows, found.split, config.labels), config)


def _reasons(targets: Sequence[Target]) -> str:
    return " ".join(f"{target.name}: {target.failure}." for target in targets)


def make_exam(target: Target, rows: RowIndex, split: Int32[np.ndarray, " B"], config: Probe) -> Exam:
    """The examination of a target; the training seed is the one that is not split by group."""
    if target.name == "training_seed":
        return seed_exam(target, config)
    return group_exam(target, rows, split, config)


def run_all(
    sets: dict[str, np.ndarray], exams: dict[str, Exam], config: Probe, progress: Callable[[int, int], None]
) -> dict[tuple[str, str, str], Result]:
    """Every (label, feature set, probe), in parallel processes; the slow ones first, so that none is waited for."""
    keys = [(label, name, probe) for label in exams for name in sets for probe in config.probes]
    keys.sort(key=lambda key: (key[2] != "mlp", -sets[key[1]].shape[1] * exams[key[0]].n_classes))
    results: dict[tuple[str, str, str], Result] = {}
    # Arrays are sent, not memory-mapped: they are small, and a mapped folder outlives a killed run.
    parallel = Parallel(n_jobs=config.jobs or -1, return_as="generator", max_nbytes=None)
    calls = [delayed(run_exam)(sets[name], exams[label], probe, config) for label, name, probe in keys]
    outcomes = cast(Iterator[Result], parallel(calls))
    for key, result in zip(keys, outcomes, strict=True):
        results[key] = result
        progress(len(results), len(keys))
    for label, exam in exams.items():
        results |= {(label, "majority", probe): majority_result(exam) for probe in config.probes}
    return results


def records_of(
    target: Target, exam: Exam, probe: str, results: dict[str, Result], config: Probe
) -> list[dict[str, Any]]:
    """The rows of one label and probe; every score is bootstrapped over the same draws of the test groups."""
    weights = draw_groups(generator(config.seed, target.name, "bootstrap"), exam.n_groups, config.bootstrap)
    scored = {name: Scored(result, point(result.task), score(result.task, weights)) for name, result in results.items()}
    shared = {
        "label": target.name,
        "level": target.level,
        "probe": probe,
        "metric": METRICS[target.kind],
        "chance": 1 / exam.n_classes if target.kind == "class" else 0.0,
        "n_groups": exam.n_groups,
        "n_rows": len(exam.test),
    }
    return [
        shared
        | {"features": name, "note": note_of(target, exam, name, one.result)}
        | own_columns(one, weights)
        | difference_columns(scored["z_omega"], one, name == "z_omega")
        for name, one in scored.items()
    ]


def own_columns(one: Scored, weights: Float[np.ndarray, "D G"]) -> dict[str, float]:
    """A row's value, its controls, and its margin over its own negative control on the same draws."""
    low, high = interval(one.draws)
    columns = {"value": one.value, "ci_low": low, "ci_high": high, "control": np.nan, "selectivity": np.nan}
    columns |= dict.fromkeys(("minus_control", "minus_control_low", "minus_control_high"), np.nan)
    columns["selectivity"] = one.value - one.result.memorised
    if one.result.negative:
        columns["control"] = float(np.mean([point(sums) for sums in one.result.negative]))
        margin = one.draws - np.mean([score(sums, weights) for sums in one.result.negative], 0)
        low, high = interval(margin)
        columns |= {"minus_control": one.value - columns["control"]}
        columns |= {"minus_control_low": low, "minus_control_high": high}
    return columns


def difference_columns(z_omega: Scored, one: Scored, same: bool) -> dict[str, float]:
    """z_omega minus this row over the same draws; z_omega has no difference to itself."""
    if same:
        return dict.fromkeys(("zw_minus_this", "zw_minus_low", "zw_minus_high"), np.nan)
    low, high = interval(z_omega.draws - one.draws)
    return {"zw_minus_this": z_omega.value - one.value, "zw_minus_low": low, "zw_minus_high": high}


def note_of(target: Target, exam: Exam, name: str, result: Result) -> str:
    """What a reader must know to trust the row."""
    notes = [target.note, result.note]
    if exam.n_groups < FEW_GROUPS:
        notes.append(
            f"only {exam.n_groups} test groups: a nominal 95 % interval covered .74 with 3, .86 with 5, .90 with 10"
        )
    if name != "majority" and not exam.within_groups:
        notes += ["negative control not run"] * (not result.negative)
        notes += ["selectivity not run: no unit has two episodes"] * bool(np.isnan(result.memorised))
    return "; ".join(note for note in notes if note)


def failed_record(target: Target, config: Probe) -> dict[str, Any]:
    """The one row of a label that cannot be evaluated."""
    shared = {"label": target.name, "level": target.level, "features": "z_omega", "probe": config.probes[0]}
    empty = {name: np.nan for name in COLUMNS if name not in shared}
    counts = {"metric": METRICS[target.kind], "n_groups": 0, "n_rows": 0}
    return empty | shared | counts | {"note": f"not evaluated: {target.failure}"}
