"""Minari data sets, one agent or several, whose spaces are then Dicts keyed by agent. T steps, N agents."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data_gen.ingest.readers.minari_files import FLAGS, SERIES, Files, Raw, open_files, read_metadata
from data_gen.ingest.recording import Layout, Recording
from data_gen.spaces import DICT, Space, space_of_json
from data_gen.team import Team, acts, feature_mask, observes, team_of
from data_gen.trajectory import InputError

ALONE = "agent_0"


@dataclass
class Minari:
    """`path` is the folder of a data set, such as ~/.minari/datasets/mine/play-v0."""

    path: str


class MinariReader(NamedTuple):
    """See `Reader`. `seen` and `done` are the spaces as the files have them, of all agents together."""

    layout: Layout
    files: Files
    team: Team
    seen: Space
    done: Space
    empty: tuple[str, ...]

    def recordings(self) -> Iterator[Recording]:
        """Every episode with a step; the first also says which had none. Rewards are the team's, given to every agent.

        An episode has an observation more than it has actions: the last, on which nobody acted, is left out.
        """
        dropped = self.empty
        for number, steps in self.files.steps.items():
            if steps > 0:
                raw = self.files.read(number, self.seen, self.done)
                yield _recording(raw, number, steps, self)._replace(dropped=dropped)
                dropped = ()


def open_minari(settings: Minari) -> MinariReader:
    """Read the spaces, and count every episode's steps.

    Raises InputError where the data set is not there or damaged, a space is not numbers, or no episode has a step.
    """
    folder = _folder(Path(settings.path).expanduser())
    meta = read_metadata(folder)
    seen, done = (_space(meta[f"{name}_space"], f"{folder}: {name}_space") for name in ("observation", "action"))
    files = open_files(folder, meta["data_format"], meta["total_episodes"])
    if not any(steps > 0 for steps in files.steps.values()):
        raise InputError(f"{folder} has no episode with a step: {len(files.steps)} episode(s) in all.")
    empty = tuple(
        f"{folder}: episode {number} has no action, and was left out" for number, n in files.steps.items() if n < 1
    )
    team = team_of(*_by_agent(seen, done, str(folder)), str(folder))
    return MinariReader(_layout(folder, meta, team), files, team, seen, done, empty)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(f"{path} is no folder. A Minari data set is one, as <name>-v0 in ~/.minari/datasets.")
    return path / "data" if (path / "data" / "metadata.json").is_file() else path


def _space(text: Any, where: str) -> Space:
    try:
        found = json.loads(text)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where} is not JSON ({error}). Get the data set again.") from None
    return space_of_json(found, where)


def _by_agent(seen: Space, done: Space, where: str) -> tuple[dict[str, Space], dict[str, Space]]:
    """Both spaces of each agent: of those that both are keyed by, or of the one that there is."""
    both = set(seen.parts) & set(done.parts) if seen.kind == done.kind == DICT else set()
    if not both:
        return {ALONE: seen}, {ALONE: done}
    if odd := sorted(set(seen.parts) ^ set(done.parts)):
        raise InputError(
            f"{where}: {odd[0]!r} is a key of one space and not of the other, while both have {sorted(both)[0]!r}. "
            f"Spaces of several agents have one key an agent, the same in both."
        )
    return dict(seen.parts), {agent: done.parts[agent] for agent in seen.parts}


def _layout(folder: Path, meta: dict[str, Any], team: Team) -> Layout:
    kept = (
        "dataset_id",
        "data_format",
        "minari_version",
        "total_episodes",
        "total_steps",
        "algorithm_name",
        "env_spec",
    )
    mask = feature_mask(team)
    return Layout(
        source="minari",
        parts=(),
        axes=(),
        features=team.obs_names,
        action=team.action,
        action_names=team.action_names,
        agents=team.agents,
        rate=0.0,
        units={},
        labels=(),
        provenance={
            "path": str(folder.resolve()),
            **{key: meta[key] for key in kept if key in meta},
            "left_out": ["infos", "the last observation of each episode"],
        },
        feature_mask=None if all(real.all() for real in mask) else mask,
    )


def _recording(raw: Raw, number: int, steps: int, reader: MinariReader) -> Recording:
    _check_series(raw, steps)
    team, shape = reader.team, (steps, len(reader.team.agents))
    features, actions = [], []
    for agent in team.agents:
        alone = agent not in reader.seen.parts
        own, moves = (part if alone else part[agent] for part in (raw.observations, raw.actions))
        place = "" if alone else f"/{agent}"
        features.append(observes(team, agent, own, (steps + 1,), f"{raw.file}/observations{place}")[:-1])
        actions.append(acts(team, agent, moves, (steps,), f"{raw.file}/actions{place}"))
    return Recording(
        name=f"episode_{number}",
        group=f"episode_{number}",
        file=raw.file,
        agents=team.agents,
        time=np.arange(steps, dtype=np.float64),
        present=np.ones(shape, bool),
        position=np.zeros((*shape, 0, 0), np.float32),
        features=np.stack(features, axis=1),
        actions=np.stack(actions, axis=1),
        rewards=np.repeat(raw.series["rewards"][:, None].astype(np.float32), shape[1], axis=1),
        terminated=bool(raw.series["terminations"][-1]),
        labels={},
    )


def _check_series(raw: Raw, steps: int) -> None:
    for name in SERIES:
        found = raw.series[name]
        if found.shape != (steps,) or found.dtype.kind not in "biuf":
            raise InputError(f"{raw.file}/{name} is {found.dtype}{list(found.shape)}; it must be [{steps}] numbers.")
        early = np.flatnonzero(found[:-1]) if name in FLAGS else np.zeros(0, int)
        if len(early):
            raise InputError(
                f"{raw.file}/{name} is set at step {early[0]} of {steps}, so this is more than one episode. Write each "
                f"by itself."
            )
