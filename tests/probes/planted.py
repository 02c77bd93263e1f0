"""A small data set whose truth is known: labels constant in a seed, in a checkpoint of a seed, and in an episode."""

import numpy as np
import pandas as pd

from data_gen.trajectory import ActionSpec, Features, Labels, LabelSpec, RowIndex, TrajectoryBatch, all_real
from probes.features import FEATURES, Encoded
from probes.probe import Probe
from probes.table.table import probe_table

SEEDS, CHECKPOINTS, EPISODES = 40, 3, 4
T, N, DO, DA, ZW, ZA = 5, 2, 3, 1, 7, 6

QUICK = {
    "bootstrap": 200,
    "permutations": 1,
    "mlp_permutations": 1,
    "strengths": [0.1, 0.01],
    "mlp_strengths": [0.01],
    "folds": 2,
    "jobs": 1,
    "hidden": 16,
    "steps": 100,
}

GIVEN = [name for name in FEATURES if name != "flat_vae"]


def planted_rows(n_seeds: int = SEEDS) -> tuple[RowIndex, np.ndarray]:
    """Row index and split; half of the seeds train, a fifth validates, the rest is the test."""
    axes = np.meshgrid(*map(np.arange, (n_seeds, CHECKPOINTS, EPISODES)), indexing="ij")
    seed, checkpoint, _ = (axis.ravel().astype(np.int32) for axis in axes)
    n = len(seed)
    sizes = [n_seeds // 2, n_seeds // 5, n_seeds - n_seeds // 2 - n_seeds // 5]
    rows = RowIndex(episode=np.arange(n, dtype=np.int32), group=seed, checkpoint=checkpoint, t0=np.zeros(n, np.int32))
    return rows, np.repeat([0, 1, 2], sizes)[seed].astype(np.int32)


def planted_data(seed: int = 0, n_seeds: int = SEEDS) -> dict:
    """Arguments of `probe_table`; z_omega holds every label plainly, the random encoder holds nothing."""
    rng = np.random.default_rng(seed)
    rows, split = planted_rows(n_seeds)
    n = len(split)
    mood = rng.integers(0, 3, n)
    values = {
        "side": rng.permutation(np.arange(n_seeds) % 2)[rows.group].astype(np.int32),
        "progress": rows.checkpoint.copy(),
        "mood": mood.astype(np.int32),
        "speed": rng.normal(size=n).astype(np.float32),
        "hill": rng.integers(0, 2, (n, N)).astype(np.int32),
    }
    specs = [LabelSpec(name, name, "class") for name in ("side", "progress", "mood", "hill")]
    specs += [LabelSpec("speed", "speed", "real"), LabelSpec("speed_class", "speed", "quantile", bins=2)]
    truth = [values["side"], rows.checkpoint == 1, rows.checkpoint == 2, mood == 1, mood == 2, values["speed"]]
    z_omega = np.stack([*truth, rng.normal(size=n)], 1).astype(np.float32)
    batch = TrajectoryBatch(
        obs=rng.normal(size=(n, T, N, DO)).astype(np.float32),
        actions=rng.normal(size=(n, T, N, DA)).astype(np.float32),
        mask=np.ones((n, T, N), bool),
    )
    return {
        "batch": batch,
        "features": all_real(N, DO, ActionSpec("continuous", DA)),
        "rows": rows,
        "split": split,
        "labels": Labels(values=values, specs=tuple(specs)),
        "hand": Features(values=rng.normal(size=(n, 6)).astype(np.float32), names=tuple("abcdef")),
        "encoded": Encoded(
            z_omega=z_omega[None],
            z_alpha=rng.normal(size=(1, n, N, ZA)).astype(np.float32),
            random_encoder=rng.normal(size=(1, n, ZW)).astype(np.float32),
        ),
    }


def with_z_omega(data: dict, z_omega: np.ndarray) -> dict:
    """The same arguments with another joint latent, of one encoder [B, Zw]."""
    return data | {"encoded": data["encoded"]._replace(z_omega=z_omega[None])}


def table_of(data: dict, **settings) -> pd.DataFrame:
    """The probe table with quick settings."""
    return probe_table(Probe(**(QUICK | settings)), **data)


def row_of(table: pd.DataFrame, label: str, features: str = "z_omega", probe: str = "linear") -> pd.Series:
    """The one row of a label, feature set and probe."""
    found = table[(table["label"] == label) & (table["features"] == features) & (table["probe"] == probe)]
    assert len(found) == 1
    return found.iloc[0]
