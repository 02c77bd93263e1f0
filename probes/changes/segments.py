"""Segments of a sequence of checkpoints: what a kernel says of each, and the search for those that fit best.

A segment of checkpoints [s, e) with m episodes costs their scatter around their mean in the kernel's space,

    c(s, e) = Σ_i k(x_i, x_i) − (1/m) Σ_ij k(x_i, x_j)        (Harchaoui and Cappe 2007; Arlot, Celisse, Harchaoui 2019)

and a segmentation the sum over its segments. The first term is the same for every segmentation, so that segments are
compared by their worth w(s, e) = (1/m) Σ_ij k(x_i, x_j), of which more is better.

Letters: D orders of the episodes, n episodes, C checkpoints, E = C + 1 edges.
"""

import numpy as np
from jaxtyping import Float, Int
from ruptures import Pelt
from ruptures.base import BaseCost


def block_sums(
    gram: Float[np.ndarray, "n n"], checkpoints: Int[np.ndarray, "D n"], n_checkpoints: int
) -> Float[np.ndarray, "D C C"]:
    """Σ of k over the episodes of every two checkpoints; `checkpoints` numbers, in each order, where an episode is."""
    chosen = (checkpoints[:, None] == np.arange(n_checkpoints)[:, None]).astype(float)
    weighted = (chosen.reshape(-1, len(gram)) @ gram).reshape(chosen.shape)
    return weighted @ chosen.transpose(0, 2, 1)


def segment_worth(sums: Float[np.ndarray, "D C C"], sizes: Int[np.ndarray, " C"]) -> Float[np.ndarray, "D E E"]:
    """w(s, e) for every s < e, and −∞ elsewhere."""
    corners = np.zeros((len(sums), len(sizes) + 1, len(sizes) + 1))
    corners[:, 1:, 1:] = sums.cumsum(axis=1).cumsum(axis=2)
    at = np.diagonal(corners, axis1=1, axis2=2)
    inside = at[:, None] - corners - corners.transpose(0, 2, 1) + at[..., None]
    edges = np.append(0, np.cumsum(sizes))
    episodes = edges - edges[:, None]
    return np.where(episodes > 0, inside / np.maximum(episodes, 1), -np.inf)


def least_penalty(worth: Float[np.ndarray, "D E E"]) -> Float[np.ndarray, " D"]:
    """The smallest penalty a change at which the search finds none.

    It is the maximum over k of (best worth with k changes − w(0, C)) / k, by dynamic programming over the last change.
    """
    whole, best = worth[:, 0, -1], worth[:, 0]
    most = np.full(len(worth), -np.inf)
    for k in range(1, worth.shape[1] - 1):
        best = (best[:, :, None] + worth).max(axis=1)
        most = np.maximum(most, (best[:, -1] - whole) / k)
    return most


class CheckpointCost(BaseCost):
    """c(s, e) for ruptures, whose unit is the checkpoint; its signal is the block sums of one order."""

    min_size = 1

    def __init__(self, sizes: Int[np.ndarray, " C"]) -> None:
        self.sizes = sizes

    @property
    def model(self) -> str:
        return "rbf by checkpoint"

    def fit(self, signal: Float[np.ndarray, "C C"]) -> "CheckpointCost":
        self.signal = signal
        self.worth = segment_worth(signal[None], self.sizes)[0]
        return self

    def error(self, start: int, end: int) -> float:
        # A Gaussian kernel is 1 between an episode and itself.
        return float(self.sizes[start:end].sum() - self.worth[start, end])


def change_points(sums: Float[np.ndarray, "C C"], sizes: Int[np.ndarray, " C"], penalty: float) -> list[int]:
    """Numbers of the checkpoints that begin a new segment, in the segmentation of least cost + penalty · changes."""
    search = Pelt(custom_cost=CheckpointCost(sizes), min_size=1, jump=1).fit(sums)
    return [int(edge) for edge in search.predict(pen=penalty)[:-1]]


def gains(worth: Float[np.ndarray, "E E"], changes: list[int]) -> list[float]:
    """By how much the cost would rise if one change were left out and the others kept."""
    around = [0, *changes, len(worth) - 1]
    return [
        float(worth[a, b] + worth[b, c] - worth[a, c]) for a, b, c in zip(around, around[1:], around[2:], strict=False)
    ]
