"""One seed of a training: its log, and which of its models is the best so far."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Scalar

from data_gen.trajectory import Episodes, TrajectoryBatch, n_episodes
from marl_vae.batching import in_pieces, presence
from marl_vae.bound import bound
from marl_vae.checkpoint import TrainState
from marl_vae.diagnostics.units import active_units
from marl_vae.keys import VALIDATION, key_of
from marl_vae.metrics import MetricsLog, of_training, of_validation
from marl_vae.program import Program, Trace
from marl_vae.schedule import beta
from marl_vae.task import Task, Train


class TrainingDiverged(RuntimeError):
    """A term of the bound stopped being finite; the last good checkpoint stays."""


class Member:
    """Logs into `place`, and compares models by the validation bound at β = 1 (of an autoencoder, the data term).

    Its noise is fixed for the whole run.

    Metrics are read one dispatch late, so that the device never waits for them; `report` also gets the seed.
    """

    def __init__(
        self,
        place: Path,
        task: Task,
        state: TrainState,
        program: Program,
        validation: TrajectoryBatch | Episodes,
        report: Callable[[dict[str, Any]], None],
    ):
        self._task, self._program, self._validation, self._report = task, program, validation, report
        noise = program.noise(key_of(task.train.seed, VALIDATION), n_episodes(validation))
        self._noise, self._present = jax.tree.map(np.asarray, noise), presence(validation)
        self._log = MetricsLog(place / "metrics.jsonl", int(state.step))
        self._waiting: list[tuple[int, Trace]] = []

    def tell(self, step: int, trace: Trace) -> None:
        """Take what a dispatch left; log the one before. Raises TrainingDiverged for a number that is not finite."""
        self._flush({})
        self._waiting.append((step, trace))

    def judge(self, state: TrainState, step: int, ends: bool) -> TrainState:
        """Log the bound and the active units; at a cycle's end, the state that `compare` gives."""
        terms = in_pieces(
            lambda batch, noise: self._program.terms(state.params, batch, noise), self._validation, self._noise
        )
        latents = in_pieces(lambda batch: self._program.embed(state.params, batch), self._validation)
        value, units = float(bound(terms, 1.0, 1.0).mean()), active_units(latents, self._present)
        extra = of_validation(value, terms, units, self._task.model)
        if ends:
            state = compare(state, step, jnp.float32(value), self._task.train)
            extra |= {"cycle_end": True, "best_step": int(state.best_step)}
        self._flush(extra)
        return state

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def _flush(self, extra: dict[str, Any]) -> None:
        while self._waiting:
            step, trace = self._waiting.pop(0)
            row = _row(step, jax.tree.map(np.asarray, trace), self._task) | extra
            self._log.append(row)
            self._report(row | {"seed": self._task.train.seed})


def _row(step: int, trace: Trace, task: Task) -> dict[str, Any]:
    first = step - len(trace.loss)
    rates = "objective.inner_rate, objective.outer_rate, " if trace.watched else ""
    for name, values in {**trace.watched, **trace.terms._asdict(), "loss": trace.loss}.items():
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise TrainingDiverged(
                f"{name} became {values[wrong[0]]} at step {first + int(wrong[0])} of seed {task.train.seed}. Lower "
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
