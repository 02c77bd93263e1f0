"""Recorded episodes as the shards of a data set. B episodes, T steps, N agents."""

from typing import Any

import numpy as np

from data_gen.collecting.labels import gather
from data_gen.collecting.spool import FIELDS, Spool
from data_gen.hand import Described, hand_features, hand_names
from data_gen.learners.rollout import team_return
from data_gen.storage.feature_mask import feature_mask_json
from data_gen.storage.shard import Shard, stack_padded
from data_gen.team import Team, feature_mask
from data_gen.trajectory import Features, Labels, LabelSpec, Outcomes, RowIndex, TrajectoryBatch

SHARD_BYTES = 64 * 2**20


def blocks_of(spool: Spool, team: Team) -> list[range]:
    """Which episodes go into each shard, so that none is larger than `SHARD_BYTES` but for one of a single episode."""
    longest, total = max(entry.steps for entry in spool.entries), len(spool.entries)
    width = len(team.obs_names) + team.action.size + 2
    each = max(1, SHARD_BYTES // (4 * longest * len(team.agents) * width))
    return [range(start, min(start + each, total)) for start in range(0, total, each)]


def shard_of(spool: Spool, rows: range, team: Team, meta: dict[str, Any], labels: Labels) -> Shard:
    """Some of the episodes, padded to the longest of all; `labels` are those of all."""
    longest, entries = max(entry.steps for entry in spool.entries), [spool.entries[row] for row in rows]
    found, real = [spool.read(row) for row in rows], feature_mask(team)
    of = Described(team.obs_names, team.action, team.action_names, position=())
    hand = [hand_features(one["obs"], one["actions"], one["mask"], real, of) for one in found]
    obs, actions, mask, rewards = (stack_padded([one[name] for one in found], longest) for name in FIELDS)
    last = np.arange(longest) == np.array([entry.steps for entry in entries])[:, None] - 1
    terminated = np.array([entry.terminated for entry in entries])[:, None]
    own = {name: value[rows.start : rows.stop] for name, value in labels.values.items()}
    returns = np.asarray(team_return(rewards), np.float32)
    numbers = np.array([(row, spool.entries[row].group, spool.entries[row].checkpoint, 0) for row in rows], np.int32)
    return Shard(
        batch=TrajectoryBatch(obs=obs, actions=actions, mask=mask),
        rows=RowIndex(*np.ascontiguousarray(numbers.T)),
        outcomes=Outcomes(rewards=rewards, terminated=last & terminated, truncated=last & ~terminated),
        labels=Labels(values={"team_return": returns, **own}, specs=labels.specs),
        hand=Features(values=np.stack(hand), names=hand_names(of)),
        policies={},
        curve=np.zeros((1, 0), np.float32),
        action=team.action,
        meta=meta,
    )


def labels_of(spool: Spool) -> Labels:
    """The user's labels, the class of the return, and where there are several checkpoints, which one it was."""
    given = gather([entry.labels for entry in spool.entries])
    values, specs = dict(given.values), [LabelSpec("return_class", "team_return", "quantile", bins=3), *given.specs]
    numbers, codes = np.unique([entry.checkpoint for entry in spool.entries], return_inverse=True)
    if len(numbers) > 1:
        values["progress"] = codes.astype(np.int32)
        classes = tuple(f"checkpoint {number}" for number in numbers)
        specs.append(LabelSpec("progress", "progress", "class", classes=classes))
    return Labels(values=values, specs=tuple(specs))


def meta_of(name: str, team: Team, split: list[int], seed: int) -> dict[str, Any]:
    """What all shards agree on, as JSON values."""
    return {
        "domain": {"name": "recorded", "environment": name},
        "recording": {"split": split, "seed": seed},
        "agents": list(team.agents),
        "obs_names": list(team.obs_names),
        "action_names": list(team.action_names),
        "choices": {agent: space.choices for agent, space in team.done.items() if team.action.kind == "discrete"},
        "feature_mask": feature_mask_json(feature_mask(team)),
    }
