"""Two agents are paid only while both are at the same goal. Our reconstruction: see docs/domains.md."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats
from jaxtyping import Array, Bool, Float, Int, Key

from data_gen.domains import plane
from data_gen.domains.domain import Domain, Landmark
from data_gen.trajectory import Features, InputError, Labels, LabelSpec, RowIndex, TrajectoryBatch

N_AGENTS = 2
OBS_NAMES = ("x", "y", "partner_dx", "partner_dy", "partner_visible")
MOVERS = ("agent 0", "agent 1", "together", "nobody")


@dataclass(unsafe_hash=True)
class Coordination:
    """`goals` lie evenly on a circle of radius `distance`; starts are uniform in a square of half-width `start`."""

    actions: str = "discrete"
    horizon: int = 25
    goals: int = 4
    distance: float = 0.7
    radius: float = 0.3
    max_step: float = 0.12
    start: float = 0.05

    def __post_init__(self):
        plane.check_actions(self.actions, "coordination")
        if self.horizon < 3 or self.goals < 2:
            raise InputError(
                f"coordination: horizon is {self.horizon} and goals is {self.goals}; take at least 3 steps and 2 goals."
            )
        if not (self.max_step > 0 and 0 < self.distance <= 1 and 0 <= self.start <= 1):
            raise InputError(
                f"coordination: max_step {self.max_step} must be positive, distance {self.distance} must lie in (0, 1] "
                f"and start {self.start} in [0, 1]."
            )
        apart = 2 * self.distance * float(np.sin(np.pi / self.goals))
        if not 0 < 2 * self.radius < apart or self.start * 2**0.5 + self.radius >= self.distance:
            raise InputError(
                f"coordination: radius {self.radius} must be positive, below half the distance of two goals "
                f"({apart / 2:.3f}), and small enough that no agent starts at a goal."
            )


class MeetingState(NamedTuple):
    """`committed`: whether the agent has ever been at a goal."""

    position: Float[Array, "N 2"]
    committed: Bool[Array, " N"]


def make(config: Coordination) -> Domain:
    """The domain of a config."""
    return Domain(
        name="coordination",
        config=config,
        n_agents=N_AGENTS,
        horizon=config.horizon,
        action=plane.ACTIONS[config.actions],
        obs_names=OBS_NAMES,
        position=(0, 1),
        landmarks=tuple(
            Landmark(name, float(x), float(y), config.radius, 1.0)
            for name, (x, y) in zip(goal_names(config), goal_places(config), strict=True)
        ),
        reset=partial(reset, config),
        observe=observe,
        step=partial(step, config),
        scripted=partial(scripted, config),
        measure=partial(measure, config),
        hand_features=hand_features,
    )


def goal_names(config: Coordination) -> tuple[str, ...]:
    """goal 0, goal 1, … anticlockwise from the right."""
    return tuple(f"goal {k}" for k in range(config.goals))


def goal_places(config: Coordination) -> Float[np.ndarray, "G 2"]:
    """Evenly on a circle around the origin."""
    angle = 2 * np.pi * np.arange(config.goals) / config.goals
    return (config.distance * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)


def at_goals(config: Coordination, position: Float[Array, "N 2"]) -> Bool[Array, "N G"]:
    """Whether each agent is within `radius` of each goal."""
    offset = position[:, None, :] - jnp.asarray(goal_places(config))[None, :, :]
    return jnp.sum(offset**2, axis=-1) <= config.radius**2


def reset(config: Coordination, key: Key[Array, ""]) -> MeetingState:
    """Both start near the origin; nobody has committed."""
    position = jax.random.uniform(key, (N_AGENTS, 2), minval=-config.start, maxval=config.start)
    return MeetingState(position=position, committed=jnp.zeros(N_AGENTS, bool))


def observe(state: MeetingState) -> Float[Array, "N Do"]:
    """Own position, the partner's relative position (zero while hidden), and whether the partner is visible."""
    visible = jnp.full((N_AGENTS, 1), jnp.any(state.committed), jnp.float32)
    return jnp.concatenate([state.position, visible * plane.others_offset(state.position), visible], axis=-1)


def step(
    config: Coordination, state: MeetingState, actions: Float[Array, "N 2"] | Int[Array, " N"]
) -> tuple[MeetingState, Float[Array, " N"]]:
    """Move; both are paid 1 where they are now at the same goal, else 0."""
    position = plane.move(state.position, actions, config.actions, config.max_step)
    there = at_goals(config, position)
    paid = jnp.any(jnp.all(there, axis=0)).astype(jnp.float32)
    return MeetingState(position, state.committed | jnp.any(there, axis=1)), jnp.full(N_AGENTS, paid)


def scripted(config: Coordination, state: MeetingState) -> Float[Array, "N 2"] | Int[Array, " N"]:
    """Both walk straight to goal 0: all goals are equally far and pay the same."""
    target = jnp.broadcast_to(jnp.asarray(goal_places(config))[0][None, :], (N_AGENTS, 2))
    return plane.toward(state.position, target, config.actions, config.max_step)


