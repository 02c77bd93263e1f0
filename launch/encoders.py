"""What a run's encoders, one a seed, make of its data set, as the probes take it."""

import hashlib
from pathlib import Path

import numpy as np

from data_gen.storage.dataset import digest, identity_of
from data_gen.storage.store import read_group, read_manifest
from data_gen.trajectory import InputError, TrajectoryBatch
from launch.data import train_of
from launch.rundir import config_of, data_of
from marl_vae import load_untrained
from marl_vae.train import folders
from probes.features import Encoded


def folders_of(run: Path) -> list[Path]:
    """The folders of a run's encoder seeds, in the order of the seeds; of one of those folders, itself."""
    config = run / "config.yaml"
    return folders(run, train_of(run)) if config.exists() else [run]


def embedded_folders(run: Path) -> list[Path]:
    """The folders of the encoder seeds that were trained and embedded: none of a run that only holds data."""
    places = folders_of(run) if "train" in config_of(run) else []
    return [place for place in places if (place / "embeddings").exists() and (place / "usage.json").exists()]


def check_embeddings(run: Path) -> None:
    """Raise InputError where an encoder seed has no embeddings, or they are of other data than lie there now."""
    data = digest(data_of(run))
    for place in folders_of(run):
        if not (place / "embeddings").exists():
            raise InputError(f"{place} has no embeddings: its training has not ended. Run launch.train for it first.")
        if read_manifest(place / "embeddings")["attrs"]["chosen"]["data"] != data:
            raise InputError(
                f"{place / 'embeddings'} are of another data set than {data_of(run)} holds now. Train the run again "
                "under another name=, or put the old data set back."
            )


def digests_of(run: Path) -> dict[str, str]:
    """What stands for the embeddings of each encoder seed, by its place in the run's folder."""
    return {
        str(place.relative_to(run)): hashlib.sha256(identity_of(place / "embeddings")).hexdigest()
        for place in folders_of(run)
    }


def embeddings_of(run: Path) -> dict[Path, dict[str, np.ndarray]]:
    """The embeddings of each encoder seed by its folder, every file read and checked once.

    Raises InputError as check_embeddings, and where a file was altered.
    """
    check_embeddings(run)
    return {place: read_group(place / "embeddings")[0] for place in folders_of(run)}


def encoded_of(folders: list[Path], batch: TrajectoryBatch, seed: int) -> Encoded:
    """The embeddings in these folders, one an encoder seed, and of as many encoders that were never trained."""
    latents = [read_group(folder / "embeddings")[0] for folder in folders]
    untrained = [load_untrained(folder, seed=seed + i).embed(batch).omega_mean for i, folder in enumerate(folders)]
    return Encoded(
        z_omega=np.stack([found["omega_mean"] for found in latents]),
        z_alpha=np.stack([found["alpha_mean"] for found in latents]),
        random_encoder=np.stack(untrained),
    )
