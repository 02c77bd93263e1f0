"""Whether two agents change at the same time.

Letters: G groups, K pairs of neighbouring checkpoints, D orders of the groups.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool

from probes.controls import generator
from probes.pairings import orders_of, p_of_first, paired_sums
from probes.table.significance import holm

COLUMNS = ("first", "second", "share", "null_mean", "p", "p_holm", "p_least", "n_changes", "n_groups", "note")
LEAST_GROUPS = 2


class Timing(NamedTuple):
    """Between which checkpoints each group changes, and whether it can be held against the others."""

    changes: Bool[np.ndarray, "G K"]
    alike: Bool[np.ndarray, " G"]


def widened(changes: Bool[np.ndarray, "G K"]) -> Bool[np.ndarray, "G K"]:
    """Where a change is, or one checkpoint from it."""
    near = changes.copy()
    near[:, 1:] |= changes[:, :-1]
    near[:, :-1] |= changes[:, 1:]
    return near


def agreement_table(timing: dict[str, Timing], permutations: int, seed: int) -> pd.DataFrame:
    """For each two levels the share of their changes that lie within one checkpoint of a change of the other.

    The null pairs whole groups at random, so that what all groups share (most change early) is in it; Holm over pairs.
    """
    records = []
    for first, second in combinations(timing, 2):
        both = timing[first].alike & timing[second].alike
        rng = generator(seed, f"{first} {second}", "agreement")
        facts = _record(timing[first].changes[both], timing[second].changes[both], permutations, rng)
        records.append({"first": first, "second": second, "n_groups": int(both.sum())} | facts)
    table = pd.DataFrame(records, columns=list(COLUMNS))
    tested = table["p"].notna()
    table.loc[tested, "p_holm"] = holm(table.loc[tested, "p"].to_numpy(float))
    return table


def _record(
    first: Bool[np.ndarray, "G K"], second: Bool[np.ndarray, "G K"], permutations: int, rng: np.random.Generator
) -> dict[str, Any]:
    n_changes = int(first.sum() + second.sum())
    if len(first) < LEAST_GROUPS:
        return {"n_changes": n_changes, "note": f"not evaluated: {len(first)} groups, {LEAST_GROUPS} are needed"}
    if not (first.any() and second.any()):
        return {"n_changes": n_changes, "note": "not evaluated: a level without a change"}
    orders = orders_of(len(first), permutations, rng)
    both = [(first, widened(second)), (widened(first), second)]
    met = sum(paired_sums(one[..., None], other[..., None], orders)[:, 0, 0] for one, other in both)
    values = np.asarray(met) / n_changes
    return {
        "share": float(values[0]),
        "null_mean": float(values[1:].mean()),
        "p": p_of_first(values),
        "p_least": 1 / len(orders),
        "n_changes": n_changes,
        "note": "",
    }
