"""A source as a data set: a second pass that pads episodes to one size and writes them shard by shard.

What shard an episode goes to follows from the survey alone, so an ingest that was interrupted leaves shards that the
same command takes over, and ends in the same files. Letters: R recordings, B rows of a shard, T steps, N agents.
"""

import json
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32

from data_gen.hand import Described, hand_features, hand_names
from data_gen.ingest.episodes import Episode, Outline
from data_gen.ingest.kept import Treat
from data_gen.ingest.recording import Layout, Reader, Recording
from data_gen.ingest.survey import Survey
from data_gen.storage.dataset import check_kept, present_shards, write_shard
from data_gen.storage.feature_mask import KEY, feature_mask_json
from data_gen.storage.shard import Shard, stack_padded
from data_gen.storage.split import sizes_for
from data_gen.trajectory import (
    FeatureMask,
    Features,
    InputError,
    Labels,
    Outcomes,
    RowIndex,
    TrajectoryBatch,
    all_real,
)

REFUSE, DROP = "refuse", "drop"
PADDED = (*TrajectoryBatch._fields, *Outcomes._fields)
META_SHARE = 16  # a shard is at least so many times as large as the metadata that every shard repeats


@dataclass
class Storing:
    """`duplicates`: recordings that are stored twice are refused, or dropped. `split`: groups that train, validate and
    test, one half, a sixth and a third of them where none is given (under three groups are then only to be embedded);
    `seed` draws which. `shard_bytes` is about the size of a shard.
    """

    duplicates: str = REFUSE
    split: list[int] | None = None
    seed: int = 0
    shard_bytes: int = 64 * 2**20

    def __post_init__(self) -> None:
        if self.duplicates not in (REFUSE, DROP):
            raise InputError(f"duplicates={self.duplicates!r}; it is one of {REFUSE}, {DROP}.")
        if self.split is not None and (len(self.split) != 3 or min(self.split) < 1):
            raise InputError(f"split={self.split}; give three positive numbers of groups: to train, validate and test.")
        if self.seed < 0 or self.shard_bytes < 1:
            raise InputError(
                f"seed={self.seed} and shard_bytes={self.shard_bytes}; the one is at least 0, the other 1."
            )


