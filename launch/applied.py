"""A trained run on another data set: what is written of its episodes, and beside what."""

from pathlib import Path
from typing import Any

import pandas as pd

from data_gen.storage.dataset import digest
from data_gen.storage.store import read_manifest
from data_gen.trajectory import Dataset, InputError
from launch.encoders import folders_of
from launch.rundir import config_of
from launch.schema.embed import Embedding
from launch.trained_on import NAMES, TrainedOn, names_of, other_settings
from marl_vae.differences import ACTION, ALL, EPISODE, EPISODE_NAMES, OBSERVATION, Difference, columns, differences
from probes.study.page import markdown

FOLDER = "embedded"
SHOWN = ["kind", "column", "agent", "training_mean", "new_mean", "differs"]
MOST_ROWS = 30


def trained_places(run: Path) -> list[Path]:
    """The folders of a run's encoder seeds; InputError where one has not been trained to its end."""
    config_of(run)  # says what is wrong where there is no run
    places = folders_of(run)
    for place in places:
        if not (place / "embeddings").exists():
            raise InputError(f"{place} has no embeddings: its training has not ended. Run launch.train for it first.")
    return places


def chosen_of(place: Path) -> dict[str, Any]:
    """Which model of an encoder seed made its embeddings."""
    return read_manifest(place / "embeddings")["attrs"]["chosen"]


def folder_for(cfg: Embedding) -> Path:
    """Where the embeddings go; InputError where those of another data set lie there."""
    data = Path(cfg.data).resolve()
    into = Path(cfg.run) / FOLDER / (cfg.name or (data.parent.name if data.name == "data" else data.name))
    for file in sorted(into.rglob("embeddings/manifest.json")):
        other = read_manifest(file.parent)["attrs"]["of"]
        if other["digest"] != digest(data):
            raise InputError(
                f"{into} holds the embeddings of {other['path']}, and {data} holds other episodes. Choose "
                "another name=, or remove that folder."
            )
    return into


def compared(known: TrainedOn, found: Dataset) -> pd.DataFrame:
    """A row a column of the data: the training's figures, the new ones, and what differs beyond the bounds."""
    new = columns(found.batch, found.features, found.action, known.by_agent)
    return pd.DataFrame([_row(one, found) for one in differences(known.measures, new)])


def _row(one: Difference, found: Dataset) -> dict[str, Any]:
    kind, place, agent = one.key
    return {
        "kind": kind,
        "column": _name(kind, place, agent, found),
        "agent": "all" if agent == ALL else str(agent),
        **{f"training_{name}": value for name, value in one.training._asdict().items()},
        **{f"new_{name}": value for name, value in one.new._asdict().items()},
        "mean_difference": one.mean_difference,
        "spread_ratio": one.spread_ratio,
        "outside": one.outside,
        "differs": "; ".join(one.reasons),
    }


def _name(kind: str, place: int, agent: int, found: Dataset) -> str:
    if kind == EPISODE:
        return EPISODE_NAMES[place]
    names = names_of(found.meta, NAMES["feature" if kind == OBSERVATION else "action"], max(agent, 0))
    width = found.action.size if kind == ACTION else found.batch.obs.shape[3]
    return names[place] if len(names) == width else f"{kind} {place}"


def summary_of(known: TrainedOn, found: Dataset, table: pd.DataFrame, title: str) -> str:
    """What was embedded and where it differs, in Markdown."""
    flagged = table.loc[table["differs"] != "", SHOWN]
    of = "what the model itself keeps of them" if known.lacks else "the episodes it was fitted on"
    lines = [f"# {title}", "", f"Compared with {of}, {len(flagged)} of {len(table)} columns differ beyond the bounds."]
    if known.lacks:
        lines += [
            f"The training data cannot be read ({known.lacks}): ranges, lengths, missing shares, names and rate "
            "are not compared, and features over all agents together."
        ]
    lines += [f"* {line}" for line in other_settings(known, found)]
    if len(flagged):
        lines += ["", markdown(flagged[:MOST_ROWS])]
    if len(flagged) > MOST_ROWS:
        lines += [f"Here are the first {MOST_ROWS}; all are in differences.csv."]
    return "\n".join(lines) + "\n"
