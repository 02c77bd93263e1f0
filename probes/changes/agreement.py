"""Whether two agents change at the same time.

Letters: G groups, K pairs of neighbouring checkpoints, D orders of the groups.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Int

from probes.pairings import orders_of, p_of_first, paired_sums
from probes.table.significance import holm

COLUMNS = ("first", "second", "share", "null_mean", "p", "p_holm", "p_least", "n_changes", "n_groups", "note")
LEAST_GROUPS = 2


def widened(changes: Bool[np.ndarray, "G K"]) -> Bool[np.ndarray, "G K"]:
    """Where a change is, or one checkpoint from it."""
    near = changes.copy()
    near[:, 1:] |= changes[:, :-1]
    near[:, :-1] |= changes[:, 1:]
    return near


def agreement_table(
    changes: dict[str, Bool[np.ndarray, "G K"]], permutations: int, rng: np.random.Generator
) -> pd.DataFrame:
    """For each two levels the share of their changes that lie within one checkpoint of a change of the other.

    The null pairs whole groups at random, so that what all groups share (most change early) is in it; Holm over pairs.
    """
    groups = len(next(iter(changes.values()), []))
    orders = orders_of(groups, permutations, rng) if groups >= LEAST_GROUPS else None
    records = [
        {"first": first, "second": second, "n_groups": groups} | _record(changes[first], changes[second], orders)
        for first, second in combinations(changes, 2)
    ]
    table = pd.DataFrame(records, columns=list(COLUMNS))
    tested = table["p"].notna()
    table.loc[tested, "p_holm"] = holm(table.loc[tested, "p"].to_numpy(float))
    return table


def _record(
    first: Bool[np.ndarray, "G K"], second: Bool[np.ndarray, "G K"], orders: Int[np.ndarray, "D G"] | None
) -> dict[str, Any]:
    n_changes = int(first.sum() + second.sum())
    if orders is None or not (first.any() and second.any()):
        words = "too few groups" if orders is None else "a level without a change"
        return {"n_changes": n_changes, "note": f"not evaluated: {words}"}
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
