"""Three agents climb four hills; a crowded hill is worth less to each. Our reconstruction: see docs/domains.md."""

from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from data_gen.domains import plane
from data_gen.domains.domain import Domain, Landmark
from data_gen.trajectory import Features, InputError, Labels, LabelSpec, RowIndex, TrajectoryBatch

N_AGENTS = 3
HELD = 0.5  # an agent holds a hill where the hill's bump is at least this high, relative to its top
HILLS = [[0.6, 0.6, 1.0], [-0.65, 0.5, 0.9], [-0.5, -0.65, 0.8], [0.65, -0.5, 0.7]]


@dataclass(unsafe_hash=True)
class HillClimbing:
    """Hills are rows (x, y, height); `width` is the bumps' standard deviation; starts are uniform in a square."""

    actions: str = "continuous"
    horizon: int = 25
    observe_height: bool = False
    hills: list[list[float]] = field(default_factory=lambda: HILLS, hash=False)
    width: float = 0.3
    crowding: float = 1.0
    max_step: float = 0.1
    start: float = 0.35

    def __post_init__(self):
        self.hills = [[float(v) for v in hill] for hill in self.hills]
        plane.check_actions(self.actions, "hill_climbing")
        if len(self.hills) < 1 or any(len(hill) != 3 for hill in self.hills):
            raise InputError(f"hill_climbing: hills is {self.hills}; give at least one row of x, y and height.")
        if any(not (abs(x) <= 1 and abs(y) <= 1 and height > 0) for x, y, height in self.hills):
            raise InputError(f"hill_climbing: hills is {self.hills}; x and y lie in [-1, 1] and heights are positive.")
        if self.horizon < 3:
            raise InputError(f"hill_climbing: horizon is {self.horizon}; an episode needs at least 3 steps.")
        if not (self.width > 0 and self.max_step > 0 and self.crowding >= 0 and 0 <= self.start <= 1):
            raise InputError(
                f"hill_climbing: width {self.width} and max_step {self.max_step} must be positive, crowding "
                f"{self.crowding} must not be negative, and start {self.start} must lie in [0, 1]."
            )


class HillState(NamedTuple):
    position: Float[Array, "N 2"]


def make(config: HillClimbing) -> Domain:
    """The domain of a config."""
    names = ("x", "y", *(f"other{k}_{axis}" for k in range(1, N_AGENTS) for axis in ("dx", "dy")))
    return Domain(
        name="hill_climbing",
        config=config,
        n_agents=N_AGENTS,
        horizon=config.horizon,
        action=plane.ACTIONS[config.actions],
        obs_names=(*names, "height") if config.observe_height else names,
        position=(0, 1),
        landmarks=landmarks(config),
        reset=partial(reset, config),
        observe=partial(observe, config),
        step=partial(step, config),
        scripted=partial(scripted, config),
        measure=partial(measure, config),
        hand_features=hand_features,
    )


def hill_names(config: HillClimbing) -> tuple[str, ...]:
    """A, B, C, … in the order of the config."""
    return tuple(chr(ord("A") + k) for k in range(len(config.hills)))


def landmarks(config: HillClimbing) -> tuple[Landmark, ...]:
    """The hills, with the radius within which an agent holds one."""
    radius = config.width * float(np.sqrt(-2 * np.log(HELD)))
    return tuple(
        Landmark(name, x, y, radius, height)
        for name, (x, y, height) in zip(hill_names(config), config.hills, strict=True)
    )


def bumps(config: HillClimbing, position: Float[Array, "*S 2"]) -> Float[Array, "*S K"]:
    """g_k(x) = exp(−|x − c_k|² / 2w²), 1 at hill k's top."""
    hills = jnp.asarray(config.hills)
    offset = position[..., None, :] - hills[:, :2].reshape((1,) * (position.ndim - 1) + (-1, 2))
    return jnp.exp(-jnp.sum(offset**2, axis=-1) / (2 * config.width**2))


def team_reward(config: HillClimbing, position: Float[Array, "*S N 2"]) -> Float[Array, "*S"]:
    """Mean over agents of Σ_k h_k g_k(x_i) / (1 + κ Σ_{j≠i} g_k(x_j)); κ is `crowding`."""
    g = bumps(config, position)
    height = jnp.asarray(config.hills)[:, 2].reshape((1,) * (g.ndim - 1) + (-1,))
    crowd = jnp.sum(g, axis=-2, keepdims=True) - g
    return jnp.mean(jnp.sum(height * g / (1 + config.crowding * crowd), axis=-1), axis=-1)


def reset(config: HillClimbing, key: Key[Array, ""]) -> HillState:
    """Starts are independent and uniform in the square of half-width `start`."""
    return HillState(position=jax.random.uniform(key, (N_AGENTS, 2), minval=-config.start, maxval=config.start))


def observe(config: HillClimbing, state: HillState) -> Float[Array, "N Do"]:
    """Own position, the others' relative positions, and the landscape's height at one's place if it is observed."""
    obs = jnp.concatenate([state.position, plane.others_offset(state.position)], axis=-1)
    if not config.observe_height:
        return obs
    height = bumps(config, state.position) @ jnp.asarray(config.hills)[:, 2]
    return jnp.concatenate([obs, height[:, None]], axis=-1)


