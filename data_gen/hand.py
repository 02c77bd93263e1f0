"""Plain descriptions of an episode, from its observations and actions alone, to compare latents with.

Letters: T steps, N agents, Do observation, Da action, A choices, F features.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Complex128, Float32, Float64, Int32

from data_gen.trajectory import ActionSpec, FeatureMask

MOST_ACTIONS = 20  # a column each
MOST_OBSERVATIONS = 200  # two columns each
PLANE = (
    "mean_speed",
    "speed_spread_of_agents",
    "straightness",
    "mean_pair_distance",
    "sd_pair_distance",
    "mean_centre_distance",
    "polarisation",
    "centre_speed",
)


class Described(NamedTuple):
    """The columns of episodes: `position` are those of obs that are a place in the plane, () where none is.

    Choices without names are named by their numbers.
    """

    obs_names: tuple[str, ...]
    action: ActionSpec
    action_names: tuple[str, ...]
    position: tuple[int, ...]


def hand_names(of: Described) -> tuple[str, ...]:
    """Names of `hand_features`: of movement where there are places in a plane, else of observations; and of actions."""
    seen = PLANE if of.position else ()
    if not of.position and len(of.obs_names) <= MOST_OBSERVATIONS:
        seen = tuple(f"{kind}_{name}" for kind in ("mean", "sd") for name in of.obs_names)
    if of.action.size > MOST_ACTIONS:
        return seen
    if of.action.kind == "discrete":
        return (*seen, *(f"share_{name}" for name in of.action_names or range(of.action.size)))
    return (*seen, *(f"{kind}_{name}" for kind in ("mean", "sd") for name in of.action_names))


def hand_features(
    obs: Float32[np.ndarray, "T N Do"],
    actions: Float32[np.ndarray, "T N Da"] | Int32[np.ndarray, "T N"],
    mask: Bool[np.ndarray, "T N"],
    real: FeatureMask,
    of: Described,
) -> Float32[np.ndarray, " F"]:
    """Means over the steps and the agents that are there and have the column; 0 where there is none. Speeds are a step,
    not a second."""
    found = []
    if of.position:
        x, y = (obs[..., column].astype(float) for column in of.position)
        found.append(np.array(_movement(x + 1j * y, mask)))
    elif len(of.obs_names) <= MOST_OBSERVATIONS:
        found += _moments(obs, mask, real.obs)
    if of.action.size <= MOST_ACTIONS:
        if of.action.kind == "discrete":
            found.append(_shares(actions, mask, real.actions))
        else:
            found += _moments(actions, mask, real.actions)
    return np.concatenate([*found, np.zeros(0)]).astype(np.float32)


def _shares(
    actions: Int32[np.ndarray, "T N"], mask: Bool[np.ndarray, "T N"], real: Bool[np.ndarray, "N A"]
) -> Float64[np.ndarray, " A"]:
    """How often each choice was made, of the steps at which it could be."""
    made = [np.bincount(own[there], minlength=real.shape[1]) for own, there in zip(actions.T, mask.T, strict=True)]
    could = (mask.sum(0)[:, None] * real).sum(0)
    return np.where(real, made, 0).sum(0) / np.maximum(could, 1)


def _moments(
    values: Float32[np.ndarray, "T N F"], mask: Bool[np.ndarray, "T N"], real: Bool[np.ndarray, "N F"]
) -> list[Float64[np.ndarray, " F"]]:
    """Mean and standard deviation of each column."""
    weight = mask & real.T[:, None]
    columns = np.where(weight, np.moveaxis(values, 2, 0), 0)  # NumPy is slow in sums over a short last axis
    count = np.maximum(weight.sum((1, 2)), 1)
    mean = columns.sum((1, 2), dtype=np.float64) / count
    square = np.where(weight, columns - mean[:, None, None], 0) ** 2
    return [mean, np.sqrt(square.sum((1, 2)) / count)]


def _movement(place: Complex128[np.ndarray, "T N"], mask: Bool[np.ndarray, "T N"]) -> list[float]:
    """The values of PLANE, of places x + iy.

    Straightness is an agent's way from first to last place over the sum of its steps; polarisation (Vicsek 1995) the
    length of the mean unit heading; a pair is any two agents who are there at once.
    """
    both = mask[1:] & mask[:-1]
    moves = np.where(both, place[1:] - place[:-1], 0)
    speed = _length(moves)
    moved = both.any(0)
    own_speed = speed.sum(0)[moved] / both.sum(0)[moved]
    unit = moves / np.where(speed > 0, speed, 1)
    counts = (both & (speed > 0)).sum(1)
    order = _length(unit.sum(1))[counts > 0] / counts[counts > 0]
    n_there = mask.sum(1)
    centre = np.where(mask, place, 0).sum(1) / np.maximum(n_there, 1)
    away = _length(place - centre[:, None])[mask]
    # Only where the same agents are there at both steps does the centre move with them.
    same = (mask[1:] == mask[:-1]).all(1) & (n_there[1:] > 0)
    drift = _length(centre[1:] - centre[:-1])[same]
    pairs = _pair_distances(place, mask)
    ways = [_straightness(place[mask[:, n], n]) for n in np.flatnonzero(mask.sum(0) > 1)]
    spread = own_speed.std() if len(own_speed) else 0.0
    deviation = pairs.std() if len(pairs) else 0.0
    means = [_mean(one) for one in (speed[both], np.array(ways), pairs, away, order, drift)]
    return [means[0], float(spread), means[1], means[2], float(deviation), *means[3:]]


def _length(vectors: Complex128[np.ndarray, "..."]) -> Float64[np.ndarray, "..."]:
    # NumPy's abs guards against overflow and takes several times as long.
    return np.sqrt(np.real(vectors) ** 2 + np.imag(vectors) ** 2)


def _pair_distances(place: Complex128[np.ndarray, "T N"], mask: Bool[np.ndarray, "T N"]) -> Float64[np.ndarray, " _"]:
    found = [np.zeros(0)]
    for n in range(mask.shape[1] - 1):
        both = mask[:, n + 1 :] & mask[:, n, None]
        found.append(_length(place[:, n + 1 :] - place[:, n, None])[both])
    return np.concatenate(found)


def _straightness(way: Complex128[np.ndarray, " _"]) -> float:
    length = _length(way[1:] - way[:-1]).sum()
    return float(abs(way[-1] - way[0]) / length) if length > 0 else 0.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0
