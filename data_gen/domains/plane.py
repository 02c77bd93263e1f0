"""Agents that move in the square [-1, 1]²: moves, ways to a target, and measures of tracks.

Every agent knows its own x and y (the first two observations), so tracks can be measured from observations alone.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from data_gen.trajectory import ActionSpec, InputError

HALF_WIDTH = 1.0
_DIAGONAL = 0.5**0.5
DIRECTIONS = np.array(
    [[0, 0], [1, 0], [_DIAGONAL, _DIAGONAL], [0, 1], [-_DIAGONAL, _DIAGONAL]]
    + [[-1, 0], [-_DIAGONAL, -_DIAGONAL], [0, -1], [_DIAGONAL, -_DIAGONAL]],
    np.float32,
)
ACTIONS = {
    "continuous": ActionSpec(kind="continuous", size=2),
    "discrete": ActionSpec(kind="discrete", size=len(DIRECTIONS)),
}


def check_actions(actions: str, where: str) -> None:
    """Raise InputError where the kind of action is not one of ACTIONS."""
    if actions not in ACTIONS:
        raise InputError(f"{where}: actions is {actions!r}; choose one of {', '.join(ACTIONS)}.")


def displacement(actions: Float[Array, "*S 2"] | Int[Array, "*S"], kind: str, max_step: float) -> Float[Array, "*S 2"]:
    """How far an action moves an agent.

    Continuous: max_step · a / max(1, |a|), so the raw action stays the policy's own sample, with no atom at a bound.
    Discrete: max_step times one of stay and eight directions.
    """
    if kind == "discrete":
        return max_step * jnp.asarray(DIRECTIONS)[actions]
    length = jnp.sqrt(jnp.sum(actions**2, axis=-1, keepdims=True))
    return max_step * actions / jnp.maximum(1.0, length)


def translated(
    actions: Float[np.ndarray, "*S 2"] | Int[np.ndarray, "*S"], kind: str, wanted: str
) -> Float[np.ndarray, "*S 2"] | Int[np.ndarray, "*S"]:
    """Actions of one kind as the other kind that moves an agent alike: the direction, or the nearest of the nine."""
    if kind == wanted:
        return actions
    if wanted == "continuous":
        return DIRECTIONS[actions]
    moved = np.asarray(displacement(jnp.asarray(actions), kind, 1.0))
    return np.square(moved[..., None, :] - DIRECTIONS).sum(-1).argmin(-1).astype(np.int32)


def move(
    position: Float[Array, "*S 2"], actions: Float[Array, "*S 2"] | Int[Array, "*S"], kind: str, max_step: float
) -> Float[Array, "*S 2"]:
    """The next position; the walls of the square stop an agent."""
    return jnp.clip(position + displacement(actions, kind, max_step), -HALF_WIDTH, HALF_WIDTH)


def toward(
    position: Float[Array, "N 2"], target: Float[Array, "N 2"], kind: str, max_step: float
) -> Float[Array, "N 2"] | Int[Array, " N"]:
    """The action that brings each agent nearest to its target."""
    offset = (target - position) / max_step
    if kind == "continuous":
        return offset
    after = offset[:, None, :] - jnp.asarray(DIRECTIONS)[None, :, :]
    return jnp.argmin(jnp.sum(after**2, axis=-1), axis=-1)


def others_offset(position: Float[Array, "N 2"]) -> Float[Array, "N M"]:
    """Where the other agents are, seen from each: agent i's columns are i+1, i+2, … (cyclic), x before y."""
    n = position.shape[0]
    order = (np.arange(n)[:, None] + np.arange(1, n)[None, :]) % n
    return (position[order] - position[:, None, :]).reshape(n, 2 * (n - 1))


def pair_distance(position: Float[np.ndarray, "*S N 2"]) -> Float[np.ndarray, "*S P"]:
    """Distances of all pairs of agents."""
    i, j = np.triu_indices(position.shape[-2], k=1)
    return np.linalg.norm(position[..., i, :] - position[..., j, :], axis=-1)


def masked_mean(values: np.ndarray, mask: Bool[np.ndarray, "..."], axis: int | tuple[int, ...]) -> np.ndarray:
    """Mean over the real entries; zero where there are none."""
    total = np.sum(np.where(mask, values, 0), axis=axis)
    return total / np.maximum(np.sum(mask, axis=axis), 1)


def last_step(mask: Bool[np.ndarray, "B T N"]) -> Int[np.ndarray, "B N"]:
    """Number of each agent's last real step (0 where it has none)."""
    return np.max(np.where(mask, np.arange(mask.shape[1])[None, :, None], 0), axis=1)


def paths(
    position: Float[np.ndarray, "B T N 2"], mask: Bool[np.ndarray, "B T N"]
) -> tuple[Float[np.ndarray, "B N"], Float[np.ndarray, "B N"]]:
    """Length of each agent's path, and its straightness: net displacement over length, 1 for a straight walk."""
    real = mask[:, 1:] & mask[:, :-1]
    steps = np.where(real[..., None], np.diff(position, axis=1), 0)
    length = np.linalg.norm(steps, axis=-1).sum(axis=1)
    return length, np.linalg.norm(steps.sum(axis=1), axis=-1) / np.maximum(length, 1e-6)
