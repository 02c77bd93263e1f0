"""The compiled parts of a training run: many steps in one dispatch, the bound, and the latents."""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Int, PRNGKeyArray, PyTree, Scalar, UInt32

from data_gen.trajectory import TrajectoryBatch
from marl_vae.batching import epoch_rows, rows_on_device
from marl_vae.bound import Noise, Terms, bound_terms, make_noise
from marl_vae.checkpoint import TrainState
from marl_vae.embed import embeddings
from marl_vae.keys import HELD_NOISE, HELD_ORDER, NOISE, ORDER, key_of
from marl_vae.model import HierarchicalVAE
from marl_vae.normalise import Normaliser
from marl_vae.objectives.objective import Beta, Sample, Tuned, in_nats_an_action, sampled
from marl_vae.objectives.two_level import outer_gradient
from marl_vae.schedule import beta
from marl_vae.stream import Delivered, Given
from marl_vae.task import Task


class Trace(NamedTuple):
    """What a step leaves for the log: the loss, the terms summed over their level, and what the objective watches."""

    loss: Scalar
    terms: Terms
    watched: dict[str, Scalar]


class Program(NamedTuple):
    """Functions of params and states, which are pytrees of arrays; each compiles once.

    `start` gives a state for each seed, `advance` takes them many steps on; it is given the training episodes, and the
    validation episodes by which an objective may tune its weights. `follow` does the same on mini-batches that were
    drawn for it.
    """

    start: Callable[[], list[TrainState]]
    advance: Callable[[list[TrainState], TrajectoryBatch, TrajectoryBatch], tuple[list[TrainState], list[Trace]]]
    follow: Callable[[list[TrainState], Delivered], tuple[list[TrainState], list[Trace]]]
    noise: Callable[[PRNGKeyArray, int], Noise]
    terms: Callable[[PyTree, TrajectoryBatch, Any], Terms]
    embed: Callable[[PyTree, TrajectoryBatch], Any]


class Batch(NamedTuple):
    """A mini-batch with the numbers of its episodes and the key of its noise."""

    episodes: TrajectoryBatch
    rows: Int[Array, " B"]
    key: PRNGKeyArray


def make_program(task: Task, scale: Normaliser, n_training: int) -> Program:
    """Bind the static settings and the number of training episodes."""
    seeds = [one.seed for one in task.train.alone()]
    models = [HierarchicalVAE(task.model, task.dims, rngs=nnx.Rngs(params=jax.random.key(seed))) for seed in seeds]
    graph, params = nnx.split(models[0])
    tuned = task.objective.tuned(n_training)
    optimiser, tuner = optimisers(task)

    def start() -> list[TrainState]:
        fresh = [nnx.split(model)[1] for model in models]
        return [first_state(one, optimiser.init(one), tuned, tuner.init(tuned) if tuned else ()) for one in fresh]

    return Program(
        start=start,
        advance=jax.jit(lambda states, *data: advance(partial(many_steps, task, scale, graph), seeds, states, data)),
        follow=jax.jit(partial(advance, partial(given_steps, task, scale, graph), seeds, axis=1)),
        noise=lambda key, size: make_noise(key, nnx.merge(graph, params), size),
        terms=jax.jit(lambda params, batch, noise: bound_terms(nnx.merge(graph, params), scale, batch, noise)),
        embed=jax.jit(lambda params, batch: embeddings(nnx.merge(graph, params), scale, batch)),
    )


def advance(
    many: Callable, seeds: list[int], states: list[TrainState], data: Any, axis: int | None = None
) -> tuple[list[TrainState], list[Trace]]:
    """Every seed's state many steps on; side by side where there are several, and one that has finished is held.

    `axis` is that of the seeds in `data`; without one all see the same.
    """
    if len(states) == 1:
        state, trace = many(seeds[0], states[0], data)
        return [state], [trace]

    def unless_finished(seed: UInt32[Array, ""], state: TrainState, data: Any) -> tuple[TrainState, Trace]:
        moved, trace = many(seed, state, data)
        return jax.tree.map(partial(jnp.where, state.finished), state, moved), trace

    together = jax.tree.map(lambda *parts: jnp.stack(parts), *states)
    found = jax.vmap(unless_finished, in_axes=(0, 0, axis))(jnp.asarray(seeds, jnp.uint32), together, data)
    moved, traces = ([jax.tree.map(itemgetter(i), part) for i in range(len(seeds))] for part in found)
    return moved, traces


def many_steps(
    task: Task,
    scale: Normaliser,
    graph: nnx.GraphDef,
    seed: int | UInt32[Array, ""],
    state: TrainState,
    data: tuple[TrajectoryBatch, TrajectoryBatch],
) -> tuple[TrainState, Trace]:
    """The steps of one dispatch, on training and validation episodes that lie on the device."""
    training, validation = data

    def step(state: TrainState, _: None) -> tuple[TrainState, Trace]:
        batch = mini_batch(task.train.batch, seed, training, state.step, ORDER, NOISE)
        held = (
            mini_batch(task.train.batch, seed, validation, state.step, HELD_ORDER, HELD_NOISE) if state.tuned else None
        )
        return one_step(task, scale, graph, state, batch, held)

    return jax.lax.scan(step, state, length=task.train.steps_per_dispatch)


