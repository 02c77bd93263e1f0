"""Numbers cut into classes at quantiles of the training groups, in all episodes alike or in blocks of their own.

Letters: B rows, E edges.
"""

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from data_gen.trajectory import InputError, Labels, LabelSpec

Edges = dict[int, np.ndarray]


def quantile_edges(values: Float[np.ndarray, " n"], bins: int) -> Float[np.ndarray, " E"]:
    """Inner edges that cut the values into `bins` classes of equal size; those that coincide are one edge."""
    if bins < 2:
        raise InputError(f"a quantile label asks for {bins} bins; it needs two or more.")
    return np.unique(np.quantile(values, np.arange(1, bins) / bins)) if len(values) else np.zeros(0)


def blocks_of(spec: LabelSpec, labels: Labels) -> Int[np.ndarray, " B"]:
    """The block of each row: its class of `spec.within` (-1 where not known), or 0 where the label names none.

    Raises InputError where `within` is not a label with one class an episode.
    """
    if not spec.within:
        return np.zeros(len(labels.values[spec.source]), int)
    found = labels.values.get(spec.within)
    if found is None or found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
        raise InputError(
            f"label '{spec.name}' is cut within '{spec.within}', which is not a label with one class an episode. Name "
            f"one that is, of {sorted(labels.values)}."
        )
    return found.astype(int)


def edges_in(
    values: Num[np.ndarray, " B"], block: Int[np.ndarray, " B"], fitted: Bool[np.ndarray, " B"], bins: int
) -> Edges:
    """The quantile edges of each known block, from the finite values of its fitted rows; none without such a row."""
    use = fitted & np.isfinite(values) & (block >= 0)
    return {
        one: quantile_edges(values[use & (block == one)].astype(float), bins) for one in np.unique(block[use]).tolist()
    }


def cut(values: Num[np.ndarray, " B"], block: Int[np.ndarray, " B"], edges: Edges) -> Int[np.ndarray, " B"]:
    """The class of each value, one on an edge in the upper; -1 where it is not finite or its block has no edges."""
    codes = np.full(len(values), -1)
    for one, inner in edges.items():
        here = (block == one) & np.isfinite(values)
        codes[here] = np.searchsorted(inner, values[here].astype(float), side="right")
    return codes


def n_coincide(edges: Edges, bins: int) -> int:
    """In how many blocks two or more edges coincide, so that there are fewer classes than `bins`."""
    return sum(len(inner) < bins - 1 for inner in edges.values())
