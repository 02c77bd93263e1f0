"""A run's data set, chosen models and embeddings as W&B artifacts; none of them copies a file."""

from pathlib import Path
from typing import Any

import wandb

from data_gen.storage.dataset import digest, present_shards, shard_path
from data_gen.storage.store import read_manifest
from launch.encoders import embedded_folders
from launch.rundir import data_of
from marl_vae.checkpoint import Checkpoints


def data_artifact(run: Path) -> wandb.Artifact:
    """The data set by reference, named by its digest: the same data is one artifact, whichever run brings it.

    W&B reads every file once, for its MD5.
    """
    root = data_of(run).resolve()
    shards = [shard_path(root, index) for index in present_shards(root)]
    name = digest(root)
    artifact = wandb.Artifact(f"data-{name[:12]}", type="dataset", metadata={"digest": name, **schema_of(shards)})
    for file in (file for shard in shards for file in sorted(shard.rglob("*")) if file.is_file()):
        artifact.add_reference(file.as_uri(), name=str(file.relative_to(root)))
    return artifact


def schema_of(shards: list[Path]) -> dict[str, Any]:
    """What one may want to know of a data set before fetching it; shapes are those of the first shard."""
    first = read_manifest(shards[0])
    episodes = sum(read_manifest(shard)["arrays"]["episode"]["shape"][0] for shard in shards)
    return {
        "schema": first["schema"],
        "shards": len(shards),
        "episodes": episodes,
        "domain": first["attrs"]["meta"].get("domain"),
        "action": first["attrs"]["action"],
        "labels": [spec["name"] for spec in first["attrs"]["label_specs"]],
        "arrays": first["arrays"],
    }


def model_artifact(run: Path, run_id: str) -> wandb.Artifact:
    """Every encoder seed's chosen model, laid out as in the run: `marl_vae.load` takes the downloaded folder."""
    chosen = {place: _chosen(place) for place in embedded_folders(run)}
    artifact = wandb.Artifact(f"model-{run_id}", type="model", metadata=_by_seed(run, chosen))
    for place in chosen:
        folder = place / "checkpoints"
        newest = folder / str(Checkpoints(folder).latest())  # it holds the chosen model, and the last one in `last`
        files = [folder / "model.json", *(file for file in newest.rglob("*") if newest / "last" not in file.parents)]
        _add(artifact, run, files)
    return artifact


def embeddings_artifact(run: Path, run_id: str) -> wandb.Artifact:
    """Every encoder seed's embeddings, laid out as in the run."""
    chosen = {place: _chosen(place) for place in embedded_folders(run)}
    artifact = wandb.Artifact(f"embeddings-{run_id}", type="embeddings", metadata=_by_seed(run, chosen))
    for place in chosen:
        _add(artifact, run, list((place / "embeddings").rglob("*")))
    return artifact


def _chosen(place: Path) -> dict[str, Any]:
    return read_manifest(place / "embeddings")["attrs"]["chosen"]


def _by_seed(run: Path, chosen: dict[Path, Any]) -> dict[str, Any]:
    return {str(place.relative_to(run)): said for place, said in chosen.items()}


def _add(artifact: wandb.Artifact, run: Path, files: list[Path]) -> None:
    """Add files where they lie. They are written once, so W&B needs no copy of its own to guard against changes."""
    for file in sorted(file for file in files if file.is_file()):
        artifact.add_file(str(file), name=str(file.relative_to(run)), policy="immutable", skip_cache=True)
