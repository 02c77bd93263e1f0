"""Which run's joint latent holds more: the same probes on the same test groups, and paired differences to one of them.

Letters: B episodes, E encoder seeds, Zw joint latent.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int32

from data_gen.trajectory import SPLITS, InputError, Labels, RowIndex
from probes.audit import check_split, check_targets
from probes.bootstrap import Sample, draw_weights, interval_of, minus, sample
from probes.features import check_values, standardise
from probes.jobs import call_all, silent
from probes.labels import Target, make_targets
from probes.probe import Probe
from probes.report.figures import records
from probes.scores import METRICS
from probes.table.exam import group_exam, run_exam
from probes.table.findings import ranged
from probes.table.rows import FEW_GROUPS
from probes.table.significance import holm, p_value

COLUMNS = (
    "run label level probe metric chance value ci_low ci_high minus_reference minus_low minus_high p_value p_holm "
    "reference n_encoders n_groups note"
).split()


def compare(
    config: Probe,
    latents: dict[str, Float[np.ndarray, "_ B _"]],
    reference: str,
    *,
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    labels: Labels,
    progress: Callable[[int, int], None] = silent,
) -> pd.DataFrame:
    """The first of the config's probes on z_omega [E, B, Zw] of each run; columns are `COLUMNS`, a row a run and label.

    All runs are of the same episodes. Differences are each run's value less that of `reference`, over the same draws
    of test groups; encoder seeds are paired by their place where two runs have as many. `p_holm` is corrected over all
    differences of the table. A run whose latent is not finite has no value, and a note. Raises InputError where a label
    cannot be evaluated, or the latent of the reference is not finite.
    """
    check_split(rows, split)
    targets = make_targets(labels, rows, split, config.labels)
    check_targets(targets, config)
    config = replace(config, permutations=0, mlp_permutations=0, online_code=False)
    train = split == SPLITS.index("train")
    unfit = {name: why_unfit(name, values, len(split)) for name, values in latents.items()}
    if unfit[reference]:
        raise InputError(
            f"The reference cannot be compared with: {unfit[reference]}. Choose another one as reference=."
        )
    sets = {name: [standardise(one, train, False) for one in latents[name]] for name in latents if not unfit[name]}
    exams = {target.name: group_exam(target, rows, split, config) for target in targets if not target.failure}
    probe = config.probes[0]
    calls = {
        (label, name, encoder): (values, exam, probe, config.fit_only())
        for label, exam in exams.items()
        for name, encoders in sets.items()
        for encoder, values in enumerate(encoders)
    }
    results = call_all(run_exam, calls, jobs=config.jobs, folder=None, progress=progress)
    rows_of_table = []
    for target in targets:
        if target.failure:
            rows_of_table += [_unevaluated(target, probe, name, reference, target.failure) for name in latents]
            continue
        exam = exams[target.name]
        weights = draw_weights(config.seed, target.name, exam.n_groups, set(map(len, sets.values())), config.bootstrap)
        answers = {name: [results[target.name, name, i] for i in range(len(sets[name]))] for name in sets}
        samples = {name: sample([one.task for one in of_run], weights) for name, of_run in answers.items()}
        for name in latents:
            if unfit[name]:
                rows_of_table.append(_unevaluated(target, probe, name, reference, unfit[name]))
                continue
            one = samples[name]
            notes = [target.note, *dict.fromkeys(answer.note for answer in answers[name])]
            notes += [f"only {exam.n_groups} test groups"] * (exam.n_groups < FEW_GROUPS)
            record = _record(target, probe, name, reference, "; ".join(note for note in notes if note))
            record |= {"chance": 1 / exam.n_classes if target.kind == "class" else 0.0, "n_groups": exam.n_groups}
            rows_of_table.append(record | _numbers(one, None if name == reference else samples[reference]))
    table = pd.DataFrame.from_records(rows_of_table, columns=COLUMNS)
    tested = table.p_value.notna().to_numpy()
    table.loc[tested, "p_holm"] = holm(table.p_value.to_numpy(float)[tested])
    return table


def why_unfit(name: str, z_omega: Float[np.ndarray, "E B Zw"], n_rows: int) -> str:
    """Why a run cannot be probed; empty where it can."""
    try:
        check_values(f"z_omega of {name}", z_omega, n_rows, len(z_omega))
    except InputError as error:
        return str(error).split(";")[0]
    return ""


def _unevaluated(target: Target, probe: str, name: str, reference: str, why: str) -> dict[str, Any]:
    return _record(target, probe, name, reference, f"not evaluated: {why}")


def _record(target: Target, probe: str, name: str, reference: str, note: str) -> dict[str, Any]:
    told = {"run": name, "label": target.name, "level": target.level, "probe": probe, "metric": METRICS[target.kind]}
    return dict.fromkeys(COLUMNS, np.nan) | told | {"reference": reference, "n_groups": 0, "note": note}


def _numbers(one: Sample, other: Sample | None) -> dict[str, float]:
    """A run's value, and its difference to the reference, which has none to itself."""
    low, high = interval_of(one)
    numbers = {"value": one.value, "ci_low": low, "ci_high": high, "n_encoders": one.n_encoders}
    if other is not None:
        gap = minus(one, other)
        low, high = interval_of(gap)
        numbers |= {"minus_reference": gap.value, "minus_low": low, "minus_high": high, "p_value": p_value(gap)}
    return numbers


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """A row a run and a column a label: value [interval]; difference to the reference [interval]."""
    names, labels = list(dict.fromkeys(table.run)), list(dict.fromkeys(table.label))
    cells = {(row["run"], row["label"]): _cell(row) for row in records(table)}
    return pd.DataFrame(
        [{"run": name} | {label: cells[name, label] for label in labels} for name in names], columns=["run", *labels]
    )


def reading(table: pd.DataFrame) -> list[str]:
    """Under `wide`: how a cell reads, and what to know of a label before trusting its column."""
    first = records(table)[0]
    notes: dict[str, list[str]] = {}
    for row in records(table):
        for note in filter(None, row["note"].split("; ")):
            notes.setdefault(note, []).append(row["label"])
    return [
        f"A cell: the {first['probe']} probe of z_omega [95 % interval]; its difference to {first['reference']} "
        "[paired]. The intervals are not corrected for their number; p_holm in the CSV is.",
        *(f"{', '.join(dict.fromkeys(labels))}: {note}." for note, labels in notes.items()),
    ]


def _cell(row: dict[str, Any]) -> str:
    if np.isnan(row["value"]):
        return "not evaluated"
    told = ranged(row["value"], row["ci_low"], row["ci_high"])
    difference = ranged(row["minus_reference"], row["minus_low"], row["minus_high"], "+")
    return f"{told}; {difference}" if difference else told
