"""What a run's encoders, one a seed, make of its data set, as the probes take it."""

from pathlib import Path

import numpy as np

from data_gen.storage.store import read_group
from data_gen.trajectory import TrajectoryBatch
from marl_vae import load_untrained
from probes.features import Encoded


def folders_of(run: Path) -> list[Path]:
    """The folders of a run's encoder seeds: its own, and each seed_* in it."""
    return [run, *sorted(run.glob("seed_*"))]


def encoded_of(folders: list[Path], batch: TrajectoryBatch, seed: int) -> Encoded:
    """The embeddings in these folders, one an encoder seed, and of as many encoders that were never trained."""
    latents = [read_group(folder / "embeddings")[0] for folder in folders]
    untrained = [load_untrained(folder, seed=seed + i).embed(batch).omega_mean for i, folder in enumerate(folders)]
    return Encoded(
        z_omega=np.stack([found["omega_mean"] for found in latents]),
        z_alpha=np.stack([found["alpha_mean"] for found in latents]),
        random_encoder=np.stack(untrained),
    )
