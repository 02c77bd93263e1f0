"""Plain descriptions of an episode, from its places and actions alone, to compare latents with.

Letters: T steps, N agents, D = 2, A action dimensions.
"""

import numpy as np
from jaxtyping import Bool, Float32

from data_gen.ingest.episodes import Episode, Outline

MOST_ACTIONS = 20  # a column each
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


def hand_names(outline: Outline) -> tuple[str, ...]:
    """Names of `hand_features`: of movement where the data set has places in a plane, and of actions."""
    plane = PLANE if len(outline.position) == 2 else ()
    if outline.action.size > MOST_ACTIONS:
        return plane
    kinds = ("share",) if outline.action.kind == "discrete" else ("mean", "sd")
    return (*plane, *(f"{kind}_{name}" for kind in kinds for name in outline.action_names))


def hand_features(episode: Episode, outline: Outline) -> Float32[np.ndarray, " F"]:
    """Means over the steps and agents that are there; 0 where there is none. Speeds are a step, not a second."""
    found = []
    if len(outline.position) == 2:
        found += _movement(episode.obs[..., list(outline.position)].astype(float), episode.mask)
    if outline.action.size <= MOST_ACTIONS:
        chosen = episode.actions[episode.mask]
        if outline.action.kind == "discrete":
            found += (np.bincount(chosen, minlength=outline.action.size) / max(1, len(chosen))).tolist()
        else:
            found += (chosen.mean(0).tolist() + chosen.std(0).tolist()) if len(chosen) else [0.0] * chosen.shape[1] * 2
    return np.array(found, np.float32)


def _movement(place: np.ndarray, mask: Bool[np.ndarray, "T N"]) -> list[float]:
    """The values of PLANE.

    Straightness is an agent's way from first to last place over the sum of its steps; polarisation (Vicsek 1995) the
    length of the mean unit heading; a pair is any two agents who are there at once.
    """
    both = mask[1:] & mask[:-1]
    moves = np.where(both[..., None], place[1:] - place[:-1], 0)
    speed = np.linalg.norm(moves, axis=-1)
    moved = both.any(0)
    own_speed = speed.sum(0)[moved] / both.sum(0)[moved]
    unit = moves / np.where(speed > 0, speed, 1)[..., None]
    heading = both & (speed > 0)
    counts = heading.sum(1)
    order = np.linalg.norm(unit.sum(1), axis=-1)[counts > 0] / counts[counts > 0]
    n_there = mask.sum(1)
    centre = np.where(mask[..., None], place, 0).sum(1) / np.maximum(n_there, 1)[:, None]
    away = np.linalg.norm(place - centre[:, None], axis=-1)[mask]
    # Only where the same agents are there at both steps does the centre move with them.
    same = (mask[1:] == mask[:-1]).all(1) & (n_there[1:] > 0)
    drift = np.linalg.norm(centre[1:] - centre[:-1], axis=-1)[same]
    pairs = _pair_distances(place, mask)
    ways = [_straightness(place[mask[:, n], n]) for n in np.flatnonzero(mask.sum(0) > 1)]
    spread = own_speed.std() if len(own_speed) else 0.0
    deviation = pairs.std() if len(pairs) else 0.0
    means = [_mean(one) for one in (speed[both], np.array(ways), pairs, away, order, drift)]
    return [means[0], float(spread), means[1], means[2], float(deviation), *means[3:]]


def _pair_distances(place: np.ndarray, mask: np.ndarray) -> np.ndarray:
    found = [np.zeros(0)]
    for n in range(mask.shape[1] - 1):
        both = mask[:, n + 1 :] & mask[:, n, None]
        found.append(np.linalg.norm(place[:, n + 1 :] - place[:, n, None], axis=-1)[both])
    return np.concatenate(found)


def _straightness(way: np.ndarray) -> float:
    length = np.linalg.norm(way[1:] - way[:-1], axis=-1).sum()
    return float(np.linalg.norm(way[-1] - way[0]) / length) if length > 0 else 0.0


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0
