"""Whole groups paired with one another at random: what the permutation tests over groups share.

Letters: D orders, G groups, M places within a group, X and Y columns.
"""

import itertools
import math

import numpy as np
from jaxtyping import Float, Int, Shaped

ROUNDING = 1e-9


def orders_of(n_groups: int, draws: int, rng: np.random.Generator) -> Int[np.ndarray, "D G"]:
    """The groups' own order first, then `draws` random ones, or all the others where there are no more than that."""
    if math.factorial(n_groups) - 1 <= draws:
        return np.array(list(itertools.permutations(range(n_groups))))
    own = np.arange(n_groups)
    return np.concatenate([own[None], rng.permuted(np.tile(own, (draws, 1)), axis=1)])


def paired_sums(
    x: Shaped[np.ndarray, "G M X"], y: Shaped[np.ndarray, "G M Y"], orders: Int[np.ndarray, "D G"]
) -> Float[np.ndarray, "D X Y"]:
    """Σ_g x_gᵀ y_π(g) for each order π: the places of group g are held against the same places of group π(g).

    A Boolean counts as 0 or 1.
    """
    total, others = np.zeros((len(orders), x.shape[2], y.shape[2])), y.astype(float)
    for g, of_group in enumerate(x.astype(float)):
        total += np.matmul(of_group.T, others)[orders[:, g]]
    return total


def p_of_first(values: Float[np.ndarray, " D"]) -> float:
    """Share of the orders whose value is at least that of the first, the groups' own, which is one of them.

    With `draws` random orders this is (1 + #{null >= seen}) / (1 + draws) (Davison and Hinkley 1997, eq. 4.11). An
    order without a value counts against the first.
    """
    if np.isnan(values[0]):
        return math.nan
    return float((~(values < values[0] - ROUNDING)).mean())
