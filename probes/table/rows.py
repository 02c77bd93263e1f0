"""The rows of the probe table: from what the probes did to a label, to numbers with intervals and what to know of them.

Letters: D bootstrap draws, G groups.
"""

from typing import Any

import numpy as np
import pandas as pd

from probes.bootstrap import Sample, Weights, draw_weights, interval_of, mean_of, minus, sample
from probes.features import OF_ENCODERS
from probes.labels import Target
from probes.probe import Probe
from probes.scores import METRICS
from probes.table.ceiling import FEATURES as SUPERVISED
from probes.table.ceiling import PROBE as END_TO_END
from probes.table.ceiling import share_of_ceiling
from probes.table.exam import Exam, Result
from probes.table.mdl import uniform_bits
from probes.table.significance import groups_needed, holm, p_value

COLUMNS = (
    "label level features probe metric value ci_low ci_high chance control selectivity "
    "zw_minus_this zw_minus_low zw_minus_high n_groups n_rows note "
    "minus_control minus_control_low minus_control_high "
    "n_encoders macro_f1 auroc mdl_bits compression p_value p_holm groups_for_05 of_ceiling transductive acausal"
).split()
FEW_GROUPS = 10
Results = dict[tuple[str, str], list[Result]]


def records_of(
    target: Target, exam: Exam, results: Results, config: Probe, trained_on_test: bool
) -> list[dict[str, Any]]:
    """The rows of one label, `results` by (probe, features) and one an encoder seed.

    Every score is bootstrapped over the same draws of test groups and encoder seeds. A row is compared with z_omega
    under its own probe; the supervised ceiling, which has none, with z_omega under the first.
    """
    n_encoders = {len(of_encoders) for of_encoders in results.values()}
    weights = draw_weights(config.seed, target.name, exam.n_groups, n_encoders, config.bootstrap)
    samples = {key: sample([one.task for one in found], weights) for key, found in results.items()}
    chance = 1 / exam.n_classes if target.kind == "class" else 0.0
    ceiling = samples.get((END_TO_END, SUPERVISED))
    shared = {
        "label": target.name,
        "level": target.level,
        "metric": METRICS[target.kind],
        "chance": chance,
        "n_groups": exam.n_groups,
        "n_rows": len(exam.test),
    }
    records = []
    for (probe, name), one in samples.items():
        found = results[probe, name]
        z_omega = samples[probe if probe != END_TO_END else config.probes[0], "z_omega"]
        records.append(
            shared
            | {"features": name, "probe": probe, "n_encoders": one.n_encoders}
            | {"note": note_of(target, exam, name, found, config)}
            | own_columns(one, found, weights)
            | score_columns(found, exam)
            | difference_columns(z_omega, one, name == "z_omega")
            | {"of_ceiling": np.nan if ceiling is None else share_of_ceiling(one.value, chance, *_low(ceiling))}
            | flags(name, trained_on_test)
        )
    return records


def _low(ceiling: Sample) -> tuple[float, float]:
    return ceiling.value, interval_of(ceiling)[0]


def own_columns(one: Sample, results: list[Result], weights: Weights) -> dict[str, float]:
    """A row's value, its controls, and its margin over its own negative control on the same draws."""
    low, high = interval_of(one)
    columns = {"value": one.value, "ci_low": low, "ci_high": high, "control": np.nan}
    columns |= dict.fromkeys(("minus_control", "minus_control_low", "minus_control_high"), np.nan)
    columns["selectivity"] = one.value - float(np.mean([result.memorised for result in results]))
    if results[0].negative:
        permutations = zip(*(result.negative for result in results), strict=True)
        control = mean_of([sample(list(of_encoders), weights) for of_encoders in permutations])
        low, high = interval_of(minus(one, control))
        columns |= {"control": control.value, "minus_control": one.value - control.value}
        columns |= {"minus_control_low": low, "minus_control_high": high}
    return columns


def score_columns(results: list[Result], exam: Exam) -> dict[str, float]:
    """Further scores, means over encoder seeds without an interval."""
    bits = float(np.mean([result.code_bits for result in results]))
    return {
        "macro_f1": float(np.mean([result.macro_f1 for result in results])),
        "auroc": float(np.mean([result.auroc for result in results])),
        "mdl_bits": bits,
        "compression": uniform_bits(exam.blocks, exam.n_classes) / bits,
    }


def difference_columns(z_omega: Sample, one: Sample, same: bool) -> dict[str, float]:
    """z_omega minus this row over the same draws; z_omega has no difference to itself."""
    names = ("zw_minus_this", "zw_minus_low", "zw_minus_high", "p_value", "groups_for_05")
    if same:
        return dict.fromkeys(names, np.nan)
    gap = minus(z_omega, one)
    return dict(zip(names, (gap.value, *interval_of(gap), p_value(gap), groups_needed(gap)), strict=True))


def flags(name: str, trained_on_test: bool) -> dict[str, bool]:
    """Whether features were made with the test episodes in training, and whether they see the whole episode at once."""
    of_encoder = name in OF_ENCODERS or name == SUPERVISED
    return {"transductive": of_encoder and trained_on_test, "acausal": name != "majority"}


def note_of(target: Target, exam: Exam, name: str, results: list[Result], config: Probe) -> str:
    """What a reader must know to trust the row."""
    notes = [target.note, *dict.fromkeys(result.note for result in results)]
    if exam.n_groups < FEW_GROUPS:
        notes.append(
            f"only {exam.n_groups} test groups: a nominal 95 % interval covered .71 with 3, .91 with 5, .92 with 10"
        )
    if (name in OF_ENCODERS or name == SUPERVISED) and len(results) < config.encoders:
        notes.append("one encoder" if len(results) == 1 else f"only {len(results)} encoder seeds")
    first, n_rows = len(exam.blocks[0]) if exam.blocks else 0, sum(map(len, exam.blocks))
    if not np.isnan(results[0].code_bits) and 2 * first > n_rows:
        notes.append(f"online code starts after {first} of {n_rows} rows, where every class was seen")
    if name != "majority" and not exam.within_groups:
        notes += ["negative control not run"] * (not results[0].negative)
        notes += ["selectivity not run: no unit has two episodes"] * unmemorised(name, results)
    return "; ".join(note for note in notes if note)


def unmemorised(name: str, results: list[Result]) -> bool:
    """Whether the memorised control could not be run; the supervised ceiling has none."""
    return name != SUPERVISED and bool(np.isnan(results[0].memorised))


def failed_record(target: Target, config: Probe, trained_on_test: bool) -> dict[str, Any]:
    """The one row of a label that cannot be evaluated."""
    shared = {"label": target.name, "level": target.level, "features": "z_omega", "probe": config.probes[0]}
    empty = {name: np.nan for name in COLUMNS if name not in shared}
    counts = {"metric": METRICS[target.kind], "n_groups": 0, "n_rows": 0, "n_encoders": 0}
    return empty | shared | counts | flags("z_omega", trained_on_test) | {"note": f"not evaluated: {target.failure}"}


def with_holm(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `p_holm`: p-values corrected over the labels within each feature set and probe.

    Confounds make no claim, so they are neither corrected nor counted.
    """
    counted = table[(table["level"] != "confound") & table["p_value"].notna()]
    corrected = pd.Series(np.nan, index=table.index)
    for _, block in counted.groupby(["features", "probe"]):
        corrected[block.index] = holm(np.asarray(block["p_value"], float))
    return table.assign(p_holm=corrected)
