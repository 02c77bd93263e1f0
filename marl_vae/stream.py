"""Mini-batches of the steps to come, read ahead of time where the episodes do not fit into memory. S seeds, B rows."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import grain
import jax
import numpy as np
from jaxtyping import Int, Int32, PRNGKeyArray

from data_gen.trajectory import AnyArray, Episodes, TrajectoryBatch, cleared, n_episodes, take
from marl_vae.batching import epoch_order
from marl_vae.keys import HELD_ORDER, ORDER, key_of
from marl_vae.task import Task

THREADS = 4
AHEAD = 2  # dispatches that are read before they are asked for


class Given(NamedTuple):
    """A mini-batch of each step with the numbers of its episodes within their split; beside it those of other seeds."""

    episodes: TrajectoryBatch
    rows: Int[AnyArray, "... B"]


class Delivered(NamedTuple):
    """What steps are given; validation episodes only where the objective tunes weights by them."""

    training: Given
    validation: Given | None


class Steps:
    """What each of so many steps is given, by its number: a source of random access, as Grain reads one."""

    def __init__(self, given: Callable[[int], Any], steps: int):
        self._given, self._steps = given, steps

    def __len__(self) -> int:
        return self._steps

    def __getitem__(self, index: int) -> Any:
        return self._given(index)


def drawn_from(batch: TrajectoryBatch | Episodes, size: int, keys: list[PRNGKeyArray]) -> Callable[[int], Given]:
    """The mini-batch of any step: the rows that `epoch_rows` names, [B], or [S, B] where there are several keys."""
    n_rows = n_episodes(batch)
    size = min(size, n_rows)
    shuffled = jax.jit(partial(epoch_order, n_rows=n_rows))

    @lru_cache(maxsize=4 * len(keys))
    def order(seed: int, epoch: int) -> Int32[np.ndarray, " n_rows"]:
        return np.asarray(shuffled(keys[seed], epoch))

    def given(step: int) -> Given:
        epoch, place = divmod(step, n_rows // size)
        rows = np.stack([order(seed, epoch)[place * size : (place + 1) * size] for seed in range(len(keys))])
        rows = rows if len(keys) > 1 else rows[0]
        found = cleared(take(batch, rows.reshape(-1)))
        return Given(TrajectoryBatch(*(field.reshape(*rows.shape, *field.shape[1:]) for field in found)), rows)

    return given


def delivered(
    task: Task, training: TrajectoryBatch | Episodes, validation: TrajectoryBatch | Episodes, start: int
) -> grain.DatasetIterator:
    """What each dispatch of a training is given from step `start` on, [K, B, …] or [K, S, B, …]; see `read_ahead`."""
    cfg = task.train
    seeds = [one.seed for one in cfg.alone()]
    of_training = drawn_from(training, cfg.batch, [key_of(seed, ORDER) for seed in seeds])
    held = drawn_from(validation, cfg.batch, [key_of(seed, HELD_ORDER) for seed in seeds])
    tuned = bool(task.objective.tuned(1))

    def given(step: int) -> Delivered:
        return Delivered(training=of_training(step), validation=held(step) if tuned else None)

    return read_ahead(Steps(given, cfg.steps), start, cfg.steps_per_dispatch)


def read_ahead(steps: Steps, start: int, chunk: int) -> grain.DatasetIterator:
    """What the steps from `start` on are given, stacked by `chunk`; `close` ends the threads that read ahead.

    The host holds no more than (AHEAD + 2) `chunk` steps: those that wait, those that are being stacked, and the stack.
    """
    options = grain.ReadOptions(num_threads=THREADS, prefetch_buffer_size=AHEAD * chunk)
    return iter(grain.MapDataset.source(steps)[start:].to_iter_dataset(options).batch(chunk))
