"""The probe table: every label, feature set and probe in one frame, with controls, intervals and paired differences.

Letters: B episodes, E encoder seeds.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int32

from data_gen.trajectory import SPLITS, FeatureMask, Features, Labels, RowIndex, TrajectoryBatch
from probes.audit import check_copies, check_numbers, check_split, check_targets
from probes.features import FEATURES, Encoded, feature_sets
from probes.jobs import call_all, silent
from probes.labels import GROUP, Target, checkpoint_target, group_target, make_targets, within_checkpoint_target
from probes.probe import Probe
from probes.table import ceiling as supervised
from probes.table.ceiling import Ceiling, ceiling_results
from probes.table.efficiency import efficiency_table
from probes.table.exam import Exam, Result, group_exam, majority_result, run_exam, within_group_exam
from probes.table.rows import COLUMNS, Results, failed_record, records_of, with_holm


class Prepared(NamedTuple):
    """Features by name, labels and confounds as targets, and the examinations of those that can be evaluated."""

    sets: dict[str, Float[np.ndarray, "_ B _"]]
    targets: tuple[Target, ...]
    confounds: tuple[Target, ...]
    exams: dict[str, Exam]


def prepare(
    config: Probe,
    *,
    batch: TrajectoryBatch,
    features: FeatureMask,
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    labels: Labels,
    hand: Features,
    encoded: Encoded,
) -> Prepared:
    """Check the inputs and make what is examined.

    Raises InputError where a named label does not exist or cannot be evaluated, none can be, a group or a trajectory is
    in two splits, a real step is not finite, or the inputs do not fit together.
    """
    check_numbers(batch)
    check_split(rows, split)
    check_copies(batch, split)
    targets = make_targets(labels, rows, split, config.labels)
    check_targets(targets, config)
    within = within_checkpoint_target(labels, rows, split)
    confounds = (group_target(rows), checkpoint_target(rows, split), *([within] if within else []))
    train = split == SPLITS.index("train")
    sets = feature_sets(batch, train, features=features, hand=hand, encoded=encoded, seed=config.seed)
    evaluated = [target for target in (*targets, *confounds) if not target.failure]
    exams = {target.name: make_exam(target, rows, split, config) for target in evaluated}
    return Prepared(sets, targets, confounds, exams)


def probe_table(
    config: Probe,
    *,
    ceiling: Ceiling | None = None,
    cache: Path | None = None,
    progress: Callable[[int, int], None] = silent,
    encoded: Encoded,
    **inputs: Any,
) -> pd.DataFrame:
    """Probe every label from every feature set; columns are `COLUMNS`, one row a label, feature set and probe.

    `encoded` and `inputs` are what `prepare` takes, which says what is refused. A label that cannot be evaluated is one
    row that says why. The result does not depend on the number of jobs, nor on what the folder `cache` holds of earlier
    calls. `ceiling` trains encoders for each label but the confounds.
    """
    ready = prepare(config, encoded=encoded, **inputs)
    told = [target.name for target in ready.targets if not target.failure]
    answers = {name: ceiling_results(name, ready.exams[name], ceiling) for name in told} if ceiling else {}
    results = run_all(ready.sets, ready.exams, config, cache, progress)
    for name, found in answers.items():
        results[name][supervised.PROBE, supervised.FEATURES] = found
    records = []
    for target in (*ready.targets, *ready.confounds):
        if target.failure:
            records.append(failed_record(target, config, encoded.trained_on_test))
        else:
            exam, found = ready.exams[target.name], results[target.name]
            records.extend(records_of(target, exam, found, config, encoded.trained_on_test))
    return with_holm(pd.DataFrame.from_records(records, columns=COLUMNS))


def label_efficiency(
    config: Probe,
    *,
    cache: Path | None = None,
    progress: Callable[[int, int], None] = silent,
    rows: RowIndex,
    **inputs: Any,
) -> pd.DataFrame:
    """The linear probe of every label from few training groups, as `efficiency_table` has it; inputs of `prepare`."""
    ready = prepare(config, rows=rows, **inputs)
    exams = {target.name: ready.exams[target.name] for target in ready.targets if not target.failure}
    return efficiency_table(ready.sets, exams, rows.group, config, cache=cache, progress=progress)


def make_exam(target: Target, rows: RowIndex, split: Int32[np.ndarray, " B"], config: Probe) -> Exam:
    """The examination of a target; only the group itself is not split by group."""
    if target.name == GROUP:
        return within_group_exam(target, config)
    return group_exam(target, rows, split, config)


def run_all(
    sets: dict[str, Float[np.ndarray, "_ B _"]],
    exams: dict[str, Exam],
    config: Probe,
    cache: Path | None,
    progress: Callable[[int, int], None],
) -> dict[str, Results]:
    """Each label's results by (probe, features), one an encoder seed.

    The slow ones run first, so that none is waited for.
    """
    keys = [
        (label, name, probe, encoder)
        for label in exams
        for name in sets
        for probe in config.probes
        for encoder in range(len(sets[name]))
    ]
    keys.sort(key=lambda key: (key[2] != "mlp", -sets[key[1]].shape[2] * exams[key[0]].n_classes))
    calls = {
        (label, name, probe, encoder): (sets[name][encoder], exams[label], probe, config.fit_only())
        for label, name, probe, encoder in keys
    }
    found: dict[tuple[str, str, str, int], Result] = call_all(
        run_exam, calls, jobs=config.jobs, folder=cache, progress=progress
    )
    return {
        label: {
            (probe, name): [majority_result(exam)]
            if name == "majority"
            else [found[label, name, probe, encoder] for encoder in range(len(sets[name]))]
            for probe in config.probes
            for name in FEATURES
            if name in sets or name == "majority"
        }
        for label, exam in exams.items()
    }
