"""The training loop: many steps a dispatch, models compared at cycle ends, resumable bit for bit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Scalar

from data_gen.trajectory import TrajectoryBatch, check_batch, check_features, to_device
from marl_vae.batching import in_pieces
from marl_vae.bound import bound
from marl_vae.checkpoint import Checkpoints, Description, TrainState, write_description
from marl_vae.diagnostics.units import active_units
from marl_vae.metrics import MetricsLog, of_training, of_validation
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives.objective import check_form
from marl_vae.program import VALIDATION, Program, Trace, key_of, make_program
from marl_vae.schedule import beta, ends_cycle
from marl_vae.task import Task, Train


class TrainingDiverged(RuntimeError):
    """A term of the bound stopped being finite; the last good checkpoint stays."""


def fit(
    training: TrajectoryBatch,
    validation: TrajectoryBatch,
    task: Task,
    run: Path,
    report: Callable[[dict[str, Any]], None],
) -> TrainState:
    """Train into `run/checkpoints` and `run/metrics.jsonl`, going on from the newest checkpoint there.

    Raises InputError for unusable data or a folder of another task, TrainingDiverged for a non-finite term.
    """
    cfg, dims = task.train, task.dims
    check_form(task.objective, task.model)
    for name, batch in (("training episodes", training), ("validation episodes", validation)):
        check_batch(batch, dims.action, name)
        check_features(batch, task.features, dims.action, name)
    settings = {
        "train": vars(cfg),
        "objective": {"name": type(task.objective).__name__, **vars(task.objective)},
        "joint": vars(task.schedule.joint),
        "local": vars(task.schedule.local),
    }
    write_description(run / "checkpoints", Description(task.model, dims, settings, task.data))
    scale = fit_normaliser(training, dims.action, task.features)
    program = make_program(task, scale, len(training.mask))
    checkpoints, state = Checkpoints(run / "checkpoints"), program.start()
    if checkpoints.latest() is not None:
        state = checkpoints.restore(state)
    log, data = MetricsLog(run / "metrics.jsonl", int(state.step)), (to_device(training), to_device(validation))
    judge = _judge(program, validation, task)
    waiting: list[tuple[int, Trace]] = []
    try:
        for step in range(int(state.step), cfg.steps, cfg.steps_per_dispatch):
            if bool(state.finished):
                break
            after = step + cfg.steps_per_dispatch
            state, trace = program.advance(state, *data)
            _tell(waiting, task, log, report)
            waiting.append((after, trace))
            ends = ends_cycle(task.schedule.joint, step, after, cfg.steps)
            if ends or after % cfg.eval_every == 0:
                state, extra = judge(state, after, ends)
                _tell(waiting, task, log, report, extra)
                checkpoints.save(state, scale)
    except TrainingDiverged as error:
        kept = checkpoints.latest()
        what = "No checkpoint was written yet." if kept is None else f"The checkpoint of step {kept} is kept."
        raise TrainingDiverged(f"{error} {what}") from None
    finally:
        log.close()
    return state


def _tell(waiting, task, log, report, extra=None) -> None:
    """Read the metrics of dispatches that are done, check them, and pass them on."""
    while waiting:
        step, trace = waiting.pop(0)
        row = _row(step, jax.tree.map(np.asarray, trace), task) | (extra or {})
        log.append(row)
        report(row)


def _row(step: int, trace: Trace, task: Task) -> dict[str, Any]:
    first = step - len(trace.loss)
    rates = "objective.inner_rate, objective.outer_rate, " if trace.watched else ""
    for name, values in {**trace.watched, **trace.terms._asdict(), "loss": trace.loss}.items():
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise TrainingDiverged(
                f"{name} became {values[wrong[0]]} at step {first + int(wrong[0])}. Lower "
                f"{rates}train.learning_rate or train.clip under another name=, or look for extreme values in the data."
            )
    levels = {"omega": task.schedule.joint, "alpha": task.schedule.local}
    levels = {name: levels[name] for name in task.model.random_levels}
    weights = {f"beta_{name}": float(beta(level, step - 1, task.train.steps)) for name, level in levels.items()}
    return {
        "step": step,
        **weights,
        "loss": float(trace.loss.mean()),
        **of_training(trace.terms, task.model),
        **{name: float(values[-1]) for name, values in trace.watched.items()},
    }


def _judge(
    program: Program, validation: TrajectoryBatch, task: Task
) -> Callable[[TrainState, int, bool], tuple[TrainState, dict[str, Any]]]:
    """The validation bound at β = 1 (of an autoencoder, the data term), and what follows from it at a cycle's end.

    Its noise is fixed for the whole run.
    """
    noise = program.noise(key_of(task.train.seed, VALIDATION), len(validation.mask))
    noise = jax.tree.map(np.asarray, noise)

    def judge(state: TrainState, step: int, ends: bool) -> tuple[TrainState, dict[str, Any]]:
        terms = in_pieces(lambda batch, noise: program.terms(state.params, batch, noise), validation, noise)
        latents = in_pieces(lambda batch: program.embed(state.params, batch), validation)
        value = float(bound(terms, 1.0, 1.0).mean())
        units = active_units(latents, validation.mask)
        extra = of_validation(value, terms, units, task.model)
        state = compare(state, step, jnp.float32(value), task.train) if ends else state
        return state, extra | ({"cycle_end": True, "best_step": int(state.best_step)} if ends else {})

    return judge


def compare(state: TrainState, step: int, value: Scalar, cfg: Train) -> TrainState:
    """The state after a cycle that ended with this validation bound: the best model so far, and whether to stop."""
    if value > state.best_bound:
        state = state._replace(
            best=state.params, best_bound=value, best_step=jnp.int32(step), stale_cycles=jnp.int32(0)
        )
    else:
        state = state._replace(stale_cycles=state.stale_cycles + 1)
    done = step >= cfg.steps or int(state.stale_cycles) >= cfg.patience
    return state._replace(finished=jnp.asarray(done))
