"""The rows of one label's interventions: how far behaviour follows the latent that was put in place of another.

Letters: R rollouts of an arm, G test groups, D bootstrap draws, S shifts along a direction.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from data_gen.trajectory import Dataset, RowIndex
from probes.controls import generator
from probes.interventions.effects import Estimate, correlation, estimate, slopes
from probes.interventions.intervention import BASE, OWN_LOCAL, SAME, SWAP, SWAP_LOCAL, Arm, Intervention, Seen, Trial
from probes.labels import Target
from probes.scores import draw_groups
from probes.table.rows import FEW_GROUPS

COLUMNS = (
    "label level kind effect ci_low ci_high control minus_control minus_control_low minus_control_high possible "
    "repeatable reproduced changed changed_low changed_high changed_control stayed n_pairs n_rollouts n_groups "
    "return_recorded return_before return_after failed outside_before outside_after note"
).split()
CURVE_COLUMNS = "label kind at value ci_low ci_high mean_return failed outside".split()


class Sample(NamedTuple):
    """What averages over a trial's rollouts need: the groups of the three ends, draws of the test groups, the scale."""

    a: Int[np.ndarray, " R"]
    b: Int[np.ndarray, " R"]
    same: Int[np.ndarray, " R"]
    draws: Float[np.ndarray, "D G"]
    mean: float
    deviation: float


def sample_of(trial: Trial, found: Dataset, config: Intervention) -> Sample:
    """Test groups that are in a pair are drawn together; numbers are scaled by the training episodes."""
    groups = [found.rows.group[rows] for rows in trial.pairs]
    names, codes = np.unique(np.concatenate(groups), return_inverse=True)
    a, b, same = codes.reshape(3, -1)
    draws = draw_groups(generator(config.seed, trial.target.name, "bootstrap"), len(names), config.bootstrap)
    known = trial.target.values[found.rows_of("train")][trial.target.keep[found.rows_of("train")]]
    return Sample(a, b, same, draws, mean=float(known.mean()), deviation=float(known.std()))


def outcome(trial: Trial, sample: Sample, arm: Arm) -> Float[np.ndarray, " R"]:
    """What an intervention should raise: whether the label is the class moved to; of a number, in training deviations,
    how far it lies towards the other episode's side, NaN where physics failed."""
    target, pairs, values = trial.target, trial.pairs, trial.seen[arm].values
    along = arm.kind in ("probe", "random")
    if target.kind == "class":
        return (values == (trial.toward if along else target.values[pairs.b])).astype(float)
    sign = 1.0 if along else np.sign(target.values[pairs.b] - target.values[pairs.a])
    return sign * (values - sample.mean) / sample.deviation


def along_outcomes(trial: Trial, sample: Sample, kind: str) -> tuple[list[float], Float[np.ndarray, "S R"]]:
    """Outcomes at every shift along a direction, the baseline at 0 among them."""
    shifts = sorted({arm.at for arm in trial.seen if arm.kind == kind} | {0.0})
    seen = {Arm(kind, 0.0): trial.seen[BASE]} | trial.seen
    at_zero = trial._replace(seen=seen)
    return shifts, np.stack([outcome(at_zero, sample, Arm(kind, shift)) for shift in shifts])


def records_of(trial: Trial, sample: Sample, found: Dataset) -> list[dict[str, Any]]:
    """The rows of one label."""
    target, pairs = trial.target, trial.pairs
    returns = np.asarray(found.outcomes.rewards).mean(2).sum(1)
    shared = {
        "label": target.name,
        "level": target.level,
        "n_pairs": np.unique(np.stack([pairs.a, pairs.b]), axis=1).shape[1],
        "n_rollouts": len(pairs.a),
        "n_groups": sample.draws.shape[1],
        "return_recorded": float(returns[pairs.a].mean()),
        "possible": possible(trial, sample),
        "repeatable": repeatable(target, pairs.a, found.rows),
        "note": note_of(trial, sample),
    }
    rows = [
        swap_row(trial, sample, BASE, SWAP, SAME) | {"kind": "swap"},
        swap_row(trial, sample, OWN_LOCAL, SWAP_LOCAL, None) | {"kind": "swap_local"},
        interpolate_row(trial, sample) | {"kind": "interpolate"},
        direction_row(trial, sample) | {"kind": "direction"},
    ]
    return [dict.fromkeys(COLUMNS, np.nan) | shared | row for row in rows]