class Plan(NamedTuple):
    """What goes where: `episodes` of each recording, and the number of its group, 0 and -1 where none is stored.

    `copies` says of the recordings that are left out as copies what they copy.
    """

    outline: Outline
    real: FeatureMask
    steps: int
    n_agents: int
    episodes: Int32[np.ndarray, " R"]
    group: Int32[np.ndarray, " R"]
    copies: dict[int, str]
    rows_per_shard: int
    n_shards: int
    meta: dict[str, Any]

    def shard_of(self, row: int) -> int:
        """The shard that a row is in; what comes after the last row goes with it."""
        return min(row // self.rows_per_shard, self.n_shards - 1)


def plan(found: Survey, outline: Outline, how: Storing, treatment: dict[str, Any], summary: dict[str, Any]) -> Plan:
    """Raises InputError where recordings are doubled, no episode is left, or the groups cannot be split."""
    episodes = _kept(found, how)
    used = np.flatnonzero(episodes)
    numbers = {int(group): k for k, group in enumerate(dict.fromkeys(found.group_of[used].tolist()))}
    names = [found.groups[group] for group in numbers]
    real = _real(found.layout, outline, found.n_agents)
    meta = {
        "domain": {"name": found.layout.source},
        "recording": {"split": _split(names, how, found), "seed": how.seed},
        "obs_names": list(outline.obs_names),
        "action_names": list(outline.action_names),
        "hand_names": list(hand_names(_described(outline))),
        "agents": list(outline.agents),
        **({KEY: feature_mask_json(real)} if found.layout.feature_mask is not None else {}),
        **({"origin": list(found.layout.origin)} if any(found.layout.origin) else {}),
        **({"position": list(outline.position)} if len(outline.position) == 2 else {}),
        **{"rate": outline.rate, "units": dict(outline.units), "frame": outline.frame, "derived": outline.derived},
        **{"recordings": list(found.names), "groups": names, "treatment": treatment, "found": summary},
    }
    group = [numbers[of] if count else -1 for of, count in zip(found.group_of.tolist(), episodes.tolist(), strict=True)]
    width = len(outline.obs_names) + (outline.action.size if outline.action.kind == "continuous" else 1) + 1
    row_bytes = 4 * found.treated.longest * found.n_agents * width
    rows = max(1, max(how.shard_bytes, META_SHARE * len(json.dumps(meta))) // row_bytes)
    return Plan(
        outline=outline,
        real=real,
        steps=found.treated.longest,
        n_agents=found.n_agents,
        episodes=episodes,
        group=np.array(group, np.int32),
        copies={copy.number: copy_in_words(found, place) for place, copy in enumerate(found.copies)},
        rows_per_shard=rows,
        n_shards=-(-int(episodes.sum()) // rows),
        meta=meta,
    )


def _kept(found: Survey, how: Storing) -> Int32[np.ndarray, " R"]:
    episodes = found.treated.episodes.copy()
    if found.copies and how.duplicates == REFUSE:
        said = "; ".join(copy_in_words(found, place) for place in range(min(3, len(found.copies))))
        raise InputError(
            f"{found.layout.source}: {len(found.copies)} recording(s) are stored twice, and could train and test at "
            f"once: {said}. Remove them, or leave them out with duplicates={DROP}."
        )
    episodes[[copy.number for copy in found.copies]] = 0
    if not episodes.any():
        first = f" The first reason: {found.treated.dropped.first[0]}." if found.treated.dropped.count else ""
        raise InputError(
            f"{found.layout.source}: no episode is left of {len(episodes)} recording(s).{first} Look at the "
            f"summary, and at the treatment's settings."
        )
    return episodes


def _real(layout: Layout, outline: Outline, n_agents: int) -> FeatureMask:
    """Which observations and actions each agent has; what is derived everyone has."""
    found, given = all_real(n_agents, len(outline.obs_names), outline.action), layout.feature_mask
    if given is None:
        return found
    for column, name in enumerate(outline.obs_names):
        if name in layout.features:
            found.obs[:, column] = given.obs[:, layout.features.index(name)]
    return found._replace(actions=given.actions) if outline.derived == "given" else found


def _described(outline: Outline) -> Described:
    return Described(outline.obs_names, outline.action, outline.action_names, outline.position)


def copy_in_words(found: Survey, place: int) -> str:
    """Which recording is a copy of which."""
    copy = found.copies[place]
    groups = [found.groups[found.group_of[number]] for number in (copy.number, copy.of)]
    apart = f" (groups {groups[0]} and {groups[1]})" if groups[0] != groups[1] else ""
    return f"{found.names[copy.number]!r} is {copy.kind} {found.names[copy.of]!r}{apart}"


def _split(groups: list[str], how: Storing, found: Survey) -> list[int]:
    if how.split is not None and len(groups) < len(how.split):
        raise InputError(
            f"{found.layout.source}: there are {len(groups)} group(s) ({', '.join(groups)}), and training, validation "
            f"and test need one each at least, since a group never straddles the split. Bring more recordings, or name "
            f"a finer group (the animal, game or pair that must not be split; without one, each recording is its own). "
            f"Windows of one recording are no groups: they are alike. To embed these with a trained run, leave split= "
            f"out."
        )
    return sizes_for(how.split, len(groups))


def write(
    root: Path,
    reader: Reader,
    treat: Treat,
    plan: Plan,
    provenance: dict[str, Any],
    tell: Callable[[float, str], None] = lambda share, words: None,
) -> None:
    """Write the shards that are not there yet; those that are have to be of the same source and settings. One is
    compressed and put on disk while the next is made.

    Raises InputError where they are not, or where the source is not what was surveyed.
    """
    there = set(present_shards(root))
    for index in sorted(there):
        check_kept(root, index, plan.n_shards, plan.meta)
    waiting: dict[int, list[tuple[int, Episode]]] = defaultdict(list)
    said: dict[int, list[str]] = defaultdict(list)
    writing: list[Future[bool]] = []

    def settle() -> None:
        while writing:
            writing.pop().result()

    def finish(index: int) -> None:
        rows, lines = waiting.pop(index, []), said.pop(index, [])
        if index not in there:
            shard = shard_of(rows, lines, plan)
            settle()
            writing.append(pool.submit(write_shard, root, index, plan.n_shards, shard, provenance))

    row, done, number = 0, 0, -1
    with ThreadPoolExecutor(1) as pool:
        for number, recording in enumerate(reader.recordings()):
            _check_expected(number, recording, plan)
            home, end = plan.shard_of(row), row + int(plan.episodes[number])
            if not there.issuperset(range(home, plan.shard_of(max(row, end - 1)) + 1)):
                episodes, lines = _treated(treat, number, recording, plan)
                said[home] += lines
                for place, episode in enumerate(episodes, row):
                    waiting[plan.shard_of(place)].append((number, episode))
            while (done + 1) * plan.rows_per_shard <= end and done < plan.n_shards - 1:
                finish(done)
                done += 1
            row = end
            tell((number + 1) / len(plan.episodes), f"shard {done + 1} of {plan.n_shards}")
        if number + 1 != len(plan.episodes):
            raise InputError(
                f"{reader.layout.source}: there are {number + 1} recording(s) now, instead of {len(plan.episodes)} "
                f"when the source was surveyed. Put the files back, and run the command again."
            )
        finish(plan.n_shards - 1)
        settle()


def _check_expected(number: int, recording: Recording, plan: Plan) -> None:
    names = plan.meta["recordings"]
    if number >= len(names) or recording.name != names[number]:
        raise InputError(
            f"{recording.file}: recording {recording.name!r} was not in this place when the source was surveyed; it "
            f"changes while it is read. Wait until it is whole, and run the command again."
        )


def _treated(treat: Treat, number: int, recording: Recording, plan: Plan) -> tuple[list[Episode], list[str]]:
    """Episodes of a recording, and what was left out of it."""
    if number in plan.copies:
        return [], [f"{plan.copies[number]}; it was left out"]
    episodes, lines = treat(recording, plan.n_agents)
    if len(episodes) != plan.episodes[number] or max([0, *(len(one.mask) for one in episodes)]) > plan.steps:
        raise InputError(
            f"{recording.file}: recording {recording.name!r} gives {len(episodes)} episode(s) now and gave "
            f"{plan.episodes[number]} when the source was surveyed; it changes while it is read. Wait until it is "
            f"whole, and run the command again."
        )
    return episodes, [*recording.dropped, *lines]


def shard_of(rows: list[tuple[int, Episode]], lines: list[str], plan: Plan) -> Shard:
    """Episodes, each with the number of its recording, padded to the plan's size."""
    numbers, episodes = np.array([number for number, _ in rows], np.int32), [episode for _, episode in rows]
    padded = {name: stack_padded([getattr(one, name) for one in episodes], plan.steps) for name in PADDED}
    of = _described(plan.outline)
    hand = [hand_features(one.obs, one.actions, one.mask, plan.real, of) for one in episodes]
    labels = {name: _stacked([one.labels[name] for one in episodes]) for name in episodes[0].labels}
    return Shard(
        batch=TrajectoryBatch(**{name: padded[name] for name in TrajectoryBatch._fields}),
        rows=RowIndex(
            episode=numbers,
            group=plan.group[numbers],
            checkpoint=np.zeros_like(numbers),
            t0=np.array([one.t0 for one in episodes], np.int32),
        ),
        outcomes=Outcomes(**{name: padded[name] for name in Outcomes._fields}),
        labels=Labels(values=labels, specs=plan.outline.labels),
        hand=Features(values=np.stack(hand), names=hand_names(of)),
        policies={},
        curve=np.zeros((0, 0), np.float32),
        action=plan.outline.action,
        meta=plan.meta,
        discarded=tuple(lines),
    )


def _stacked(values: list[Any]) -> np.ndarray:
    column = np.stack(values)
    return column.astype(np.float32 if column.dtype.kind == "f" else np.int32)
