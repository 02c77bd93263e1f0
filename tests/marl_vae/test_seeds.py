"""Several encoder seeds in one program: each ends as if it had been trained alone."""

import json
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, InputError
from marl_vae.checkpoint import TrainState
from marl_vae.embed import load
from marl_vae.metrics import read_metrics
from marl_vae.normalise import fit_normaliser
from marl_vae.program import make_program
from marl_vae.task import Train
from tests.builders import styled_batch
from tests.marl_vae import tiny_task

SHORT = {"steps": 45, "seed": 3}


def same(a, b) -> bool:
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in leaves)


@pytest.fixture(scope="module")
def together(tmp_path_factory) -> tuple[Path, list[TrainState]]:
    folder = tmp_path_factory.mktemp("together")
    return folder, tiny_task.run_seeds(folder, seeds=2, **SHORT)


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_each_seed_ends_as_if_trained_alone(together, tmp_path: Path, number: int) -> None:
    folder, states = together
    place = folder if number == 0 else folder / "seed_4"
    alone = tiny_task.run(tmp_path, **SHORT | {"seed": 3 + number})
    for found, want in zip(jax.tree.leaves(states[number].best), jax.tree.leaves(alone.best), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
    batch = styled_batch(2, 10)
    for found, want in zip(load(place).embed(batch), load(tmp_path).embed(batch), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)
    assert int(states[number].best_step) == int(alone.best_step)
    descriptions = [json.loads((run / "checkpoints" / "model.json").read_text()) for run in (place, tmp_path)]
    assert descriptions[0] == descriptions[1]
    rows = [read_metrics(run / "metrics.jsonl") for run in (place, tmp_path)]
    assert [list(row) for row in rows[0]] == [list(row) for row in rows[1]]
    for row, want in zip(*rows, strict=True):
        np.testing.assert_allclose([*row.values()], [*want.values()], rtol=1e-3, atol=1e-3)


def test_the_seeds_differ(together) -> None:
    first, second = (np.asarray(state.best["local_encoder"]["inputs"][...]) for state in together[1])
    assert np.abs(first - second).mean() > 0.1


def test_seeds_interrupted_at_different_checkpoints_end_where_whole_ones_do(together, tmp_path: Path) -> None:
    """Killed when the first had saved step 30 and the second had not: the newest step of both is 15."""

    def stop(row: dict) -> None:
        if row["step"] == 35:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_task.run_seeds(tmp_path, stop, seeds=2, **SHORT)
    shutil.rmtree(tmp_path / "seed_4" / "checkpoints" / "30")
    resumed_at: list[tuple[int, int]] = []
    again = tiny_task.run_seeds(tmp_path, lambda row: resumed_at.append((row["step"], row["seed"])), seeds=2, **SHORT)
    assert sorted(resumed_at) == [(step, seed) for step in range(20, 50, 5) for seed in (3, 4)]
    assert same(again, together[1])
    for name in ("metrics.jsonl", "seed_4/metrics.jsonl"):
        assert (tmp_path / name).read_bytes() == (together[0] / name).read_bytes()


def test_a_finished_seed_is_held_while_the_others_go_on() -> None:
    task, training = tiny_task.task(tiny_task.TINY, seeds=2, **SHORT), styled_batch(0, 60)
    scale = fit_normaliser(training, ActionSpec("continuous", 2), task.features)
    program = make_program(task, scale, 60)
    first, second = program.start()
    batch = jax.tree.map(jnp.asarray, training)
    (held, moved), _ = program.advance([first._replace(finished=jnp.asarray(True)), second], batch, batch)
    assert same(held, first._replace(finished=jnp.asarray(True)))
    assert int(moved.step) == 5
    assert not same(moved.params, second.params)


@pytest.mark.parametrize("bad", [{"seeds": 0}, {"seed": -1}, {"seed": 2**32 - 1, "seeds": 2}])
def test_seeds_that_do_not_exist_are_refused(bad: dict) -> None:
    with pytest.raises(InputError, match="seed"):
        Train(**tiny_task.SETTINGS | bad)
