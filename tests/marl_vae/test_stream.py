"""Training on episodes that are read ahead of time is training on the same episodes in memory, bit for bit."""

import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.trajectory import Episodes, InputError, TrajectoryBatch, take
from marl_vae.batching import epoch_rows
from marl_vae.checkpoint import TrainState
from marl_vae.keys import HELD_ORDER, ORDER, key_of
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives import TwoLevel
from marl_vae.objectives.objective import Objective
from marl_vae.stream import delivered
from marl_vae.train import fit
from tests.builders import UNEVEN, styled_batch, uneven_batch
from tests.marl_vae import peak_memory, tiny_task

TRAINING, VALIDATION = styled_batch(0, 60), styled_batch(1, 20)
SHORT = {"steps": 40, "eval_every": 20}  # a checkpoint in the middle of an epoch of 3 steps


class Unread(Episodes):
    """Episodes that give no more than they are asked for, and remember the most of it."""

    def __init__(self, batch: TrajectoryBatch):
        self._batch, self.most = batch, 0

    def __len__(self) -> int:
        return len(self._batch.mask)

    def take(self, rows: np.ndarray) -> TrajectoryBatch:
        self.most = max(self.most, len(rows))
        return take(self._batch, rows)

    def part(self, rows: np.ndarray) -> "Unread":
        return Unread(take(self._batch, rows))


class Interrupted(Exception):
    pass


def interrupt(row: dict) -> None:
    if row["step"] == 30:
        raise Interrupted


def same(a, b) -> bool:
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in leaves)


def streamed(folder: Path, objective: Objective, report=lambda row: None, **changes) -> list[TrainState]:
    task = tiny_task.task(objective, **SHORT | changes)
    return fit(Unread(TRAINING), Unread(VALIDATION), task, folder, report)


@pytest.mark.parametrize(
    ("objective", "changes"),
    [
        (tiny_task.TINY, {}),
        pytest.param(TwoLevel(tune="episodes"), {"seeds": 2}, marks=pytest.mark.slow),
    ],
)
def test_streamed_interrupted_and_resumed_is_in_memory_bit_for_bit(tmp_path: Path, objective, changes) -> None:
    want = tiny_task.run_seeds(tmp_path / "memory", objective=objective, **SHORT | changes)
    with pytest.raises(Interrupted):
        streamed(tmp_path / "disk", objective, interrupt, **changes)
    first = []
    found = streamed(tmp_path / "disk", objective, lambda row: first.append(row["step"]), **changes)
    assert first[0] == 25
    assert same(found, want)
    logs = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("memory", "disk")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize("seeds", [1, 2])
def test_what_is_delivered_is_what_a_scan_would_draw(seeds: int) -> None:
    task = tiny_task.task(TwoLevel(), seeds=seeds, seed=5, **SHORT)
    with closing(delivered(task, Unread(TRAINING), Unread(VALIDATION), 20)) as found:
        chunks = list(found)
    assert len(chunks) == 4
    for part, whole, order in (("training", TRAINING, ORDER), ("validation", VALIDATION, HELD_ORDER)):
        rows = np.concatenate([getattr(chunk, part).rows for chunk in chunks])
        obs = np.concatenate([getattr(chunk, part).episodes.obs for chunk in chunks])
        assert rows.shape == ((20, 16) if seeds == 1 else (20, 2, 16))
        for seed in range(seeds):
            key = key_of(5 + seed, order)
            want = [epoch_rows(key, jnp.int32(step), len(whole.mask), 16) for step in range(20, 40)]
            np.testing.assert_array_equal(rows.reshape(20, seeds, 16)[:, seed], want)
            np.testing.assert_array_equal(
                obs.reshape(20, seeds, *obs.shape[-4:])[:, seed],
                np.where(whole.mask[np.array(want)][..., None], whole.obs[np.array(want)], 0),
            )


def test_no_validation_episode_is_read_where_nothing_is_tuned() -> None:
    held = Unread(VALIDATION)
    with closing(delivered(tiny_task.task(tiny_task.TINY, **SHORT), Unread(TRAINING), held, 0)) as found:
        assert next(found).validation is None
    assert held.most == 0


def test_the_threads_that_read_ahead_end_and_their_errors_arrive() -> None:
    class Cut(Unread):
        def take(self, rows: np.ndarray) -> TrajectoryBatch:
            raise InputError("the copy was cut")

    task = tiny_task.task(tiny_task.TINY, **SHORT)
    before = set(threading.enumerate())
    with pytest.raises(InputError, match="the copy was cut"):
        with closing(delivered(task, Cut(TRAINING), Unread(VALIDATION), 0)) as found:
            next(found)
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_scales_of_pieces_are_those_of_the_whole(monkeypatch) -> None:
    batch, features = uneven_batch(seed=3, n_episodes=50)
    batch = batch._replace(obs=batch.obs + np.float32(1e3))  # where a sum of squares would lose the spread
    episodes = Unread(batch)
    monkeypatch.setattr("marl_vae.batching.PIECE", 7)
    found = fit_normaliser(episodes, UNEVEN, features)
    assert episodes.most == 7
    for mean, std, values, real in (
        (found.obs_mean, found.obs_std, batch.obs, features.obs),
        (found.action_mean, found.action_std, batch.actions, features.actions),
    ):
        for column in range(real.shape[1]):
            seen = values[..., column][batch.mask & real[:, column]].astype(np.float64)
            np.testing.assert_allclose(mean[column], seen.mean(), rtol=1e-7)
            np.testing.assert_allclose(std[column], seen.std(), rtol=1e-7)


@pytest.mark.slow
def test_a_data_set_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    size = peak_memory.write(tmp_path)
    assert size > 300

    def risen(how: str) -> int:
        command = [sys.executable, "-m", "tests.marl_vae.peak_memory", how, str(tmp_path)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    assert risen("stream") < 200 < size < risen("read")  # without a copy, which is made here
    assert risen("stream") < 200
