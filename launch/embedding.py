"""Latents of every episode into a run's `embeddings/`, and what they are worth into `usage.json`."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

from data_gen.storage.store import read_group, write_group
from data_gen.trajectory import SPLITS, Dataset, Episodes, InputError, OpenDataset, TrajectoryBatch
from launch.progress import progress
from launch.rundir import damaged, provenance
from launch.schema.train import Training
from marl_vae import load
from marl_vae.checkpoint import TrainState, read_description
from marl_vae.diagnostics.latent_free import LatentFree, fit_without_latents
from marl_vae.diagnostics.usage import Usage, usage
from marl_vae.diagnostics.words import sentences
from marl_vae.embed import as_arrays
from marl_vae.files import write_text
from marl_vae.metrics import criterion
from marl_vae.train import folders

POLICY_SEED = 0


def embed(
    run: Path,
    found: Dataset | OpenDataset,
    test: TrajectoryBatch | Episodes,
    latent_free: Callable[[], LatentFree],
    chosen: dict,
    seeds: dict[str, int],
) -> bool:
    """Embed with the chosen model and measure how its latents are used; False where that was done before."""
    target, used = run / "embeddings", run / "usage.json"
    fresh = not (target.exists() and used.exists() and read_group(target)[1]["chosen"] == chosen)
    if fresh:
        model = load(run)
        free = latent_free()
        with progress("use of the latents"):
            figures = usage(model, free, test, seed=seeds["train"])
        write_text(used, json.dumps(figures._asdict(), indent=1))
        arrays = as_arrays(model.embed(found.batch), found.rows, found.split)
        note = {"alpha": "z_alpha is taken at the mean of z_omega", "splits": list(SPLITS), "chosen": chosen}
        write_group(target, arrays, {**note, "provenance": provenance(seeds)}, replace=True)
    return fresh


def embed_seeds(
    cfg: Training,
    run: Path,
    found: Dataset | OpenDataset,
    parts: list[TrajectoryBatch | Episodes],
    states: list[TrainState],
) -> bool:
    """Embed with every seed's chosen model and say how its latents are used; False where all was done before.

    All are compared with one policy without latents, since it is the data's alone.
    """

    @cache
    def latent_free() -> LatentFree:
        first = load(run)
        with progress("policy without latents") as tell:
            return fit_without_latents(first.config, first.dims, first.scale, *parts[:2], seed=POLICY_SEED, report=tell)

    fresh = []
    for place, alone, state in zip(folders(run, cfg.train), cfg.train.alone(), states, strict=True):
        best = {criterion(cfg.model.form): float(state.best_bound)}
        chosen = {"step": int(state.best_step), **best, "data": read_description(place / "checkpoints").data}
        fresh.append(embed(place, found, parts[2], latent_free, chosen, {"train": alone.seed}))
        figures = read_usage(place)
        if place == run:
            print("\n".join(sentences(figures)))
        else:
            print(f"encoder seed {alone.seed}: {figures.verdict} ({figures.decided_by})")
    return any(fresh)


def read_usage(run: Path) -> Usage:
    """The figures that were measured when the run was embedded; InputError where the file is damaged."""
    try:
        return Usage(**json.loads((run / "usage.json").read_text()))
    except json.JSONDecodeError as error:
        raise InputError(damaged(run / "usage.json", error)) from None
