"""What a domain is: pure functions of a state, static facts, and how its episodes are described."""

from collections.abc import Callable
from typing import Any, NamedTuple

from data_gen.trajectory import ActionSpec, Features, Labels, RowIndex, TrajectoryBatch


class Landmark(NamedTuple):
    """A circle worth drawing. `height` is what one agent (or the team) is paid at its centre in a step."""

    name: str
    x: float
    y: float
    radius: float
    height: float


class Domain(NamedTuple):
    """A team task that runs `horizon` steps and is cut there (truncated, never terminated).

    `step` returns the next state and the rewards of the N agents; `scripted` is a near-optimal team that sees the
    whole state. Everything is hashable, so that a Domain can be a static argument of jit; programs are compiled
    once for one Domain object.
    """

    name: str
    config: Any
    n_agents: int
    horizon: int
    action: ActionSpec
    obs_names: tuple[str, ...]
    position: tuple[int, int]
    landmarks: tuple[Landmark, ...]
    reset: Callable
    observe: Callable
    step: Callable
    scripted: Callable
    measure: Callable[[TrajectoryBatch, RowIndex], Labels]
    hand_features: Callable[[TrajectoryBatch], Features]
