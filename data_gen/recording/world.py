"""What recording asks of a domain with its learner, whatever moves the agents.

Letters: S training seeds of a shard, P episodes of each, B = S · P, U updates, T steps, N agents.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Key

from data_gen.learners.learner import Progress
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import Policy
from data_gen.trajectory import ActionSpec, Features, Labels, RowIndex, TrajectoryBatch


class Played(NamedTuple):
    """Episodes with one snapshot of each seed, in the order of the seeds.

    `measured` [B, T, …] is ground truth that labels are made from and observations do not hold; `states` [B, T, …] is
    what a renderer needs. `failed` is the step at which physics failed, or -1: such an episode is not kept.
    """

    batch: TrajectoryBatch
    rewards: Float32[np.ndarray, "B T N"]
    terminated: Bool[np.ndarray, "B T"]
    truncated: Bool[np.ndarray, "B T"]
    measured: dict[str, np.ndarray]
    states: dict[str, np.ndarray]
    failed: Int32[np.ndarray, " B"]


@runtime_checkable
class World(Protocol):
    """A domain and the learner of its agents. The state of S training seeds is the world's own."""

    name: str
    config: Any
    ppo: PPO
    action: ActionSpec

    def start(self, keys: Key[Array, " S"]) -> Any:
        """New learners, one training seed a key."""
        ...

    def train(self, state: Any, n_updates: int, tell: Callable[[float], None]) -> tuple[Any, Progress]:
        """`n_updates` more updates; Progress has the axes [S, U], `tell` is told the share done."""
        ...

    def snapshot(self, state: Any) -> dict[str, np.ndarray]:
        """All that acting needs, by name, with a leading axis S."""
        ...

    def play(
        self, state: Any, key: Key[Array, ""], seeds: Int32[Array, " S"], checkpoint: Int32[Array, ""], episodes: int
    ) -> Played:
        """`episodes` of every seed with its policies as they are; `key` is the whole data set's."""
        ...

    def rollout(self, act: Policy, keys: Key[Array, " B"]) -> Played:
        """One episode a key under a policy from elsewhere; equal keys give equal starts, whatever acts."""
        ...

    def describe(self, played: Played, rows: RowIndex) -> tuple[Labels, Features]:
        """The domain's own labels and hand features."""
        ...

    def facts(self, seed: int) -> dict[str, Any]:
        """The domain's own part of a shard's meta, the same in every shard, as JSON."""
        ...

    def close(self) -> None:
        """Give up threads or buffers."""
        ...
