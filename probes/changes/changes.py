"""Change points of a run: when in training the latents of each training seed changed, at every level.

Letters: B rows, N agents, Zw joint latent, Za local latent.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy.stats import binomtest

from data_gen.trajectory import InputError, RowIndex
from probes.changes.agreement import Timing, agreement_table
from probes.changes.series import LEAST_CHECKPOINTS, Series, find_changes, pick_rows
from probes.changes.turnover import turnover
from probes.controls import generator
from probes.levels import JOINT, collapsed, latents_of, local_level

SERIES_COLUMNS = ("level", "group", "n_changes", "p", "penalty", "n_checkpoints", "n_episodes", "note")
CHANGE_COLUMNS = ("level", "group", "before", "after", "gain")
EDGE_COLUMNS = ("level", "before", "after", "n_changed", "n_groups", "share", "ci_low", "ci_high")
TURNOVER_COLUMNS = ("level", "group", "before", "after", "cluster", "share_before", "share_after", "rise")
RETURN_COLUMNS = ("group", "checkpoint", "return_mean")


@dataclass
class Changes:
    """How change points are found. `false_alarms` is the share of unchanging seeds that are wrongly given one.

    It holds at each level of the latent. `permutations` of a seed's episodes set the penalty; `episodes` is how many of
    a seed are used at most; `agreement_permutations` pair the seeds of two agents.
    """

    false_alarms: float = 0.01
    permutations: int = 299
    episodes: int = 400
    agreement_permutations: int = 1999
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.false_alarms < 1:
            raise InputError(f"changes.false_alarms is {self.false_alarms}; it must lie between 0 and 1.")
        least = math.ceil(1 / self.false_alarms) - 1
        if self.permutations < least:
            raise InputError(
                f"changes.permutations is {self.permutations}; false_alarms={self.false_alarms} needs {least} or more."
            )
        if self.episodes < LEAST_CHECKPOINTS or self.agreement_permutations < 19 or self.seed < 0:
            raise InputError(
                f"changes: episodes is {self.episodes}, agreement_permutations {self.agreement_permutations} and seed "
                f"{self.seed}; take at least {LEAST_CHECKPOINTS} episodes, 19 permutations and a seed that is not "
                f"negative."
            )


class ChangeTables(NamedTuple):
    """`series`: a row a seed and level. `changes`: the change points. `edges`: the share of seeds that change between
    two checkpoints. `agreement`: of agents. `turnover`: clusters that come and go. `returns`: the learning curve."""

    series: pd.DataFrame
    changes: pd.DataFrame
    edges: pd.DataFrame
    agreement: pd.DataFrame
    turnover: pd.DataFrame
    returns: pd.DataFrame


def change_tables(
    config: Changes,
    *,
    z_omega: Float[np.ndarray, "B Zw"],
    z_alpha: Float[np.ndarray, "B N Za"],
    present: Bool[np.ndarray, "B N"],
    joint_clusters: Int[np.ndarray, " B"],
    agent_clusters: Int[np.ndarray, "B N"],
    returns: Float[np.ndarray, " B"],
    rows: RowIndex,
) -> ChangeTables:
    """All tables. Clusters are numbers, -1 for none; `present` says whether an agent has a real step in an episode."""
    anyone = np.asarray(present.any(axis=1))
    here = {JOINT: anyone} | {local_level(i): present[:, i] for i in range(present.shape[1])}
    clusters = {JOINT: joint_clusters} | {local_level(i): of_agent for i, of_agent in enumerate(agent_clusters.T)}
    groups = np.unique(rows.group[anyone]).tolist()
    found = {
        level: _series_of_level(level, z, here[level], groups, rows, config)
        for level, z in latents_of(z_omega, z_alpha).items()
    }
    records = [
        {"level": level, "group": group} | record
        for level, by_group in found.items()
        for group, series in by_group.items()
        for mine in [np.flatnonzero(here[level] & (rows.group == group))]
        for record in turnover(series, rows.checkpoint[mine], clusters[level][mine])
    ]
    numbers = np.unique(rows.checkpoint[anyone]).tolist()
    timing = {level: _timing(by_group, numbers) for level, by_group in found.items() if level != JOINT}
    return ChangeTables(
        series=_series_table(found),
        changes=_change_table(found),
        edges=_edge_table(found),
        agreement=agreement_table(timing, config.agreement_permutations, config.seed),
        turnover=pd.DataFrame(records, columns=list(TURNOVER_COLUMNS)),
        returns=_return_table(returns[anyone], rows.group[anyone], rows.checkpoint[anyone]),
    )


def _series_of_level(
    level: str,
    z: Float[np.ndarray, "B Z"],
    here: Bool[np.ndarray, " B"],
    groups: list[int],
    rows: RowIndex,
    config: Changes,
) -> dict[int, Series]:
    why = "the agent is never there" if not here.any() else "the level has collapsed" if collapsed(z[here]) else ""
    found = {}
    for group in groups:
        rng = generator(config.seed, level, f"changes of group {group}")
        picked = pick_rows(rows, here & (rows.group == group), config.episodes, rng)
        if why:
            numbers = np.unique(rows.checkpoint[picked])
            found[group] = Series(numbers, len(picked), (), math.nan, math.nan, f"not evaluated: {why}")
        else:
            found[group] = find_changes(
                z[picked], rows.checkpoint[picked], config.false_alarms, config.permutations, rng
            )
    return found


def _all(found: dict[str, dict[int, Series]]) -> Iterable[tuple[dict[str, Any], Series]]:
    for level, by_group in found.items():
        for group, series in by_group.items():
            yield {"level": level, "group": group}, series


def _series_table(found: dict[str, dict[int, Series]]) -> pd.DataFrame:
    records = [
        where
        | {"n_changes": len(one.changes) if not one.note else math.nan, "p": one.p, "penalty": one.penalty}
        | {"n_checkpoints": len(one.checkpoints), "n_episodes": one.n_episodes, "note": one.note}
        for where, one in _all(found)
    ]
    return pd.DataFrame(records, columns=list(SERIES_COLUMNS))


def _change_table(found: dict[str, dict[int, Series]]) -> pd.DataFrame:
    records = [where | change._asdict() for where, one in _all(found) for change in one.changes]
    return pd.DataFrame(records, columns=list(CHANGE_COLUMNS))


def _edge_table(found: dict[str, dict[int, Series]]) -> pd.DataFrame:
    """Of the seeds that have two checkpoints in a row, how many change between them, with Wilson's interval."""
    records = []
    for level, by_group in found.items():
        evaluated = [one for one in by_group.values() if not one.note]
        edges = [edge for one in evaluated for edge in pairwise(one.checkpoints.tolist())]
        changed = [(change.before, change.after) for one in evaluated for change in one.changes]
        for before, after in sorted(set(edges)):
            n, k = edges.count((before, after)), changed.count((before, after))
            low, high = binomtest(k, n).proportion_ci(method="wilson")
            facts = {"level": level, "before": before, "after": after, "n_changed": k, "n_groups": n}
            records.append(facts | {"share": k / n, "ci_low": float(low), "ci_high": float(high)})
    return pd.DataFrame(records, columns=list(EDGE_COLUMNS))


def _timing(by_group: dict[int, Series], numbers: list[int]) -> Timing:
    """Where each seed changes; seeds are alike where they hold all the checkpoints that any of them holds."""
    evaluated = [one for one in by_group.values() if not one.note]
    most = max((one.checkpoints.tolist() for one in evaluated), key=len, default=[])
    afters = [[change.after for change in one.changes] for one in by_group.values()]
    return Timing(
        changes=np.array([np.isin(numbers[1:], after) for after in afters]).reshape(len(afters), len(numbers) - 1),
        alike=np.array([not one.note and one.checkpoints.tolist() == most for one in by_group.values()], bool),
    )


def _return_table(
    returns: Float[np.ndarray, " n"], groups: Int[np.ndarray, " n"], checkpoints: Int[np.ndarray, " n"]
) -> pd.DataFrame:
    where, codes, sizes = np.unique(np.stack([groups, checkpoints]), axis=1, return_inverse=True, return_counts=True)
    means = np.bincount(codes.ravel(), weights=returns) / sizes
    return pd.DataFrame(dict(zip(RETURN_COLUMNS, (*where, means), strict=True)))
