"""What is known of the episodes that a run was trained on, and whether other episodes say the same of themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from data_gen.storage.dataset import digest, read_dataset
from data_gen.trajectory import SPLITS, Dataset, InputError, seen_rows, select, take
from launch.data import hold_out_of
from launch.rundir import data_of
from marl_vae import TrainedModel
from marl_vae.applying import check_order
from marl_vae.checkpoint import read_description
from marl_vae.differences import Measures, measures, measures_of

SETTINGS = ("domain", "rate", "units", "frame", "origin", "derived")
NAMES = {"feature": "obs_names", "action": "action_names"}
NOT_STATED = "not stated"


class TrainedOn(NamedTuple):
    """Figures and `meta` of the episodes that a run was fitted on.

    Without the data, `lacks` says why, there is no meta, and the figures are the scales that the model keeps. Figures
    are `by_agent` where they are known so and the model tells agents apart.
    """

    measures: Measures
    meta: dict[str, Any] | None
    by_agent: bool
    lacks: str


def trained_on(run: Path, model: TrainedModel) -> TrainedOn:
    """From the run's data set, where it still lies there unchanged; else from the model's own scales."""
    try:
        if digest(data_of(run)) != read_description(run / "checkpoints").data:
            raise InputError(f"{data_of(run)} is not what the run was trained on")
        found = read_dataset(data_of(run))
    except InputError as error:
        return TrainedOn(measures_of(model.scale, model.dims.action), None, False, str(error).split(". ")[0])
    seen = select(found, seen_rows(found, hold_out_of(run)))
    batch, by_agent = take(seen.batch, seen.rows_of(SPLITS[0])), not model.exchangeable
    return TrainedOn(measures(batch, found.features, found.action, by_agent), found.meta, by_agent, "")


def check_meaning(known: TrainedOn, found: Dataset, where: str) -> None:
    """Raise InputError where the same numbers mean other things than in training.

    Features, actions or (if the model tells them apart) agents in another order, and places in the world's frame that
    are measured from another origin.
    """
    if known.meta is None:
        return
    before, now = (meta.get("origin", []) for meta in (known.meta, found.meta))
    if before != now and "world" in (known.meta.get("frame"), found.meta.get("frame")):
        raise InputError(
            f"{where}: places are measured from {now or 0}, and were from {before or 0} in the training data. Ingest "
            f"these again with columns.origin={str(before or [0.0] * len(now)).replace(' ', '')}."
        )
    for agent in range(found.batch.obs.shape[2]):
        for what, key in NAMES.items():
            check_order(what, names_of(known.meta, key, agent), names_of(found.meta, key, agent), where)
    if known.by_agent:
        check_order("agent", known.meta.get("agents", []), found.meta.get("agents", []), where)


def names_of(meta: dict[str, Any], key: str, agent: int) -> list[str]:
    """Names of an agent's columns, the same for all agents where they are not given one by one; [] where unknown."""
    names = meta.get(key, [])
    return names[min(agent, len(names) - 1)] if names and isinstance(names[0], list) else names


def other_settings(known: TrainedOn, found: Dataset) -> list[str]:
    """What the data say of themselves otherwise than the training data do, a line each."""
    return [] if known.meta is None else list(dict.fromkeys(_other(known.meta, found.meta, found.batch.obs.shape[2])))


def _other(before: dict[str, Any], now: dict[str, Any], agents: int) -> Iterator[str]:
    for key in SETTINGS:
        if before.get(key) != now.get(key):
            yield f"{key}: {now.get(key, NOT_STATED)}; in training {before.get(key, NOT_STATED)}"
    for what, key in NAMES.items():
        for agent in range(agents):
            old, new = names_of(before, key, agent), names_of(now, key, agent)
            if bool(old) != bool(new):
                yield f"{what}s have {'names, and had none' if new else 'no names, and had some'} in training"
            for place, (a, b) in enumerate(zip(old, new, strict=False)):
                if a != b:
                    yield f"{what} {place} is named {b!r}; in training {a!r}"
