"""What one recording job hands to the store. S training seeds, C checkpoints, U learner updates."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

from data_gen.trajectory import ActionSpec, Features, Labels, Outcomes, RowIndex, TrajectoryBatch


class Shard(NamedTuple):
    """Episodes of some training seeds, with the policies that made them and how those learned.

    `policies` maps a parameter's path to an array [S, C, ...]; `curve` is the mean team return of the learner's
    own episodes. `meta` is JSON: what every shard of one data set must agree on. `states` maps a name, such as "qpos",
    to what a simulator needs to show a step again, [B, T, ...]; domains that nothing has to show leave it empty.
    `discarded` says, a line each, which episodes were thrown away and why.
    """

    batch: TrajectoryBatch
    rows: RowIndex
    outcomes: Outcomes
    labels: Labels
    hand: Features
    policies: dict[str, np.ndarray]
    curve: Float32[np.ndarray, "S U"]
    action: ActionSpec
    meta: dict[str, Any]
    states: Mapping[str, np.ndarray] = MappingProxyType({})
    discarded: tuple[str, ...] = ()


def stack_padded(values: Sequence[Shaped[np.ndarray, "_ ..."]], steps: int) -> Shaped[np.ndarray, "B T ..."]:
    """Episodes of different lengths as one array: zeros after the last step of each."""
    whole = np.zeros((len(values), steps, *values[0].shape[1:]), values[0].dtype)
    for row, one in zip(whole, values, strict=True):
        row[: len(one)] = one
    return whole