def step(
    config: HillClimbing, state: HillState, actions: Float[Array, "N 2"] | Int[Array, " N"]
) -> tuple[HillState, Float[Array, " N"]]:
    """Move, then pay every agent the team's reward at the new positions."""
    position = plane.move(state.position, actions, config.actions, config.max_step)
    return HillState(position), jnp.full(N_AGENTS, team_reward(config, position))


def scripted(config: HillClimbing, state: HillState) -> Float[Array, "N 2"] | Int[Array, " N"]:
    """Of all ways to give each agent a hill, walk straight by the one that pays most over the next horizon."""
    tops = jnp.asarray(config.hills)[:, :2]
    target = tops[np.array(list(product(range(len(config.hills)), repeat=N_AGENTS)))]
    offset = target - state.position[None]
    distance = jnp.maximum(jnp.sqrt(jnp.sum(offset**2, axis=-1)), 1e-6)
    walked = config.max_step * jnp.arange(1, config.horizon + 1)
    share = jnp.minimum(walked[:, None, None] / distance[None], 1.0)
    track = state.position[None, None] + share[..., None] * offset[None]
    best = jnp.argmax(jnp.sum(team_reward(config, track), axis=0))
    return plane.toward(state.position, target[best], config.actions, config.max_step)


def hills_held(config: HillClimbing, position: Float[np.ndarray, "B N 2"]) -> Int[np.ndarray, "B N"]:
    """The hill that each agent holds, or the number of hills where it holds none."""
    hills = np.asarray(config.hills)
    squared = np.sum((position[:, :, None, :] - hills[:, :2]) ** 2, axis=-1)
    held = np.exp(-squared.min(axis=-1) / (2 * config.width**2)) >= HELD
    return np.where(held, squared.argmin(axis=-1), len(hills)).astype(np.int32)


def measure(config: HillClimbing, batch: TrajectoryBatch, rows: RowIndex) -> Labels:
    """Dispersion over the last third of an episode; the hills held at its last step, by agent and by team."""
    position = np.asarray(batch.obs)[..., :2]
    horizon, names = position.shape[1], hill_names(config)
    tail = position[:, horizon - horizon // 3 :]
    held = hills_held(config, position[:, -1])
    taken = np.stack([(held == k).any(axis=1) for k in range(len(names))], axis=1)
    values = {
        "dispersion": plane.pair_distance(tail).mean(axis=(1, 2)).astype(np.float32),
        "n_hills": taken.sum(axis=1).astype(np.int32),
        "hill_set": (taken * 2 ** np.arange(len(names))).sum(axis=1).astype(np.int32),
        "hill": held,
    }
    sets = ("".join(n for k, n in enumerate(names) if code >> k & 1) for code in range(2 ** len(names)))
    specs = (
        LabelSpec(name="dispersion_class", source="dispersion", kind="quantile", bins=3),
        LabelSpec("n_hills", "n_hills", "class", classes=tuple(str(n) for n in range(N_AGENTS + 1))),
        LabelSpec("hill_set", "hill_set", "class", classes=tuple(name or "none" for name in sets)),
        LabelSpec("hill", "hill", "class", classes=(*names, "none")),
    )
    return Labels(values=values, specs=specs)


def hand_features(batch: TrajectoryBatch) -> Features:
    """Summaries that a person would try first; see docs/domains.md."""
    obs, actions, mask = (np.asarray(field) for field in batch)
    position, both = obs[..., :2], np.all(mask, axis=2)
    length, straight = plane.paths(position, mask)
    centre = position.mean(axis=2)
    half = position.shape[1] // 2
    near = plane.pair_distance(position).min(axis=-1)
    far = plane.pair_distance(position).max(axis=-1)
    columns = {
        "path_length": length.mean(axis=1),
        "path_length_spread": length.std(axis=1),
        "straightness": straight.mean(axis=1),
        "centre_x": plane.masked_mean(centre[..., 0], both, axis=1),
        "centre_y": plane.masked_mean(centre[..., 1], both, axis=1),
        "nearest_pair_first_half": plane.masked_mean(near[:, :half], both[:, :half], axis=1),
        "nearest_pair": plane.masked_mean(near, both, axis=1),
        "farthest_pair": plane.masked_mean(far, both, axis=1),
        "late_speed": late_speed(position, mask),
    }
    return Features(values=np.stack(list(columns.values()), axis=1).astype(np.float32), names=tuple(columns))


def late_speed(position: Float[np.ndarray, "B T N 2"], mask: np.ndarray) -> Float[np.ndarray, " B"]:
    """Mean distance an agent walks in a step of the last quarter."""
    first = position.shape[1] - max(2, position.shape[1] // 4)
    late, real = position[:, first:], mask[:, first:]
    steps = np.linalg.norm(np.diff(late, axis=1), axis=-1)
    return plane.masked_mean(steps, real[:, 1:] & real[:, :-1], axis=(1, 2))
