"""Episodes from k known policies: each training seed settles on one of them after its first checkpoint."""

import numpy as np

from data_gen.trajectory import ActionSpec, Labels, LabelSpec, RowIndex, TrajectoryBatch, all_real
from probes.clusters.clusters import ClusterTables, cluster_tables
from probes.clusters.levels import Deviations
from probes.clusters.records import Clustering
from probes.features import Encoded

SEEDS, CHECKPOINTS, EPISODES = 20, 2, 10
T, N, DO, DA, ZW, ZA = 6, 2, 4, 1, 5, 3
DEVIATION = 0.1  # of the posterior
STYLE = 0.2  # how far a training seed's own manner lies from its policy
QUICK = {"most": 6, "patience": 2, "bootstrap": 3, "pairs": 400, "starts": 2, "smallest": 0.1, "jobs": 1}


def planted(k: int = 3, seed: int = 0, n_encoders: int = 1) -> dict:
    """Arguments of `cluster_tables`, and under "policy" the truth.

    Latents are linear in what the episode's trajectory does on average, so they are made from it as an encoder's are;
    two dimensions of z_omega and all of agent 1's z_alpha are dead. Policies are corners of a simplex in the plane of
    the two first observations and the two last; agent 0 has only two ways. Checkpoint 0 is policy 0, everywhere.
    """
    rng = np.random.default_rng(seed)
    axes = np.meshgrid(*map(np.arange, (SEEDS, CHECKPOINTS, EPISODES)), indexing="ij")
    group, checkpoint, _ = (axis.ravel().astype(np.int32) for axis in axes)
    n = len(group)
    rows = RowIndex(episode=np.arange(n, dtype=np.int32), group=group, checkpoint=checkpoint, t0=np.zeros(n, np.int32))
    policy = np.where(checkpoint == 0, 0, group % k)
    angle = 2 * np.pi * policy / k
    ways = 2 * np.stack([np.cos(angle), np.sin(angle)], 1)
    obs = rng.normal(size=(n, T, N, DO)) * 0.4
    obs[..., 0, :2] += np.where(policy == 0, 1.0, -1.0)[:, None, None]
    obs[..., 1, :2] += (ways + STYLE * rng.normal(size=(SEEDS, 2))[group])[:, None]
    mask = np.broadcast_to((np.arange(T) < rng.integers(3, T + 1, n)[:, None])[..., None], (n, T, N)).copy()
    mean = (obs * mask[..., None]).sum(1) / mask.sum(1)[..., None]
    return {
        "policy": policy,
        "encoded": encode(mean, n_encoders, rng),
        "deviations": Deviations(
            z_omega=np.broadcast_to([DEVIATION] * 3 + [1.0] * 2, (n_encoders, n, ZW)).copy(),
            z_alpha=np.broadcast_to([[DEVIATION] * ZA, [1.0] * ZA], (n_encoders, n, N, ZA)).copy(),
        ),
        "batch": TrajectoryBatch(
            obs=obs.astype(np.float32), actions=rng.normal(size=(n, T, N, DA)).astype(np.float32), mask=mask
        ),
        "features": all_real(N, DO, ActionSpec("continuous", DA)),
        "rows": rows,
        "split": np.repeat([0, 1, 2], [10, 4, 6])[group].astype(np.int32),
        "labels": Labels(
            values={"policy": policy.astype(np.int32), "way": obs[..., 0].mean(1).astype(np.float32)},
            specs=(LabelSpec("policy", "policy", "class"), LabelSpec("way_class", "way", "quantile", bins=2)),
        ),
    }


def encode(mean: np.ndarray, n_encoders: int, rng: np.random.Generator) -> Encoded:
    n = len(mean)
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(n_encoders)]
    heard = np.concatenate([mean[:, 1, :2], mean[:, :1, 0]], 1)
    dead = rng.normal(size=(n_encoders, n, 2)) * 0.02
    z_omega = np.concatenate([np.stack([heard @ turn for turn in turns]), dead], 2)
    z_alpha = rng.normal(size=(n_encoders, n, N, ZA)) * 0.02
    z_alpha[:, :, 0] += np.stack([mean[:, 0, :1] * turn[:1] for turn in turns])
    nothing = np.zeros((n_encoders, n, 1), np.float32)
    return Encoded(z_omega=z_omega.astype(np.float32), z_alpha=z_alpha.astype(np.float32), random_encoder=nothing)


def tables(data: dict, **settings) -> ClusterTables:
    """The tables with quick settings."""
    return cluster_tables(Clustering(**(QUICK | settings)), **{k: v for k, v in data.items() if k != "policy"})
