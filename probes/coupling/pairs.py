"""How much the clusters of two levels, or of two agents, say about each other.

Letters: B rows, D orders of the groups, G groups, M places, K and L clusters.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Num
from scipy.special import entr

from probes.levels import JOINT
from probes.pairings import orders_of, p_of_first, paired_sums
from probes.table.significance import holm

LEAST_GROUPS = 2
PAIR_COLUMNS = ("kind", "first", "second", "nmi", "null_mean", "null_high", "excess", "p", "p_holm", "p_least")
PAIR_COLUMNS += ("n_episodes", "left_out", "n_groups", "note")


def kind_of(first: str) -> str:
    """`joint` for a pair of the joint level and an agent, `agents` for a pair of agents."""
    return "joint" if first == JOINT else "agents"


def indicators(ids: Int[np.ndarray, "G M"]) -> Bool[np.ndarray, "G M K"]:
    """A column for each cluster; a row without one (-1) is in none."""
    return ids[..., None] == np.unique(ids[ids >= 0])


def normalised_information(counts: Num[np.ndarray, "... K L"]) -> Float[np.ndarray, "..."]:
    """NMI = 2 I(U; V) / (H(U) + H(V)), 0 where nothing is left of either; the arithmetic form of scikit-learn."""
    shares = counts / np.maximum(counts.sum(axis=(-2, -1), keepdims=True), 1)
    of_rows, of_columns = (entr(shares.sum(axis)).sum(-1) for axis in (-1, -2))
    information = np.maximum(of_rows + of_columns - entr(shares).sum(axis=(-2, -1)), 0)
    both = of_rows + of_columns
    return np.divide(2 * information, both, out=np.zeros_like(both), where=both > 0)


def pair_table(
    clusters: dict[str, Int[np.ndarray, " B"]],
    places: Int[np.ndarray, "G M"],
    permutations: int,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """A row for each two levels; p of NMI under permutations of whole groups, Holm over the pairs of a kind."""
    orders = orders_of(len(places), permutations, rng)
    records = [
        {"kind": kind_of(first), "first": first, "second": second}
        | _pair_record(clusters[first][places], clusters[second][places], orders)
        for first, second in combinations(clusters, 2)
    ]
    table = pd.DataFrame(records, columns=list(PAIR_COLUMNS)).assign(p_holm=np.nan)
    for kind in table["kind"].unique():
        tested = (table["kind"] == kind) & table["p"].notna()
        table.loc[tested, "p_holm"] = holm(table.loc[tested, "p"].to_numpy(float))
    return table


def _pair_record(
    first: Int[np.ndarray, "G M"], second: Int[np.ndarray, "G M"], orders: Int[np.ndarray, "D G"]
) -> dict[str, Any]:
    both = (first >= 0) & (second >= 0)
    facts = {"n_episodes": int(both.sum()), "left_out": int((~both).sum()), "n_groups": len(first)}
    kinds = min(len(np.unique(ids[both])) for ids in (first, second))
    if len(first) < LEAST_GROUPS:
        return facts | {"note": f"not evaluated: {len(first)} group, and {LEAST_GROUPS} can be permuted"}
    if kinds < 2:
        return facts | {"note": "not evaluated: a level has fewer than two clusters"}
    values = normalised_information(paired_sums(indicators(first), indicators(second), orders))
    return facts | {
        "nmi": float(values[0]),
        "null_mean": float(values[1:].mean()),
        "null_high": float(np.quantile(values[1:], 0.95)),
        "excess": float(values[0] - values[1:].mean()),
        "p": p_of_first(values),
        "p_least": 1 / len(orders),
        "note": "",
    }


def contingency_table(clusters: dict[str, Int[np.ndarray, " B"]], places: Int[np.ndarray, "G M"]) -> pd.DataFrame:
    """A row for each cluster of one level and each of another: how often they meet.

    `share` is of the first one's episodes, `share_of_all` of all episodes that have a cluster at both levels; `lift` is
    their ratio, 1 where the two are unrelated.
    """
    records = []
    for first, second in combinations(clusters, 2):
        one, other = clusters[first][places].ravel(), clusters[second][places].ravel()
        both = (one >= 0) & (other >= 0)
        for a in np.unique(one[both]).tolist():
            for b in np.unique(other[both]).tolist():
                n, here = int((both & (one == a) & (other == b)).sum()), both & (one == a)
                share, of_all = n / here.sum(), float((other[both] == b).mean())
                names = {"kind": kind_of(first), "first": first, "second": second, "cluster": a, "meets": b}
                records.append(names | {"n": n, "share": share, "share_of_all": of_all, "lift": share / of_all})
    columns = ["kind", "first", "second", "cluster", "meets", "n", "share", "share_of_all", "lift"]
    return pd.DataFrame(records, columns=columns)
