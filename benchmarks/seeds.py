"""Five encoder seeds in one program against one after another: seconds for 100 steps at the default's size.

python benchmarks/seeds.py
"""

import time

import jax
import numpy as np

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real, to_device
from marl_vae.model import Dims, Model
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives import BetaBound
from marl_vae.program import make_program
from marl_vae.schedule import Schedule
from marl_vae.task import Task, Train

B, T, N, DO = 512, 25, 3, 6
ACTION = ActionSpec("continuous", 2)
SEEDS, DISPATCHES, ROUNDS = 5, 2, 4


def seconds(batch: TrajectoryBatch, seeds: int) -> float:
    """The fastest of a few rounds, after the program was compiled."""
    features = all_real(N, DO, ACTION)
    task = Task(Model(), Dims(N, DO, ACTION), features, BetaBound(), Schedule(), Train(seeds=seeds), "random")
    program, data = make_program(task, fit_normaliser(batch, ACTION, features), B), to_device(batch)
    states, _ = program.advance(program.start(), data, data)
    taken = []
    for _ in range(ROUNDS):
        jax.block_until_ready(states)
        start = time.perf_counter()
        for _ in range(DISPATCHES):
            states, _ = program.advance(states, data, data)
        jax.block_until_ready(states)
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Print both and their ratio."""
    rng = np.random.default_rng(0)
    batch = TrajectoryBatch(
        obs=rng.normal(size=(B, T, N, DO)).astype(np.float32),
        actions=rng.normal(size=(B, T, N, 2)).astype(np.float32),
        mask=np.ones((B, T, N), bool),
    )
    alone, together = seconds(batch, 1), seconds(batch, SEEDS)
    print(f"one seed: {alone:.2f} s; {SEEDS} together: {together:.2f} s")
    print(f"one after another / together: {SEEDS * alone / together:.2f}")


if __name__ == "__main__":
    main()
