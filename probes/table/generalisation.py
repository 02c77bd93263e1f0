"""How far probes and bound carry: to episodes of checkpoints, or of a kind of action, that nothing was fitted on.

B episodes, E encoder seeds.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int32

from data_gen.trajectory import SPLITS, FeatureMask, Features, Labels, RowIndex, TrajectoryBatch
from probes.bootstrap import draw_weights, interval_of, sample
from probes.features import Encoded
from probes.jobs import silent
from probes.labels import check_names, columns_of, names_of
from probes.probe import Probe
from probes.scores import Sums
from probes.table.findings import number, ranged
from probes.table.table import probe_table

KNOWN = "test groups"
NOTHING = dict.fromkeys(("value", "ci_low", "ci_high"), np.nan)
COLUMNS = (
    "scored_on label features probe metric value ci_low ci_high chance "
    "zw_minus_this zw_minus_low zw_minus_high n_groups n_rows note"
).split()


class Evidence(NamedTuple):
    """Episodes with what encoders and policies make of them.

    `bound` is the bound at β = 1 and `latent_free` the log-likelihood of a policy without latents, both in nats an
    episode, as log p(a | o).
    """

    batch: TrajectoryBatch
    rows: RowIndex
    split: Int32[np.ndarray, " B"]
    labels: Labels
    hand: Features
    encoded: Encoded
    bound: Float[np.ndarray, "E B"]
    latent_free: Float[np.ndarray, " B"]


def generalisation_table(
    config: Probe,
    features: FeatureMask,
    known: Evidence,
    others: dict[str, Evidence],
    progress: Callable[[int, int], None] = silent,
) -> pd.DataFrame:
    """Rows like those of the probe table for each set of test episodes; columns are `COLUMNS`.

    Probes, scales and the edges of quantile classes come from `known`'s training groups and are scored on its own test
    groups and on the test groups of each of the `others`. The rows of the bound are nats an action of one agent.
    """
    asked, frames = {KNOWN: known, **others}, []
    config, known = replace(config, labels=[]), with_labels(known, config.labels)
    for place, (name, other) in enumerate(asked.items()):
        table = probe_table(
            config,
            features=features,
            **joined(known, other),
            progress=lambda done, total, place=place: progress(place * total + done, len(asked) * total),
        )
        frames.append(table.assign(scored_on=name)[table.level != "confound"])
        frames.append(pd.DataFrame.from_records(bound_records(config, name, tested(other))))
    return pd.DataFrame(pd.concat(frames, ignore_index=True), columns=COLUMNS)


def with_labels(found: Evidence, names: list[str]) -> Evidence:
    """Evidence of the named labels alone, all where none are named; InputError where a name is not a label.

    A label that the user named may be impossible among other episodes, which is an answer and no error.
    """
    labels = found.labels
    check_names(names, names_of(labels))
    kept = [spec for spec in labels.specs if not names or {spec.name, *columns_of(spec, labels)} & set(names)]
    return found._replace(labels=labels._replace(specs=tuple(kept)))


def joined(known: Evidence, other: Evidence) -> dict[str, Any]:
    """What `probe_table` takes: the episodes that probes are fitted and chosen on, and the other's test episodes."""
    first, second = chosen(known, known.split != SPLITS.index("test")), tested(other)
    mine, theirs = first.labels.values, second.labels.values
    return {
        "batch": TrajectoryBatch(*map(np.concatenate, zip(first.batch, second.batch, strict=True))),
        "rows": RowIndex(*map(np.concatenate, zip(first.rows, second.rows, strict=True))),
        "split": np.concatenate([first.split, second.split]),
        "labels": first.labels._replace(
            values={name: np.concatenate([mine[name], theirs[name]]) for name in first.labels.values}
        ),
        "hand": first.hand._replace(values=np.concatenate([first.hand.values, second.hand.values])),
        "encoded": Encoded(
            z_omega=np.concatenate([first.encoded.z_omega, second.encoded.z_omega], axis=1),
            z_alpha=np.concatenate([first.encoded.z_alpha, second.encoded.z_alpha], axis=1),
            random_encoder=np.concatenate([first.encoded.random_encoder, second.encoded.random_encoder], axis=1),
        ),
    }


def tested(found: Evidence) -> Evidence:
    """The test episodes."""
    return chosen(found, found.split == SPLITS.index("test"))


def chosen(found: Evidence, keep: np.ndarray) -> Evidence:
    """The given episodes."""
    return Evidence(
        batch=TrajectoryBatch(*(field[keep] for field in found.batch)),
        rows=RowIndex(*(field[keep] for field in found.rows)),
        split=found.split[keep],
        labels=found.labels._replace(values={name: value[keep] for name, value in found.labels.values.items()}),
        hand=found.hand._replace(values=found.hand.values[keep]),
        encoded=found.encoded.take(np.flatnonzero(keep)),
        bound=found.bound[:, keep],
        latent_free=found.latent_free[keep],
    )


def bound_records(config: Probe, name: str, found: Evidence) -> list[dict]:
    """The bound, the policy without latents, and what the model gains over it, with intervals over groups."""
    codes = np.unique(found.rows.group, return_inverse=True)[1].ravel()
    n_groups, actions = int(codes.max()) + 1, np.asarray(found.batch.mask).sum((1, 2)).astype(float)
    weights = draw_weights(config.seed, name, n_groups, {len(found.bound)}, config.bootstrap)
    free = np.broadcast_to(found.latent_free, found.bound.shape)
    records = []
    for label, values in (("bound", found.bound), ("latent_free", free), ("gain", found.bound - free)):
        per_seed = [
            (np.bincount(codes, weights=part, minlength=n_groups)[:, None] for part in (one, actions)) for one in values
        ]
        whole = sample([Sums(*sums) for sums in per_seed], weights)
        low, high = interval_of(whole)
        record = {"scored_on": name, "label": label, "features": "model", "probe": "", "metric": "nats_per_action"}
        record |= {"value": whole.value, "ci_low": low, "ci_high": high}
        records.append(
            dict.fromkeys(COLUMNS, np.nan) | record | {"n_groups": n_groups, "n_rows": len(codes), "note": ""}
        )
    return records


def format_generalisation(table: pd.DataFrame) -> str:
    """Linear probes of z_omega (with chance) and the bound, a line each, a column for each set of test episodes."""
    shown = table[((table.features == "z_omega") & (table.probe == "linear")) | (table.features == "model")]
    lines = [f"{'':24}" + "".join(f"{name:>26}" for name in shown.scored_on.unique())]
    names = list(dict.fromkeys(shown.scored_on))
    for label, rows in shown.groupby("label", sort=False):
        own = {row["scored_on"]: row for row in pd.DataFrame(rows).to_dict("records")}
        cells = [own.get(name, NOTHING) for name in names]
        told = [ranged(*(cell[key] for key in NOTHING)) + of_chance(cell) for cell in cells]
        lines.append(f"{label:24}" + "".join(f"{cell or 'not evaluated':>26}" for cell in told))
    return "\n".join(lines)


def of_chance(cell: dict[str, Any]) -> str:
    """Chance beside a value: a set that lacks a class has another chance than the others."""
    chance = cell.get("chance", np.nan)
    return "" if np.isnan(chance) else f" of {number(chance)}"
