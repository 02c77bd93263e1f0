"""The rows of one label against loops over made-up rollouts, whose values owe nothing to any latent."""

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, Dataset, Outcomes
from probes.interventions.intervention import (
    BASE,
    OWN_LOCAL,
    SAME,
    SWAP,
    SWAP_LOCAL,
    Arm,
    Intervention,
    Seen,
    Trial,
    toward_of,
)
from probes.interventions.pairs import draw_pairs, ends_of
from probes.interventions.rows import direction_row, interpolate_row, sample_of, swap_row
from probes.labels import make_targets
from tests.probes.planted import planted_data

CONFIG = Intervention(pairs=60, repeats=1, bootstrap=50)
ARMS = [BASE, Arm("interpolate", 0.5), SWAP, SAME, OWN_LOCAL, SWAP_LOCAL]
SHIFTS = [Arm(kind, at) for kind in ("probe", "random") for at in (-2.0, 1.0)]


def data_set() -> Dataset:
    data = planted_data()
    still = np.zeros((len(data["split"]), 5), bool)
    return Dataset(
        **{name: data[name] for name in ("batch", "features", "rows", "labels", "hand", "split")},
        outcomes=Outcomes(rewards=data["batch"].obs[..., 0], terminated=still, truncated=still),
        action=ActionSpec("continuous", 1),
        meta={},
    )


def trial_of(name: str) -> tuple[Trial, Dataset]:
    data, rng = data_set(), np.random.default_rng(0)
    (target,) = make_targets(data.labels, data.rows, data.split, [name])
    pairs = draw_pairs(ends_of(target, data.rows, data.split, [], []), data.rows.group, CONFIG.pairs, rng)
    seen = {}
    for k, arm in enumerate(ARMS + SHIFTS):
        values = rng.normal(size=60) if target.kind == "real" else rng.integers(-1, 3, 60)
        if target.kind == "real":
            values[::9] = np.nan
        seen[arm] = Seen(values, returns=float(k), failed=k / 100, outside=k / 10)
    # Half of the rollouts have their own class before, so that what is counted among those differs from all.
    if target.kind == "class":
        seen[BASE].values[::2] = target.values[pairs.a[::2]]
    return Trial(target, pairs, toward_of(target, pairs, 1), True, seen), data


def test_a_swap_of_classes_counts_what_loops_count() -> None:
    trial, data = trial_of("mood")
    row = swap_row(trial, sample_of(trial, data, CONFIG), BASE, SWAP, SAME)
    y, (a, b, _) = trial.target.values, trial.pairs
    before, after, placebo = (trial.seen[arm].values for arm in (BASE, SWAP, SAME))
    counted = {name: [] for name in ("effect", "minus", "control", "own", "changed", "stayed", "changed_control")}
    for r in range(60):
        counted["effect"].append(int(after[r] == y[b[r]]) - int(before[r] == y[b[r]]))
        counted["control"].append(int(placebo[r] == y[b[r]]) - int(before[r] == y[b[r]]))
        counted["minus"].append(int(after[r] == y[b[r]]) - int(placebo[r] == y[b[r]]))
        counted["own"].append(before[r] == y[a[r]])
        if before[r] == y[a[r]]:
            counted["changed"].append(after[r] == y[b[r]])
            counted["stayed"].append(after[r] == y[a[r]])
            counted["changed_control"].append(placebo[r] == y[b[r]])
    assert 30 <= len(counted["changed"]) < 55
    names = {"own": "reproduced", "minus": "minus_control"}
    for name, values in counted.items():
        assert np.isclose(row[names.get(name, name)], np.mean(values)), name
    assert (row["return_before"], row["return_after"]) == (0.0, 2.0)
    assert (row["failed"], row["outside_before"], row["outside_after"]) == (0.02, 0.0, 0.2)
    local = swap_row(trial, sample_of(trial, data, CONFIG), OWN_LOCAL, SWAP_LOCAL, None)
    own, other = trial.seen[OWN_LOCAL].values, trial.seen[SWAP_LOCAL].values
    assert np.isclose(local["effect"], np.mean((other == y[b]).astype(int) - (own == y[b]))) and "control" not in local


def test_a_swap_of_numbers_is_signed_by_who_has_more_and_scaled_by_training_episodes() -> None:
    trial, data = trial_of("speed")
    row = swap_row(trial, sample_of(trial, data, CONFIG), BASE, SWAP, SAME)
    y, (a, b, _) = trial.target.values, trial.pairs
    deviation = y[data.split == 0].std()
    moved = []
    for r in range(60):
        step = (trial.seen[SWAP].values[r] - trial.seen[BASE].values[r]) / deviation
        moved += [] if np.isnan(step) else [step if y[b[r]] > y[a[r]] else -step]
    assert np.isclose(row["effect"], np.mean(moved)) and len(moved) == 53
    there = ~np.isnan(trial.seen[BASE].values)
    assert np.isclose(row["reproduced"], np.corrcoef(trial.seen[BASE].values[there], y[a][there])[0, 1])


@pytest.mark.parametrize("name", ["mood", "speed"])
def test_slopes_are_those_of_lines_through_each_rollouts_outcomes(name: str) -> None:
    trial, data = trial_of(name)
    y, (a, b, _) = trial.target.values, trial.pairs
    deviation = y[data.split == 0].std()

    def line(arms: list[Arm], toward: np.ndarray, sign: np.ndarray) -> list[float]:
        found = []
        for r in range(60):
            values = np.array([float(trial.seen[arm].values[r]) for arm in arms])
            outcomes = sign[r] * values / deviation if name == "speed" else (values == toward[r]).astype(float)
            found.append(np.polyfit([0.0 if arm == BASE else arm.at for arm in arms], outcomes, 1)[0])
        return found

    mixed = line([BASE, Arm("interpolate", 0.5), SWAP], y[b], np.sign(y[b] - y[a]))
    assert np.isclose(interpolate_row(trial, sample_of(trial, data, CONFIG))["effect"], np.nanmean(mixed))
    toward = np.where(np.arange(60) % 2 == 1, y[a], y[b])
    probe, random = (line([BASE, *SHIFTS[k : k + 2]], toward, np.ones(60)) for k in (0, 2))
    row = direction_row(trial, sample_of(trial, data, CONFIG))
    assert np.isclose(row["effect"], np.nanmean(probe)) and np.isclose(row["control"], np.nanmean(random))
    assert np.isclose(row["minus_control"], np.nanmean(np.array(probe) - random))
    if name == "mood":
        ends = [trial.seen[arm].values for arm in SHIFTS]
        assert np.isclose(row["changed"], np.mean(ends[0] != ends[1]))
        assert np.isclose(row["changed_control"], np.mean(ends[2] != ends[3]))
