"""How far apart two trajectories are: step by step, and after dynamic time warping.

Both are in training deviations of an observation feature, as a root mean square over a step's features, so that
numbers of agents, widths and lengths may differ between data sets. Actions play no part.

Letters: f episodes, T steps, N agents, F columns of an agent's step, Do observation, P pairs.
"""

from typing import NamedTuple

import numpy as np
from dtaidistance import dtw_ndim
from jaxtyping import Bool, Float, Float32, Int

from data_gen.trajectory import FeatureMask, TrajectoryBatch

PIECE = 256  # pairs at a time, to bound memory


class Tracks(NamedTuple):
    """Standardised observations, zero where an agent is absent; `widths` are how many features each agent has."""

    obs: Float32[np.ndarray, "f T N Do"]
    mask: Bool[np.ndarray, "f T N"]
    widths: Int[np.ndarray, " N"]


class Pairs(NamedTuple):
    """Two different episodes each."""

    first: Int[np.ndarray, " P"]
    second: Int[np.ndarray, " P"]


def make_tracks(
    flat: Float32[np.ndarray, "f W"], batch: TrajectoryBatch, features: FeatureMask, most_steps: int
) -> Tracks:
    """Observations out of `features.flatten`'s rows; of longer episodes every so-manieth step, at most `most_steps`."""
    n_episodes, n_steps, n_agents, n_obs = batch.obs.shape
    obs = flat.reshape(n_episodes, n_steps, n_agents, -1)[..., :n_obs]
    steps = np.unique(np.linspace(0, n_steps - 1, min(n_steps, most_steps)).round().astype(int))
    return Tracks(obs=obs[:, steps], mask=np.asarray(batch.mask)[:, steps], widths=features.obs.sum(1))


def draw_pairs(n_episodes: int, n_pairs: int, rng: np.random.Generator) -> Pairs:
    """Different pairs at random, each as likely; all of them where there are no more."""
    whole = n_episodes * (n_episodes - 1) // 2
    codes = np.sort(rng.choice(whole, min(n_pairs, whole), replace=False))
    first = ((1 + np.sqrt(8 * codes + 1)) / 2).astype(int)  # the row of a lower triangle, row by row
    return Pairs(first=first, second=codes - first * (first - 1) // 2)


def euclidean(tracks: Tracks, pairs: Pairs) -> Float[np.ndarray, " P"]:
    """sqrt of the mean squared difference over the steps, agents and features that both have; NaN without a step."""
    found = np.full(len(pairs.first), np.nan)
    for start in range(0, len(found), PIECE):
        a, b = pairs.first[start : start + PIECE], pairs.second[start : start + PIECE]
        both = tracks.mask[a] & tracks.mask[b]
        squared = np.square(tracks.obs[a] - tracks.obs[b], dtype=float).sum(-1)
        total, count = np.where(both, squared, 0).sum((1, 2)), (both * tracks.widths).sum((1, 2))
        found[start : start + PIECE] = np.where(count > 0, np.sqrt(total / np.maximum(count, 1)), np.nan)
    return found


def warped(tracks: Tracks, pairs: Pairs) -> Float[np.ndarray, " P"]:
    """Dynamic time warping (Sakoe and Chiba 1978), one path for the whole team, without a window.

    sqrt(least sum of squared differences along a path / (longer length · features of a step)), so that of two whole
    episodes of one length it is at most `euclidean`. Steps with no agent are left out; an absent agent is at the mean.
    """
    used = np.unique(np.concatenate(pairs))
    series = {i: series_of(tracks, i) for i in used.tolist()}
    width = int(tracks.widths.sum())
    found = np.full(len(pairs.first), np.nan)
    for p, (a, b) in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        longer = max(len(series[a]), len(series[b]))
        if min(len(series[a]), len(series[b])):
            found[p] = dtw_ndim.distance_fast(series[a], series[b]) / np.sqrt(longer * width)
    return found


def series_of(tracks: Tracks, episode: int) -> Float[np.ndarray, "_ F"]:
    """The real steps of one episode, all agents side by side."""
    obs, width = tracks.obs[episode], tracks.obs.shape[2] * tracks.obs.shape[3]
    return np.ascontiguousarray(obs[tracks.mask[episode].any(-1)].reshape(-1, width), dtype=np.float64)


DISTANCES = {"euclidean": euclidean, "dtw": warped}
