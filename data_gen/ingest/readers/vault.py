"""Flashbax vaults as OG-MARL writes them: a folder with one stream of episodes for each uid."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int64

from data_gen.ingest.readers.flashbax import BLOCK_BYTES, ENDS, READ, Stream, blocks, ended, open_stream, values
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec, InputError

GROUPS = ("episode", "uid")


@dataclass
class Vault:
    """`uid` is a part of the vault, several with commas, or all; none will do where there is one.

    Data are split by episode, or by uid. `roles` says that an agent's column means something, as where each agent has a
    policy of its own; without it agents are exchangeable.
    """

    path: str
    uid: str | None = None
    group: str = "episode"
    roles: bool = True

    def __post_init__(self) -> None:
        if self.group not in GROUPS:
            raise InputError(f"group={self.group!r}: a vault is split by one of {', '.join(GROUPS)}.")


class VaultReader(NamedTuple):
    """See `Reader`. A block of whole episodes is in memory at a time."""

    layout: Layout
    streams: tuple[Stream, ...]
    group: str

    def recordings(self) -> Iterator[Recording]:
        """Every episode of every uid, the last of each also where it was not finished: like one that was cut."""
        for number, stream in enumerate(self.streams):
            yield from _episodes(stream, number, self.layout, self.group)


def open_vault(settings: Vault) -> VaultReader:
    """Check the leaves and find the ends of episodes, which are where every agent is terminal or truncated.

    Raises InputError where the vault or a uid is not there, is damaged, holds no step, or the uids do not fit together.
    """
    root = Path(settings.path).expanduser()
    streams = tuple(open_stream(root / uid) for uid in _chosen(root, settings.uid))
    for other in streams[1:]:
        _check_alike(streams[0], other)
    return VaultReader(_layout(root, streams, settings.roles), streams, settings.group)


def _chosen(root: Path, wanted: str | None) -> list[str]:
    if not root.is_dir():
        raise InputError(f"{root} is no folder. A vault is one, such as 2halfcheetah.vlt, with a folder for each uid.")
    if (root / "metadata.json").is_file():
        raise InputError(f"{root} is one uid of a vault. Give path={root.parent} and uid={root.name}.")
    found = sorted(entry.parent.name for entry in root.glob("*/metadata.json"))
    if not found:
        raise InputError(f"{root} holds no uid (no folder with metadata.json), so it is no vault. Check the path.")
    if wanted is None and len(found) > 1:
        raise InputError(f"{root} holds {', '.join(found)}. Say which, as in uid={found[0]}, or take uid=all.")
    if wanted in (None, "all"):
        return found
    names = [name.strip() for name in wanted.split(",")]
    if unknown := [name for name in names if name not in found]:
        raise InputError(f"{root} has no uid {unknown[0]!r}; it holds {', '.join(found)}.")
    if len(set(names)) < len(names):
        raise InputError(f"uid={wanted} names a uid twice; an episode must not enter a data set twice.")
    return names


def _check_alike(first: Stream, other: Stream) -> None:
    for name in READ:
        shapes = [list(one.leaves[name].shape[2:]) if name in one.leaves else None for one in (first, other)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"{other.root}: leaf {name!r} has shape {shapes[1]} a step, but in {first.root} it has {shapes[0]}. "
                f"Read the two one by one."
            )


def _layout(root: Path, streams: tuple[Stream, ...], roles: bool) -> Layout:
    n_agents, n_obs = streams[0].leaves["observations"].shape[2:]
    action, uids = _action(root, streams), tuple(stream.name for stream in streams)
    return Layout(
        source="vault",
        parts=(),
        axes=(),
        features=tuple(f"obs_{k}" for k in range(n_obs)),
        action=action,
        action_names=tuple(f"action_{k}" for k in range(action.size)) if action.kind == "continuous" else (),
        agents=_agent_names(n_agents) if roles else (),
        rate=0.0,
        units={},
        labels=(LabelColumn("uid", "recording", "class", uids),) if len(uids) > 1 else (),
        provenance={
            "path": str(root.resolve()),
            "uids": list(uids),
            "steps": [int(stream.stops[-1]) for stream in streams],
            "left_out": sorted({name for stream in streams for name in stream.left_out}),
        },
    )


def _agent_names(n: int) -> tuple[str, ...]:
    return tuple(f"agent_{k}" for k in range(n))


def _action(root: Path, streams: tuple[Stream, ...]) -> ActionSpec:
    """Whole numbers are choices: as many as infos.legals has, else as many as the highest that occurs says."""
    leaves = [stream.leaves["actions"] for stream in streams]
    real = {leaf.dtype.numpy_dtype.kind == "f" for leaf in leaves}
    if len(real) > 1:
        raise InputError(f"{root}: actions are whole numbers in some uids only. Read the others apart.")
    if real == {leaves[0].rank == 3}:
        raise InputError(
            f"{streams[0].root}: leaf 'actions' holds {leaves[0].dtype.name} of shape {list(leaves[0].shape)}; it must "
            f"be one whole number for each agent, or a vector of real ones."
        )
    if real == {True}:
        return ActionSpec("continuous", int(leaves[0].shape[3]))
    return ActionSpec("discrete", max(_choices(stream) for stream in streams))


def _choices(stream: Stream) -> int:
    leaf, highest = stream.leaves["actions"], 0
    for steps in blocks(int(stream.stops[-1]), BLOCK_BYTES // (8 * leaf.shape[2])):
        own = values(stream.root, "actions", leaf, (0, steps))
        wrong = np.argwhere((own < 0) | (own >= (stream.n_legal or np.inf)))
        if len(wrong):
            step, agent = wrong[0].tolist()
            known = f"infos.legals knows 0..{stream.n_legal - 1}" if stream.n_legal else "choices begin with 0"
            raise InputError(
                f"{stream.root}: action {own[step, agent]} at step {steps.start + step}, agent {agent}; {known}. "
                f"Number the choices from 0."
            )
        highest = max(highest, int(own.max()))
    return stream.n_legal or 1 + highest


def _runs(stops: Int64[np.ndarray, " E"], most: int) -> Iterator[tuple[int, list[int]]]:
    """First episode and stops of runs of whole episodes: of `most` steps together, or one that is longer."""
    first = 0
    while first < len(stops):
        start = int(stops[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(stops, start + most, side="right")))
        yield first, stops[first:last].tolist()
        first = last


def _episodes(stream: Stream, number: int, layout: Layout, group: str) -> Iterator[Recording]:
    start, width = 0, sum(int(np.prod(leaf.shape[2:])) for leaf in stream.leaves.values())
    for first, stops in _runs(stream.stops, BLOCK_BYTES // (4 * width)):
        steps = slice(start, stops[-1])
        block = {name: values(stream.root, name, leaf, (0, steps)) for name, leaf in stream.leaves.items()}
        for episode, stop in enumerate(stops, first):
            own = {name: whole[start - steps.start : stop - steps.start] for name, whole in block.items()}
            start = stop
            found = _recording(stream, episode, own, layout.action)
            yield found._replace(
                group=stream.name if group == "uid" else found.name,
                labels={"uid": np.asarray(number, np.int32)} if layout.labels else {},
            )


def _recording(stream: Stream, episode: int, own: dict[str, np.ndarray], action: ActionSpec) -> Recording:
    over, (steps, n_agents) = ended(own), own[ENDS[0]].shape
    return Recording(
        name=f"{stream.name}/{episode}",
        group="",
        file=str(stream.root),
        agents=_agent_names(n_agents),
        time=np.arange(steps, dtype=np.float64),
        # An agent that ends before the others is there up to its own end; what the file has after that is padding.
        present=np.cumsum(over, axis=0) - over == 0,
        position=np.zeros((steps, n_agents, 0, 0), np.float32),
        features=own["observations"].astype(np.float32),
        actions=own["actions"].astype(np.int32 if action.kind == "discrete" else np.float32),
        rewards=own["rewards"].astype(np.float32),
        terminated=bool(own["terminals"][-1].all()),
        labels={},
    )
