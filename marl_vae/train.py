"""The training loop: many steps a dispatch, models compared at cycle ends, resumable bit for bit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import PRNGKeyArray, PyTree, Scalar

from data_gen.trajectory import FeatureMask, InputError, TrajectoryBatch, check_batch, check_features, to_device
from marl_vae.batching import epoch_rows, in_pieces, rows_on_device
from marl_vae.checkpoint import Checkpoints, Description, TrainState, write_description
from marl_vae.diagnostics import active_units
from marl_vae.embed import embeddings
from marl_vae.metrics import MetricsLog
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import Normaliser, fit_normaliser
from marl_vae.objective import Noise, Terms, bound, bound_terms, make_noise
from marl_vae.schedule import Schedule, beta, ends_cycle

ORDER, NOISE, VALIDATION = range(3)


@dataclass
class Train:
    """How long and how fast to train. `patience` counts cycles without a better validation bound."""

    steps: int = 2400
    batch: int = 64
    learning_rate: float = 1e-3
    clip: float = 1.0
    patience: int = 2
    steps_per_dispatch: int = 50
    eval_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.steps_per_dispatch, self.eval_every, self.patience) < 1:
            raise InputError(
                f"train: steps={self.steps}, batch={self.batch}, patience={self.patience}, steps_per_dispatch="
                f"{self.steps_per_dispatch} and eval_every={self.eval_every} must all be at least 1."
            )
        if not (0 < self.learning_rate < math.inf and 0 < self.clip < math.inf):
            raise InputError(
                f"train: learning_rate and clip must be finite and above 0; got {self.learning_rate} and {self.clip}."
            )
        chunk = self.steps_per_dispatch
        for name in ("steps", "eval_every"):
            value = getattr(self, name)
            if value % chunk:
                near = max(chunk, round(value / chunk) * chunk)
                raise InputError(
                    f"train.{name}={value} is no multiple of train.steps_per_dispatch={chunk}; {near} would be. "
                    "(A last, shorter dispatch would compile again and break the equality of resumed runs.)"
                )


class TrainingDiverged(RuntimeError):
    """A term of the bound stopped being finite; the last good checkpoint stays."""


class Program(NamedTuple):
    """The compiled parts of a training run; params and states are pytrees of arrays."""

    start: Callable[[], TrainState]
    advance: Callable[[TrainState, TrajectoryBatch], tuple[TrainState, Terms]]
    noise: Callable[[PRNGKeyArray, int], Noise]
    terms: Callable[[PyTree, TrajectoryBatch, Any], Terms]
    embed: Callable[[PyTree, TrajectoryBatch], Any]


def make_program(model: Model, dims: Dims, scale: Normaliser, schedule: Schedule, cfg: Train) -> Program:
    """Bind the static settings; each function compiles once."""
    optimiser = optax.chain(optax.clip_by_global_norm(cfg.clip), optax.adam(cfg.learning_rate))
    graph, params = nnx.split(HierarchicalVAE(model, dims, rngs=nnx.Rngs(params=jax.random.key(cfg.seed))))
    root = jax.random.fold_in(jax.random.key(cfg.seed), 1)
    order, noise = jax.random.fold_in(root, ORDER), jax.random.fold_in(root, NOISE)

    def loss(params, batch, key, step):
        net = nnx.merge(graph, params)
        terms = bound_terms(net, scale, batch, make_noise(key, net, len(batch.mask)))
        weights = (beta(level, step, cfg.steps) for level in (schedule.joint, schedule.local))
        # Nats an action, so that the gradient's size does not hang on the episodes' length.
        return -bound(terms, *weights).sum() / batch.mask.sum(), _summed(terms)

    def one_step(data, state, _):
        rows = epoch_rows(order, state.step, len(data.mask), min(cfg.batch, len(data.mask)))
        batch, key = rows_on_device(data, rows), jax.random.fold_in(noise, state.step)
        grads, terms = jax.grad(loss, has_aux=True)(state.params, batch, key, state.step)
        updates, opt_state = optimiser.update(grads, state.opt_state, state.params)
        params = optax.apply_updates(state.params, updates)
        return state._replace(params=params, opt_state=opt_state, step=state.step + 1), terms

    def advance(state, data):
        return jax.lax.scan(lambda s, x: one_step(data, s, x), state, length=cfg.steps_per_dispatch)

    return Program(
        start=lambda: _first_state(params, optimiser.init(params)),
        advance=jax.jit(advance),
        noise=lambda key, size: make_noise(key, nnx.merge(graph, params), size),
        terms=jax.jit(lambda params, batch, noise: bound_terms(nnx.merge(graph, params), scale, batch, noise)),
        embed=jax.jit(lambda params, batch: embeddings(nnx.merge(graph, params), scale, batch)),
    )


def _summed(terms: Terms) -> Terms:
    return Terms(
        recon=terms.recon.mean(), kl_joint=terms.kl_joint.sum(-1).mean(), kl_local=terms.kl_local.sum((1, 2)).mean()
    )


def _first_state(params: PyTree, opt_state: PyTree) -> TrainState:
    return TrainState(
        params=params,
        opt_state=opt_state,
        step=jnp.zeros((), jnp.int32),
        best=params,
        best_bound=jnp.full((), -jnp.inf),
        best_step=jnp.zeros((), jnp.int32),
        stale_cycles=jnp.zeros((), jnp.int32),
        finished=jnp.zeros((), bool),
    )


class Task(NamedTuple):
    """What to train on what; `data` identifies the data set, and with it `features`."""

    model: Model
    dims: Dims
    features: FeatureMask
    schedule: Schedule
    train: Train
    data: str


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
    for name, batch in (("training episodes", training), ("validation episodes", validation)):
        check_batch(batch, dims.action, name)
        check_features(batch, task.features, dims.action, name)
    settings = {"train": vars(cfg), "joint": vars(task.schedule.joint), "local": vars(task.schedule.local)}
    write_description(run / "checkpoints", Description(task.model, dims, settings, task.data))
    scale = fit_normaliser(training, dims.action, task.features)
    program = make_program(task.model, dims, scale, task.schedule, cfg)
    checkpoints, state = Checkpoints(run / "checkpoints"), program.start()
    if checkpoints.latest() is not None:
        state = checkpoints.restore(state)
    log, data = MetricsLog(run / "metrics.jsonl", int(state.step)), to_device(training)
    judge = _judge(program, validation, task)
    waiting: list[tuple[int, Terms]] = []
    try:
        for step in range(int(state.step), cfg.steps, cfg.steps_per_dispatch):
            if bool(state.finished):
                break
            after = step + cfg.steps_per_dispatch
            state, trace = program.advance(state, data)
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


def _row(step: int, trace: Terms, task: Task) -> dict[str, Any]:
    first = step - len(trace.recon)
    for name, values in trace._asdict().items():
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise TrainingDiverged(
                f"{name} became {values[wrong[0]]} at step {first + int(wrong[0])}. Lower "
                "train.learning_rate or train.clip under another name=, or look for extreme values in the data."
            )
    recon, joint, local = (float(values.mean()) for values in trace)
    levels = {"omega": task.schedule.joint, "alpha": task.schedule.local}
    weights = {f"beta_{name}": float(beta(level, step - 1, task.train.steps)) for name, level in levels.items()}
    return {
        "step": step,
        **weights,
        "train_bound": recon - joint - local,
        "recon": recon,
        "kl_omega": joint,
        "kl_alpha": local,
    }


def _judge(
    program: Program, validation: TrajectoryBatch, task: Task
) -> Callable[[TrainState, int, bool], tuple[TrainState, dict[str, Any]]]:
    """The validation bound at β = 1 with noise fixed for the whole run, and what follows from it at a cycle's end."""
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(task.train.seed), 1), VALIDATION)
    noise = jax.tree.map(np.asarray, program.noise(key, len(validation.mask)))

    def judge(state: TrainState, step: int, ends: bool) -> tuple[TrainState, dict[str, Any]]:
        terms = in_pieces(lambda batch, noise: program.terms(state.params, batch, noise), validation, noise)
        latents = in_pieces(lambda batch: program.embed(state.params, batch), validation)
        value = float(bound(terms, 1.0, 1.0).mean())
        units = active_units(latents, validation.mask)
        extra = {"val_bound": value, "active_omega": int(units.omega.sum()), "active_alpha": int(units.alpha.sum())}
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