def standing(config: Coordination, position: Float[np.ndarray, "B T N 2"]) -> Int[np.ndarray, "B T N"]:
    """The goal at which each agent stands, or the number of goals where it stands at none."""
    squared = np.sum((position[..., None, :] - goal_places(config)) ** 2, axis=-1)
    there = squared.min(axis=-1) <= config.radius**2
    return np.where(there, squared.argmin(axis=-1), config.goals).astype(np.int32)


def first_true(flags: Bool[np.ndarray, "B T"]) -> Int[np.ndarray, " B"]:
    """The first step at which a flag is up, or T."""
    return np.where(flags.any(axis=1), flags.argmax(axis=1), flags.shape[1]).astype(np.int32)


def first_mover(arrival: Int[np.ndarray, "B N"], horizon: int) -> Int[np.ndarray, " B"]:
    """Index into MOVERS: who was at any goal first; `horizon` stands for never."""
    first = np.where(arrival[:, 0] < arrival[:, 1], 0, 1)
    tie = np.where(arrival[:, 0] < horizon, 2, 3)
    return np.where(arrival[:, 0] == arrival[:, 1], tie, first).astype(np.int32)


def conventions(goal: Int[np.ndarray, " B"], rows: RowIndex, n_classes: int) -> Int[np.ndarray, " B"]:
    """For every row, the commonest goal of its training seed at the last checkpoint (the lowest number at a tie)."""
    convention, last = np.zeros_like(goal), rows.checkpoint.max()
    for group in np.unique(rows.group):
        of_group = rows.group == group
        counts = np.bincount(goal[of_group & (rows.checkpoint == last)], minlength=n_classes)
        convention[of_group] = counts.argmax()
    return convention


def goal_entropy(goal: Int[np.ndarray, " B"], rows: RowIndex, n_goals: int) -> tuple[float, float]:
    """Entropy of the goal within and between training seeds at the last checkpoint, in nats.

    Within: of a seed's episodes (failure counts as an outcome of its own), averaged over seeds. Between: of the
    conventions of the seeds that have one, so that a failed seed adds no variety.
    """
    last = rows.checkpoint == rows.checkpoint.max()
    groups = np.unique(rows.group)
    counts = [np.bincount(goal[last & (rows.group == group)], minlength=n_goals + 1) for group in groups]
    modal = np.array([count.argmax() for count in counts])
    within = [float(scipy.stats.entropy(count)) for count in counts]
    conventions = np.bincount(modal, minlength=n_goals + 1)[:n_goals]
    return float(np.mean(within)), float(scipy.stats.entropy(conventions)) if conventions.any() else 0.0


def measure(config: Coordination, batch: TrajectoryBatch, rows: RowIndex) -> Labels:
    """The goal where both stand at the last step; an episode without one counts as failed, agreed at step T."""
    where = standing(config, np.asarray(batch.obs)[..., :2])
    horizon, names = where.shape[1], (*goal_names(config), "none")
    together = (where[..., 0] == where[..., 1]) & (where[..., 0] < config.goals)
    goal = np.where(together[:, -1], where[:, -1, 0], config.goals).astype(np.int32)
    arrival = np.stack([first_true(where[..., i] < config.goals) for i in range(N_AGENTS)], axis=1)
    values = {
        "goal": goal,
        "coordinated": together[:, -1].astype(np.int32),
        "agreement_time": np.where(together[:, -1], first_true(together), horizon).astype(np.float32),
        "first_mover": first_mover(arrival, horizon),
        "convention": conventions(goal, rows, len(names)),
    }
    specs = (
        LabelSpec("goal", "goal", "class", classes=names),
        LabelSpec("coordinated", "coordinated", "class", classes=("no", "yes")),
        LabelSpec("agreement_time_class", "agreement_time", "quantile", bins=3),
        LabelSpec("first_mover", "first_mover", "class", classes=MOVERS),
        LabelSpec("convention", "convention", "class", classes=names),
    )
    return Labels(values=values, specs=specs)


def hand_features(batch: TrajectoryBatch) -> Features:
    """Summaries that a person would try first; see docs/domains.md."""
    obs, _, mask = (np.asarray(field) for field in batch)
    position, both = obs[..., :2], np.all(mask, axis=2)
    length, straight = plane.paths(position, mask)
    centre, apart = position.mean(axis=2), plane.pair_distance(position)[..., 0]
    visible = obs[..., 4].max(axis=2)
    columns = {
        "path_length_0": length[:, 0],
        "path_length_1": length[:, 1],
        "straightness_0": straight[:, 0],
        "straightness_1": straight[:, 1],
        "centre_x": plane.masked_mean(centre[..., 0], both, axis=1),
        "centre_y": plane.masked_mean(centre[..., 1], both, axis=1),
        "apart": plane.masked_mean(apart, both, axis=1),
        "visible_share": plane.masked_mean(visible, both, axis=1),
    }
    return Features(values=np.stack(list(columns.values()), axis=1).astype(np.float32), names=tuple(columns))
