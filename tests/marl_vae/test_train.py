import json
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.trajectory import InputError
from marl_vae import program
from marl_vae.batching import epoch_rows, in_pieces
from marl_vae.checkpoint import TrainState
from marl_vae.embed import load, load_untrained
from marl_vae.member import TrainingDiverged, compare
from marl_vae.metrics import MetricsLog, read_metrics
from marl_vae.schedule import beta
from marl_vae.task import Train
from tests.builders import styled_batch
from tests.marl_vae import tiny_task


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, TrainState]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, tiny_task.run(folder)


def same(a, b) -> bool:
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    return all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in leaves)


@pytest.mark.parametrize(("moment", "step"), [("row", 30), pytest.param("saved", 45, marks=pytest.mark.slow)])
def test_a_killed_run_ends_where_a_whole_one_does(whole, tmp_path: Path, moment: str, step: int) -> None:
    command = [sys.executable, "-m", "tests.marl_vae.tiny_task", str(tmp_path), moment, str(step)]
    killed = subprocess.run(command, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    with (tmp_path / "metrics.jsonl").open("a") as log:
        log.write('{"step": 9999}\n{"step": 3, "rec')  # beyond the checkpoint, and a line half written
    resumed_at = []
    state = tiny_task.run(tmp_path, lambda row: resumed_at.append(row["step"]))
    assert resumed_at[0] == (20 if moment == "row" else 50)
    assert same(state, whole[1])
    assert (tmp_path / "metrics.jsonl").read_bytes() == (whole[0] / "metrics.jsonl").read_bytes()
    batch = styled_batch(2, 10)
    assert same(load(tmp_path).embed(batch), load(whole[0]).embed(batch))


def test_a_finished_run_does_nothing_more(whole) -> None:
    rows = []
    assert same(tiny_task.run(whole[0], rows.append), whole[1])
    assert rows == []


def test_the_chosen_model_has_the_best_bound_of_all_cycle_ends(whole) -> None:
    ends = [row for row in read_metrics(whole[0] / "metrics.jsonl") if row.get("cycle_end")]
    assert [row["step"] for row in ends] == [30, 60, 90]
    best = max(ends, key=lambda row: row["val_bound"])
    assert int(whole[1].best_step) == best["step"] == ends[-1]["best_step"]
    assert float(whole[1].best_bound) == np.float32(best["val_bound"])


def test_training_lifts_the_bound_and_beta_is_as_scheduled(whole) -> None:
    rows = read_metrics(whole[0] / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(5, 91, 5))
    assert rows[-1]["val_bound"] > rows[2]["val_bound"] + 0.5
    for row in rows:
        assert row["beta_omega"] == float(beta(tiny_task.LEVEL, row["step"] - 1, 90))
        np.testing.assert_allclose(row["train_bound"], row["recon"] - row["kl_omega"] - row["kl_alpha"], rtol=1e-5)


def test_patience_counts_cycles_without_gain(whole) -> None:
    """With patience 2 and these bounds at the ends of cycles of 10 steps, the run ends at step 60, not before."""
    cfg = Train(steps=100, steps_per_dispatch=10, eval_every=10, patience=2)
    state = whole[1]._replace(best_bound=jnp.float32(-jnp.inf), stale_cycles=jnp.int32(0), finished=jnp.asarray(False))
    found = []
    for number, value in enumerate([-9.0, -7.0, -8.0, -6.0, -6.0, -7.0]):
        state = compare(state, 10 * number + 10, jnp.float32(value), cfg)
        found.append((float(state.best_bound), int(state.best_step), int(state.stale_cycles), bool(state.finished)))
    assert found == [(-9, 10, 0, False), (-7, 20, 0, False), (-7, 20, 1, False)] + [
        (-6, 40, 0, False),
        (-6, 40, 1, False),
        (-6, 40, 2, True),
    ]


def test_another_task_is_refused_in_the_same_folder(whole) -> None:
    with pytest.raises(InputError, match="another training"):
        tiny_task.run(whole[0], learning_rate=0.5)


def test_a_term_that_is_not_finite_stops_with_its_name_and_step(tmp_path: Path, monkeypatch) -> None:
    real = program.summed
    broken = lambda terms: real(terms)._replace(kl_joint=jnp.nan * terms.kl_joint.sum())  # noqa: E731
    monkeypatch.setattr(program, "summed", broken)
    with pytest.raises(TrainingDiverged, match="kl_joint became nan at step 0"):
        tiny_task.run(tmp_path)
    assert not list((tmp_path / "checkpoints").glob("[0-9]*"))


@pytest.mark.parametrize("bad", [{"steps": 92}, {"eval_every": 7}, {"batch": 0}, {"learning_rate": 0.0}])
def test_settings_that_cannot_work_are_refused(bad: dict) -> None:
    with pytest.raises(InputError):
        Train(**tiny_task.SETTINGS | bad)


def test_an_epoch_visits_every_row_once_and_the_next_in_another_order() -> None:
    key = jax.random.key(0)
    epochs = [[np.asarray(epoch_rows(key, jnp.int32(3 * e + s), 12, 4)) for s in range(3)] for e in range(2)]
    first, second = (np.concatenate(epoch) for epoch in epochs)
    np.testing.assert_array_equal(np.sort(first), np.arange(12))
    np.testing.assert_array_equal(np.sort(second), np.arange(12))
    assert (first != second).any()


def test_pieces_give_every_row_once(monkeypatch) -> None:
    monkeypatch.setattr("marl_vae.batching.PIECE", 8)
    batch = styled_batch(0, 21)
    extra = np.arange(21.0)
    found = in_pieces(lambda b, x: (b.obs.sum((1, 2, 3)), jnp.asarray(x)), batch, extra)
    want = np.where(batch.mask[..., None], batch.obs, 0).sum((1, 2, 3))
    np.testing.assert_allclose(found[0], want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[1], extra)


def test_untrained_encoder_is_another_one_with_the_same_scales(whole) -> None:
    trained, fresh = load(whole[0]), load_untrained(whole[0], seed=1)
    assert same(trained.scale, fresh.scale)
    batch = styled_batch(2, 10)
    assert not np.allclose(trained.embed(batch).omega_mean, fresh.embed(batch).omega_mean, atol=1e-2)
    assert same(fresh.embed(batch), load_untrained(whole[0], seed=1).embed(batch))


def test_metrics_are_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": s}) + "\n" for s in (5, 10, 15)) + '{"st')
    log = MetricsLog(path, 10)
    log.append({"step": 12})
    log.close()
    assert [row["step"] for row in read_metrics(path)] == [5, 10, 12]
