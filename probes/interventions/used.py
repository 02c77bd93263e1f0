"""All labels' interventions, and beside them what a probe decodes: decodable, and used by the model, are two columns.

Letters: B rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from data_gen.trajectory import Dataset, InputError
from probes.controls import generator
from probes.interventions.directions import probe_axes
from probes.interventions.intervention import (
    WITHOUT,
    Intervention,
    Latents,
    Rollouts,
    Trial,
    choose_targets,
    n_arms,
    try_out,
)
from probes.interventions.pairs import Ends, draw_pairs, ends_of
from probes.interventions.rows import COLUMNS, CURVE_COLUMNS, curve_records, failed_record, records_of, sample_of
from probes.jobs import silent
from probes.labels import Target
from probes.probe import Probe

JOINED = (
    "label metric decodable decodable_low decodable_high used used_low used_high along along_low along_high possible "
    "reproduced reading"
).split()


class Found(NamedTuple):
    """`effects` has a row a label and kind of intervention, `curves` one a label and arm."""

    effects: pd.DataFrame
    curves: pd.DataFrame


def check_interventions(config: Intervention, found: Dataset, latents: Latents, probes: pd.DataFrame) -> None:
    """Raise InputError, before any rollout, where a label cannot be intervened on, the probe table has no linear probe
    of it, or the latents are of other data."""
    if len(latents.omega) != len(found.split) or len(latents.alpha) != len(found.split):
        raise InputError(
            f"there are {len(latents.omega)} embeddings for {len(found.split)} episodes; embed this data set again."
        )
    targets = choose_targets(found, config.labels)
    classes = sorted({name for target in targets for name in target.classes})
    if strange := sorted(set(config.without) - {*classes, *WITHOUT}):
        raise InputError(f"intervention.without: no label has a class '{strange[0]}'; the classes are {classes}.")
    unknown = sorted(set(config.checkpoints) - set(found.rows.checkpoint.tolist()))
    if unknown:
        raise InputError(
            f"intervention.checkpoints: the data set has no checkpoint {unknown[0]}; it has "
            f"{np.unique(found.rows.checkpoint).tolist()}."
        )
    failures = {target.name: _ends(config, found, target).failure for target in targets}
    if all(failures.values()):
        said = " ".join(f"{name}: {failure}." for name, failure in failures.items())
        raise InputError(f"intervention.labels: no label has two kinds of test episodes to swap. {said}")
    missing = sorted(name for name, failure in failures.items() if not failure and name not in _linear(probes).index)
    if missing:
        raise InputError(
            f"probes.csv has no linear probe of z_omega for {', '.join(missing)}. Run launch.probe on this run with "
            f"these labels and the linear probe, or name other labels in intervention.labels."
        )


def _linear(probes: pd.DataFrame) -> pd.DataFrame:
    """The linear probe of z_omega, a row a label that was evaluated."""
    here = (probes["features"] == "z_omega") & (probes["probe"] == "linear") & probes["value"].notna()
    return pd.DataFrame(probes[here]).set_index("label")


def intervene(
    config: Intervention,
    probe: Probe,
    rollouts: Rollouts,
    found: Dataset,
    latents: Latents,
    progress: Callable[[int, int], None] = silent,
) -> Found:
    """Intervene on every label. `found` has the labels that rollouts have; `probe` says how directions are fitted.

    A label without pairs is one row that says why.
    """
    targets = choose_targets(found, config.labels)
    ends = {target.name: _ends(config, found, target) for target in targets}
    total = n_arms(config) * sum(not one.failure for one in ends.values())
    done, effects, curves = 0, [], []

    def tell() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    for target in targets:
        if ends[target.name].failure:
            effects.append(failed_record(target, ends[target.name].failure))
            continue
        trial = _trial(config, probe, rollouts, found, latents, target, ends[target.name], tell)
        sample = sample_of(trial, found, config)
        effects.extend(records_of(trial, sample, found))
        curves.extend(curve_records(trial, sample))
    return Found(
        effects=pd.DataFrame.from_records(effects, columns=COLUMNS),
        curves=pd.DataFrame.from_records(curves, columns=CURVE_COLUMNS),
    )


def _ends(config: Intervention, found: Dataset, target: Target) -> Ends:
    return ends_of(target, found.rows, found.split, config.without, config.checkpoints)


def _trial(
    config: Intervention,
    probe: Probe,
    rollouts: Rollouts,
    found: Dataset,
    latents: Latents,
    target: Target,
    ends: Ends,
    tell: Callable[[], None],
) -> Trial:
    pairs = draw_pairs(ends, found.rows.group, config.pairs, generator(config.seed, target.name, "pairs"))
    axes = probe_axes(target, latents.omega, found.rows, found.split, probe)
    return try_out(config, rollouts, found, latents, target, pairs, axes, tell)


def decodable_and_used(effects: pd.DataFrame, probes: pd.DataFrame) -> pd.DataFrame:
    """A row a label: the linear probe's value above chance, the swap's effect, and that along the probe's direction."""
    linear, rows = _linear(probes).to_dict("index"), []
    for label, of_label in effects.groupby("label", sort=False):
        kinds = pd.DataFrame(of_label).set_index("kind").to_dict("index")
        rows.append({"label": label} | _joined(linear.get(label), kinds))
    return pd.DataFrame.from_records(rows, columns=JOINED)


def _joined(linear: dict[str, Any] | None, kinds: dict[str, dict[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(JOINED[1:], np.nan) | {"reading": "not evaluated"}
    if linear is None or "direction" not in kinds:
        return row
    swap, along = kinds["swap"], kinds["direction"]
    for name, column in (("decodable", "value"), ("decodable_low", "ci_low"), ("decodable_high", "ci_high")):
        row[name] = linear[column] - linear["chance"]
    for name, column in (("used", "effect"), ("used_low", "ci_low"), ("used_high", "ci_high")):
        row[name] = swap[column]
    for name in ("along", "along_low", "along_high"):
        row[name] = along[name.replace("along", "minus_control")]
    row |= {"metric": linear["metric"], "possible": swap["possible"], "reproduced": swap["reproduced"]}
    return row | {"reading": reading(linear, kinds)}


def reading(linear: dict[str, Any], kinds: dict[str, dict[str, Any]]) -> str:
    """What the intervals say of one label; a label is used where a swap beats both the own latent and its control.

    A move along the probe's direction is weaker evidence: it may leave the latents that episodes have.
    """
    swap = kinds["swap"]
    known = "decodable" if linear["ci_low"] > linear["chance"] else "not decodable"
    if swap["ci_low"] > 0 and swap["minus_control_low"] > 0:
        return f"{known}, used"
    if kinds["direction"]["minus_control_low"] > 0:
        return f"{known}, used along the probe's direction alone"
    if kinds["swap_local"]["ci_low"] > 0:
        return f"{known}, not seen to be used: lost in p(z_alpha | z_omega)"
    return f"{known}, not seen to be used: the decoder does not act it out"
