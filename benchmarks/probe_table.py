"""Time and memory of the whole probe table at the default hill-climbing scale, on planted data.

python benchmarks/probe_table.py               every core against one core
python benchmarks/probe_table.py --no-ratio    every core only
"""

import resource
import sys
import time

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

from data_gen.trajectory import ActionSpec, Features, Labels, LabelSpec, RowIndex, TrajectoryBatch, all_real
from probes.features import Encoded
from probes.probe import Probe
from probes.table.table import probe_table

SEEDS, CHECKPOINTS, EPISODES = 48, 6, 16
T, N, DO, DA, ZW, ZA = 25, 3, 10, 2, 8, 8


def view(rng: np.random.Generator, truth: np.ndarray, width: int, noise: float) -> np.ndarray:
    """A random linear view of the truth, with noise."""
    signal = truth @ rng.normal(size=(truth.shape[1], width))
    return (signal + noise * rng.normal(size=signal.shape)).astype(np.float32)


def planted(rng: np.random.Generator) -> dict:
    """4608 episodes of the default shape: skill rises over checkpoints, roles belong to a seed, noise on top."""
    axes = np.meshgrid(*map(np.arange, (SEEDS, CHECKPOINTS, EPISODES)), indexing="ij")
    seed, checkpoint, _ = (axis.ravel() for axis in axes)
    n = len(seed)
    role = rng.integers(0, 5, (SEEDS, N))[seed]
    skill = checkpoint / 5 + 0.3 * rng.normal(size=SEEDS)[seed] + 0.3 * rng.normal(size=n)
    spread = rng.normal(size=SEEDS)[seed] + rng.normal(size=n)
    truth = np.concatenate([skill[:, None], spread[:, None], np.eye(5)[role].reshape(n, -1)], 1)
    shift = view(rng, truth / 3, N * DO, 0).reshape(n, 1, N, DO)
    batch = TrajectoryBatch(
        obs=(np.cumsum(rng.normal(size=(n, T, N, DO)), 1) / 5 + shift).astype(np.float32),
        actions=rng.normal(size=(n, T, N, DA)).astype(np.float32),
        mask=np.ones((n, T, N), bool),
    )
    values = {
        "team_return": (skill + 0.1 * rng.normal(size=n)).astype(np.float32),
        "dispersion": spread.astype(np.float32),
        "n_hills": np.array([len(set(row)) for row in role.tolist()], np.int32),
        "hill_set": np.array([sum(2**hill for hill in set(row)) for row in role.tolist()], np.int32),
        "progress": checkpoint.astype(np.int32),
        "hill": role.astype(np.int32),
    }
    specs = (
        LabelSpec("return_class", "team_return", "quantile", bins=3),
        LabelSpec("dispersion_class", "dispersion", "quantile", bins=3),
        *(LabelSpec(name, name, "class") for name in ("n_hills", "hill_set", "progress", "hill")),
    )
    columns = (np.arange(n), seed, checkpoint, np.zeros(n))
    return {
        "batch": batch,
        "features": all_real(N, DO, ActionSpec("continuous", DA)),
        "rows": RowIndex(*(column.astype(np.int32) for column in columns)),
        "split": np.repeat([0, 1, 2], [24, 8, 16])[seed].astype(np.int32),
        "labels": Labels(values=values, specs=specs),
        "hand": Features(values=view(rng, truth, 8, 1.0), names=tuple(f"f{i}" for i in range(8))),
        "encoded": Encoded(
            z_omega=view(rng, truth, ZW, 0.5)[None],
            z_alpha=view(rng, truth, N * ZA, 1.0).reshape(1, n, N, ZA),
            random_encoder=view(rng, truth, ZW, 3.0)[None],
        ),
    }


def timed(jobs: int, data: dict) -> tuple[float, pd.DataFrame]:
    """Seconds that the table took, and the table."""
    start = time.perf_counter()
    table = probe_table(Probe(jobs=jobs), **data)
    return time.perf_counter() - start, table


def main() -> None:
    """Print the figures."""
    data = planted(np.random.default_rng(0))
    seconds, table = timed(0, data)
    print(f"probe table, {len(table)} rows: {seconds:.1f} s on every core")
    get_reusable_executor().shutdown(wait=True)
    main_gib, worker_gib = (
        resource.getrusage(who).ru_maxrss / 2**20 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"peak memory: {main_gib:.2f} GiB in the main process, {worker_gib:.2f} GiB in the largest worker")
    if "--no-ratio" not in sys.argv:
        alone, same = timed(1, data)
        print(f"one job: {alone:.1f} s, so every core is {alone / seconds:.2f}x as fast")
        print(f"the two tables are equal: {table.equals(same)}")


if __name__ == "__main__":
    main()