def given_steps(
    task: Task,
    scale: Normaliser,
    graph: nnx.GraphDef,
    seed: int | UInt32[Array, ""],
    state: TrainState,
    data: Delivered,
) -> tuple[TrainState, Trace]:
    """The steps of one dispatch, each on its delivered mini-batch; the same numbers as `many_steps`."""

    def batch_of(given: Given, step: Int[Array, ""], noise: int) -> Batch:
        return Batch(given.episodes, given.rows, jax.random.fold_in(key_of(seed, noise), step))

    def step(state: TrainState, found: Delivered) -> tuple[TrainState, Trace]:
        batch = batch_of(found.training, state.step, NOISE)
        held = batch_of(found.validation, state.step, HELD_NOISE) if found.validation else None
        return one_step(task, scale, graph, state, batch, held)

    return jax.lax.scan(step, state, data)


def optimisers(task: Task) -> tuple[optax.GradientTransformation, optax.GradientTransformation]:
    """Of the networks, and of the weights that validation episodes tune."""
    of_networks = optax.chain(optax.clip_by_global_norm(task.train.clip), optax.adam(task.train.learning_rate))
    return of_networks, optax.adam(task.objective.outer_rate)


def mini_batch(
    size: int, seed: int | UInt32[Array, ""], data: TrajectoryBatch, step: Int[Array, ""], order: int, noise: int
) -> Batch:
    """The mini-batch of a step."""
    size = min(size, len(data.mask))
    rows = epoch_rows(key_of(seed, order), step, len(data.mask), size)
    return Batch(rows_on_device(data, rows), rows, jax.random.fold_in(key_of(seed, noise), step))


def one_step(
    task: Task,
    scale: Normaliser,
    graph: nnx.GraphDef,
    state: TrainState,
    batch: Batch,
    held: Batch | None,
) -> tuple[TrainState, Trace]:
    """One gradient step; before it, one of the tuned weights on `held` where the objective has any."""
    objective, levels = task.objective, task.schedule
    optimiser, tuner = optimisers(task)
    weights = Beta(*(beta(level, state.step, task.train.steps) for level in (levels.joint, levels.local)))

    def seen(params: PyTree, batch: Batch) -> Sample:
        net = nnx.merge(graph, params)
        return sampled(objective, net, scale, batch.episodes, batch.rows, beta=weights, key=batch.key)

    def alone(level: Callable, batch: Batch) -> Callable[[PyTree, PyTree], Scalar]:
        return lambda params, tuned: in_nats_an_action(level(seen(params, batch), tuned), batch.episodes)

    def loss(params: PyTree, tuned: PyTree, batch: Batch) -> tuple[Scalar, Terms]:
        sample = seen(params, batch)
        found = objective.inner_loss(sample, tuned)
        found = found if tuned else found + objective.outer_loss(sample, tuned)
        return in_nats_an_action(found, batch.episodes), summed(sample.terms)

    tuned, tuner_state = cast(Tuned, state.tuned), state.tuner_state
    if tuned:
        held = cast(Batch, held)
        inner, outer = alone(objective.inner_loss, batch), alone(objective.outer_loss, held)
        slope = outer_gradient(inner, outer, objective.inner_rate)(state.params, tuned)
        updates, tuner_state = tuner.update(slope, tuner_state, tuned)
        tuned = cast(Tuned, optax.apply_updates(tuned, updates))
    (value, terms), grads = jax.value_and_grad(loss, has_aux=True)(state.params, tuned, batch)
    updates, opt_state = optimiser.update(grads, state.opt_state, state.params)
    state = state._replace(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        tuned=tuned,
        tuner_state=tuner_state,
        step=state.step + 1,
    )
    return state, Trace(loss=value, terms=terms, watched=objective.watched(tuned))


def summed(terms: Terms) -> Terms:
    """Nats an episode, over draws and the mini-batch."""
    return Terms(
        recon=terms.recon.mean(),
        kl_joint=terms.kl_joint.sum(-1).mean(),
        kl_local=terms.kl_local.sum((-2, -1)).mean(),
        state=terms.state.mean(),
    )


def first_state(params: PyTree, opt_state: PyTree, tuned: PyTree, tuner_state: PyTree) -> TrainState:
    """The state before the first step."""
    return TrainState(
        params=params,
        opt_state=opt_state,
        tuned=tuned,
        tuner_state=tuner_state,
        step=jnp.zeros((), jnp.int32),
        best=params,
        best_bound=jnp.full((), -jnp.inf),
        best_step=jnp.zeros((), jnp.int32),
        stale_cycles=jnp.zeros((), jnp.int32),
        finished=jnp.zeros((), bool),
    )