def swap_row(trial: Trial, sample: Sample, base: Arm, swap: Arm, control: Arm | None) -> dict[str, Any]:
    """Risk difference, or standardised mean difference, of the other episode's latent against the own one.

    The control puts an episode of the own class in its place instead. `changed` is the share of rollouts with the other
    episode's class among those that had their own class before, `stayed` the share that keep it; the rest go elsewhere.
    """
    before, after = outcome(trial, sample, base), outcome(trial, sample, swap)
    both = [sample.a, sample.b]
    row = effect_columns(estimate(after - before, both, sample.draws))
    row |= health(trial.seen[base], trial.seen[swap]) | {"reproduced": reproduced(trial, base)}
    held = trial.seen[base].values == trial.target.values[trial.pairs.a]
    if trial.target.kind == "class":
        row |= changed_columns(estimate(np.where(held, after, np.nan), both, sample.draws))
        row["stayed"] = share(trial.seen[swap].values == trial.target.values[trial.pairs.a], held)
    if control is not None:
        placebo = outcome(trial, sample, control)
        row["control"] = estimate(placebo - before, [sample.a, sample.same], sample.draws).value
        row |= minus_columns(estimate(after - placebo, [*both, sample.same], sample.draws))
        if trial.target.kind == "class":
            row["changed_control"] = share(placebo, held)
    return row


def share(flags: np.ndarray, among: Bool[np.ndarray, " R"]) -> float:
    """How many of those rows have the flag; NaN where there are none."""
    return float(flags[among].mean()) if among.any() else np.nan


def interpolate_row(trial: Trial, sample: Sample) -> dict[str, Any]:
    """Slope of the outcome with the weight of the other episode's latent."""
    weights = sorted(arm.at for arm in trial.seen if arm.kind == "interpolate")
    outcomes = np.stack([outcome(trial, sample, Arm("interpolate", weight)) for weight in weights])
    middle = min(weights, key=lambda weight: abs(weight - 0.5))
    found = estimate(slopes(outcomes, weights), [sample.a, sample.b], sample.draws)
    seen = health(trial.seen[BASE], trial.seen[Arm("interpolate", middle)])
    return effect_columns(found) | seen | {"reproduced": reproduced(trial, BASE)}


def direction_row(trial: Trial, sample: Sample) -> dict[str, Any]:
    """Slope of the outcome with the shift along the probe's direction; the control moves as far in a random one.

    `changed` is the share of rollouts whose class differs between the ends of the shifts.
    """
    shifts, along = along_outcomes(trial, sample, "probe")
    _, strange = along_outcomes(trial, sample, "random")
    own, other, ends = slopes(along, shifts), slopes(strange, shifts), [sample.a]
    row = effect_columns(estimate(own, ends, sample.draws)) | minus_columns(estimate(own - other, ends, sample.draws))
    row |= {"control": estimate(other, ends, sample.draws).value, "possible": np.nan}
    seen = {Arm(kind, 0.0): trial.seen[BASE] for kind in ("probe", "random")} | trial.seen
    row |= health(trial.seen[BASE], seen[Arm("probe", shifts[-1])]) | {"reproduced": reproduced(trial, BASE)}
    if trial.target.kind == "class":
        probe, random = (
            (seen[Arm(kind, shifts[0])].values != seen[Arm(kind, shifts[-1])].values).astype(float)
            for kind in ("probe", "random")
        )
        row |= changed_columns(estimate(probe, ends, sample.draws)) | {"changed_control": float(random.mean())}
    return row


