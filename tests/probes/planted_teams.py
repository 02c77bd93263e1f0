"""Teams whose coupling and whose change points are known."""

import numpy as np

from data_gen.trajectory import RowIndex

LEARNED = 3  # conventions; the number after them is the cluster of those who have not learned yet


def grid_rows(n_groups: int, n_checkpoints: int, n_episodes: int) -> RowIndex:
    """Every group holds every checkpoint, with equally many episodes of each."""
    axes = np.meshgrid(*map(np.arange, (n_groups, n_checkpoints, n_episodes)), indexing="ij")
    group, checkpoint, _ = (axis.ravel().astype(np.int32) for axis in axes)
    n = len(group)
    return RowIndex(episode=np.arange(n, dtype=np.int32), group=group, checkpoint=checkpoint, t0=np.zeros(n, np.int32))


def teams(rows: RowIndex, coupled: bool, rng: np.random.Generator) -> np.ndarray:
    """Clusters [B, 3] of agents that learn a convention of their training seed, all at one pace.

    Where `coupled`, agents 0 and 1 have conventions that go together; agent 2 always has its own.
    """
    n_groups = len(np.unique(rows.group))
    conventions = rng.integers(0, LEARNED, (n_groups, 3))
    if coupled:
        conventions[:, 1] = (conventions[:, 0] + 1) % LEARNED
    learned = rng.random((len(rows.group), 3)) < (rows.checkpoint[:, None] + 0.5) / (rows.checkpoint.max() + 1)
    return np.where(learned, conventions[rows.group], LEARNED)


def switching(rows: RowIndex, at: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """Latents [B, 3] whose mean moves by `size` deviations when a seed reaches its checkpoint `at`."""
    z = rng.normal(size=(len(rows.group), 3)).astype(np.float32)
    z[:, 1] += size * (rows.checkpoint >= at[rows.group])
    return z
