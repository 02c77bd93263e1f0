"""Clusters, coupling, change points and the explorer's page: seconds and memory of `launch.explore` on planted runs.

python benchmarks/analysis.py    the size of the default run, and 50,000 episodes of 50 steps (several minutes)
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml

from data_gen.storage.dataset import digest, write_shard
from data_gen.storage.shard import Shard
from data_gen.storage.store import write_group
from data_gen.trajectory import ActionSpec, Features, Labels, LabelSpec, Outcomes, RowIndex, TrajectoryBatch

N, DO, DA, ZW, ZA, GOALS, SHARDS = 3, 10, 2, 8, 4, 4, 8


class Size(NamedTuple):
    """Training seeds, checkpoints, episodes of each, and steps; the most seconds and GiB that are allowed."""

    seeds: int
    checkpoints: int
    episodes: int
    steps: int
    seconds: int
    memory: int


SIZES = {
    "the default run": Size(48, 6, 16, 25, seconds=90, memory=4),
    "50,000 episodes of 50 steps": Size(50, 10, 100, 50, seconds=600, memory=8),
}


def shard_of(size: Size, seeds: np.ndarray, rng: np.random.Generator) -> tuple[Shard, np.ndarray]:
    """Episodes of these seeds, each of which comes to keep to a goal of its own, and their goals."""
    seed, checkpoint, number = (
        axis.ravel().astype(np.int32)
        for axis in np.meshgrid(seeds, range(size.checkpoints), range(size.episodes), indexing="ij")
    )
    n = len(seed)
    settled = rng.random(n) < checkpoint / (size.checkpoints - 1)
    goal = np.where(settled, seed % GOALS, rng.integers(0, GOALS, n)).astype(np.int32)
    drift = np.eye(GOALS)[goal] @ np.random.default_rng(0).normal(size=(GOALS, DO))
    moves = rng.normal(size=(n, size.steps, N, DO)) + drift[:, None, None]
    return Shard(
        batch=TrajectoryBatch(
            obs=np.cumsum(0.1 * moves, axis=1).astype(np.float32),
            actions=moves[..., :DA].astype(np.float32),
            mask=np.ones((n, size.steps, N), bool),
        ),
        rows=RowIndex(
            episode=((seed * size.checkpoints + checkpoint) * size.episodes + number).astype(np.int32),
            group=seed,
            checkpoint=checkpoint,
            t0=np.zeros(n, np.int32),
        ),
        outcomes=Outcomes(
            rewards=np.repeat(settled.astype(np.float32)[:, None, None] / size.steps, size.steps, 1)
            * np.ones((1, 1, N), np.float32),
            terminated=np.zeros((n, size.steps), bool),
            truncated=np.zeros((n, size.steps), bool),
        ),
        labels=Labels({"goal": goal}, (LabelSpec("goal", "goal", "class", classes=tuple("abcd")),)),
        hand=Features(np.zeros((n, 0), np.float32), ()),
        policies={},
        curve=np.zeros((len(seeds), 1), np.float32),
        action=ActionSpec("continuous", DA),
        meta={"recording": {"split": [3, 1, 2], "seed": 0}, "position": [0, 1]},
    ), goal


def make_run(size: Size, run: Path) -> None:
    """A run's folder with data and embeddings, as training leaves it."""
    rng, goals = np.random.default_rng(1), []
    for index, seeds in enumerate(np.array_split(np.arange(size.seeds), SHARDS)):
        shard, goal = shard_of(size, seeds, rng)
        write_shard(run / "data", index, SHARDS, shard, {})
        goals.append(goal)
    goal = np.concatenate(goals)
    centres = 3 * rng.normal(size=(GOALS, ZW))
    omega = (centres[goal] + rng.normal(size=(len(goal), ZW))).astype(np.float32)
    alpha = (omega[:, None, :ZA] + rng.normal(size=(len(goal), N, ZA))).astype(np.float32)
    arrays = {
        "omega_mean": (("episode", "joint_latent"), omega),
        "omega_std": (("episode", "joint_latent"), np.full_like(omega, 0.5)),
        "alpha_mean": (("episode", "agent", "local_latent"), alpha),
        "alpha_std": (("episode", "agent", "local_latent"), np.full_like(alpha, 0.5)),
    }
    write_group(run / "embeddings", arrays, {"chosen": {"data": digest(run / "data")}})
    config = {"data": None, "train": {"seed": 0, "seeds": 1, "hold_out": []}}
    (run / "config.yaml").write_text(yaml.safe_dump(config))


def main() -> int:
    """Both sizes; 1 where one takes too long or too much. The larger one is last, since the peak is of all so far."""
    missed = 0
    for name, size in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            make_run(size, run)
            start = time.perf_counter()
            command = [sys.executable, "-m", "launch.explore", f"run={run}", "films=0"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            seconds = time.perf_counter() - start
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
            page = (run / "explorer.html").stat().st_size / 1e6
        reached = seconds <= size.seconds and peak <= size.memory
        missed += not reached
        print(
            f"{'reached' if reached else 'MISSED '}  {name}: {seconds:.0f} s (at most {size.seconds}), largest process "
            f"{peak:.2f} GiB (at most {size.memory}), page {page:.1f} MB",
            flush=True,
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