def reproduced(trial: Trial, base: Arm) -> float:
    """Share of rollouts under an episode's own latent that have its class; of numbers, the correlation with it."""
    values, recorded = trial.seen[base].values, trial.target.values[trial.pairs.a]
    return correlation(values, recorded) if trial.target.kind == "real" else float((values == recorded).mean())


def repeatable(target: Target, a: Int[np.ndarray, " R"], rows: RowIndex) -> float:
    """As `reproduced`, but by the recorded team: the other episodes of the same training seed and checkpoint."""
    teams = np.unique(np.stack([rows.group, rows.checkpoint]), axis=1, return_inverse=True)[1].ravel()
    teams = np.where(target.keep, teams, -1)
    found = []
    for row in a:
        others = target.values[(teams == teams[row]) & (np.arange(len(teams)) != row)]
        same = others if target.kind == "real" else others == target.values[row]
        found.append(same.mean() if len(same) else np.nan)
    if target.kind == "real":
        return correlation(np.array(found), target.values[a])
    return float(np.nanmean(found)) if np.isfinite(found).any() else np.nan


def possible(trial: Trial, sample: Sample) -> float:
    """The effect of a swap under which every rollout has the label of the episode that its latent came from."""
    if trial.target.kind == "class":
        return 1.0
    return float(
        np.abs(trial.target.values[trial.pairs.b] - trial.target.values[trial.pairs.a]).mean() / sample.deviation
    )


def effect_columns(found: Estimate) -> dict[str, float]:
    """An effect with its interval."""
    return {"effect": found.value, "ci_low": found.low, "ci_high": found.high}


def minus_columns(found: Estimate) -> dict[str, float]:
    """An effect less its control."""
    return dict(zip(("minus_control", "minus_control_low", "minus_control_high"), found, strict=True))


def changed_columns(found: Estimate) -> dict[str, float]:
    """How often the label changed."""
    return dict(zip(("changed", "changed_low", "changed_high"), found, strict=True))


def health(before: Seen, after: Seen) -> dict[str, float]:
    """What tells a label that follows from behaviour that only broke down."""
    return {
        "return_before": before.returns,
        "return_after": after.returns,
        "failed": after.failed,
        "outside_before": before.outside,
        "outside_after": after.outside,
    }


def curve_records(trial: Trial, sample: Sample) -> list[dict[str, Any]]:
    """Mean outcome of every arm; the baseline also stands at shift 0 of both directions."""
    seen = trial.seen | {Arm(kind, 0.0): trial.seen[BASE] for kind in ("probe", "random")}
    rows = []
    for arm, one in seen.items():
        ends = {"probe": [sample.a], "random": [sample.a], "same": [sample.a, sample.same]}
        values = outcome(trial._replace(seen=seen), sample, arm)
        found = estimate(values, ends.get(arm.kind, [sample.a, sample.b]), sample.draws)
        told = (trial.target.name, *arm, *found, one.returns, one.failed, one.outside)
        rows.append(dict(zip(CURVE_COLUMNS, told, strict=True)))
    return sorted(rows, key=lambda row: (row["kind"], row["at"]))


def note_of(trial: Trial, sample: Sample) -> str:
    """What a reader must know to trust the rows."""
    notes = [trial.target.note]
    if sample.draws.shape[1] < FEW_GROUPS:
        notes.append(f"only {sample.draws.shape[1]} test groups, so the intervals are too narrow")
    if not trial.converged:
        notes.append("lbfgs did not converge for the direction")
    return "; ".join(note for note in notes if note)


def failed_record(target: Target, failure: str) -> dict[str, Any]:
    """The one row of a label without pairs."""
    counts = {"n_pairs": 0, "n_rollouts": 0, "n_groups": 0}
    told = {"label": target.name, "level": target.level, "kind": "swap", "note": f"not evaluated: {failure}"}
    return dict.fromkeys(COLUMNS, np.nan) | counts | told
