"""The supervised ceiling: the team's encoder trained end to end on a label, which is the most that it could say.

B episodes, M trainings side by side, E seeds, K outputs (classes, or one number).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int, Num, PyTree, Scalar, UInt32

from data_gen.trajectory import TrajectoryBatch, take, to_device
from marl_vae.batching import in_pieces, rows_on_device
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import Normaliser

BATCH, ROUND, ROUNDS, PATIENCE = 64, 50, 24, 6
LEARNING_RATE, DECAYS = 2e-3, (1e-3, 1e-1)


class Question(NamedTuple):
    """A label: `kind` class (numbered from 0) or real, with the rows that teach and those that say when to stop."""

    kind: str
    values: Num[np.ndarray, " B"]
    n_classes: int
    train: Int[np.ndarray, " n"]
    validation: Int[np.ndarray, " v"]

    @property
    def outputs(self) -> int:
        """K."""
        return self.n_classes if self.kind == "class" else 1


class Answerer(nnx.Module):
    """The encoder of z_ω, and an MLP of one hidden layer in place of the latent."""

    def __init__(self, config: Model, dims: Dims, outputs: int, *, rngs: nnx.Rngs):
        self.vae = HierarchicalVAE(config, dims, rngs=rngs)
        self.hidden = nnx.Linear(self.vae.team_encoder.width * config.hidden, config.hidden, rngs=rngs)
        self.out = nnx.Linear(config.hidden, outputs, rngs=rngs)

    def __call__(self, scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B K"]:
        return self.out(jax.nn.silu(self.hidden(self.vae.team_features(scale, batch))))


class Lesson(NamedTuple):
    """Episodes on the device with targets (real ones standardised), and the chance of each to be drawn."""

    episodes: TrajectoryBatch
    targets: Num[Array, " B"]
    chances: Float[Array, " B"]


class Pupils(NamedTuple):
    """M trainings side by side."""

    params: PyTree
    opt_state: PyTree
    seed: UInt32[Array, " M"]
    decay: Float[Array, " M"]
    step: Int[Array, " M"]


def supervise(
    config: Model,
    dims: Dims,
    scale: Normaliser,
    batch: TrajectoryBatch,
    question: Question,
    rows: Int[np.ndarray, " m"],
    *,
    seeds: list[int],
    report: Callable[[float], None],
) -> Float[np.ndarray, "E m K"]:
    """Class probabilities, or the number, that an encoder trained for each seed gives the `rows`.

    Classes are drawn equally often. A training stops when the validation rows' score no longer gains and goes back to
    its best round (to the last one where there are no such rows). The first seed chooses among the weight decays.
    """
    learn = partial(_learn, config, dims, scale, batch, question)
    many = len(seeds) > 1
    best, values, graph = learn([seeds[0]] * len(DECAYS), list(DECAYS), lambda share: report(share / (1 + many)))
    winner = int(np.argmax(values))
    chosen = [jax.tree.map(lambda leaf: leaf[winner], best)]
    if many:
        rest = len(seeds) - 1
        others, _, _ = learn(seeds[1:], [DECAYS[winner]] * rest, lambda share: report((1 + share) / 2))
        chosen += [jax.tree.map(lambda leaf, i=i: leaf[i], others) for i in range(rest)]
    asked = take(batch, np.asarray(rows, np.int32))
    answers = np.stack([in_pieces(partial(_answer, graph, params, scale), asked) for params in chosen])
    if question.kind == "class":
        return np.asarray(jax.nn.softmax(answers, axis=-1))
    centre, spread = _moments(question)
    return centre + spread * answers


def _learn(
    config: Model,
    dims: Dims,
    scale: Normaliser,
    batch: TrajectoryBatch,
    question: Question,
    seeds: list[int],
    decays: list[float],
    report: Callable[[float], None],
) -> tuple[PyTree, np.ndarray, nnx.GraphDef]:
    """The best parameters of each training, with a leading axis, and their scores on the validation rows."""
    pupils = [Answerer(config, dims, question.outputs, rngs=nnx.Rngs(params=jax.random.key(seed))) for seed in seeds]
    graph = nnx.split(pupils[0])[0]
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(nnx.split(one)[1] for one in pupils))
    decay = jnp.asarray(decays)
    now = Pupils(
        params=params,
        opt_state=jax.vmap(lambda one, decay: _optimiser(decay).init(one))(params, decay),
        seed=jnp.asarray(seeds, jnp.uint32),
        decay=decay,
        step=jnp.zeros(len(seeds), jnp.int32),
    )
    lesson = Lesson(to_device(batch), *map(jnp.asarray, (_targets(question), _chances(question))))
    judged = take(batch, np.asarray(question.validation, np.int32))
    best, best_values, stale = params, np.full(len(seeds), -np.inf), np.zeros(len(seeds), int)
    for number in range(ROUNDS):
        now = _round(graph, question.kind, scale, lesson, now)
        values = np.full(len(seeds), float(number))
        if len(question.validation):
            each = [jax.tree.map(lambda leaf, i=i: leaf[i], now.params) for i in range(len(seeds))]
            values = np.array(
                [_score(question, in_pieces(partial(_answer, graph, one, scale), judged)) for one in each]
            )
        better = (values > best_values) & (stale < PATIENCE)  # one that has stopped stays stopped beside the others
        best = jax.tree.map(partial(_where, jnp.asarray(better)), now.params, best)
        best_values, stale = np.where(better, values, best_values), np.where(better, 0, stale + 1)
        report((number + 1) / ROUNDS)
        if (stale >= PATIENCE).all():
            break
    return best, best_values, graph


@partial(jax.jit, static_argnums=(0, 1))
def _round(graph: nnx.GraphDef, kind: str, scale: Normaliser, lesson: Lesson, pupils: Pupils) -> Pupils:
    def loss(params: PyTree, rows: Int[Array, " R"]) -> Scalar:
        answers = nnx.merge(graph, params)(scale, rows_on_device(lesson.episodes, rows))
        wanted = lesson.targets[rows]
        if kind == "class":
            return optax.softmax_cross_entropy_with_integer_labels(answers, wanted).mean()
        return jnp.square(answers[:, 0] - wanted).mean()

    def one_step(pupil: Pupils, _: None) -> tuple[Pupils, None]:
        key = jax.random.fold_in(jax.random.key(pupil.seed), pupil.step)
        rows = jax.random.choice(key, len(lesson.chances), (BATCH,), p=lesson.chances)
        grads = jax.grad(loss)(pupil.params, rows)
        updates, opt_state = _optimiser(pupil.decay).update(grads, pupil.opt_state, pupil.params)
        moved = pupil._replace(params=optax.apply_updates(pupil.params, updates), opt_state=opt_state)
        return moved._replace(step=pupil.step + 1), None

    return jax.vmap(lambda pupil: jax.lax.scan(one_step, pupil, length=ROUND)[0])(pupils)


def _optimiser(decay: Float[Array, ""]) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(LEARNING_RATE, weight_decay=cast(float, decay)))


@partial(jax.jit, static_argnums=0)
def _answer(graph: nnx.GraphDef, params: PyTree, scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B K"]:
    return nnx.merge(graph, params)(scale, batch)


def _where(better: Array, new: Array, old: Array) -> Array:
    return jnp.where(better.reshape(-1, *(1,) * (new.ndim - 1)), new, old)


def _moments(question: Question) -> tuple[float, float]:
    seen = question.values[question.train]
    return float(seen.mean()), float(seen.std())


def _targets(question: Question) -> Num[np.ndarray, " B"]:
    if question.kind == "class":
        return question.values.astype(np.int32)
    centre, spread = _moments(question)
    return ((question.values - centre) / spread).astype(np.float32)


def _chances(question: Question) -> Float[np.ndarray, " B"]:
    """Training rows alone; every class as often as the others."""
    chances = np.zeros(len(question.values), np.float32)
    seen = question.values[question.train]
    _, place, counts = np.unique(
        seen if question.kind == "class" else np.zeros(len(seen), int), return_inverse=True, return_counts=True
    )
    chances[question.train] = 1 / (counts[place.ravel()] * len(counts))
    return chances


def _score(question: Question, answers: Float[np.ndarray, "v K"]) -> float:
    """Balanced accuracy over the classes that are there, or R2 over the training mean."""
    wanted = _targets(question)[question.validation]
    if question.kind == "class":
        right = answers.argmax(-1) == wanted
        return float(np.mean([right[wanted == one].mean() for one in np.unique(wanted)]))
    return float(1 - np.sum((wanted - answers[:, 0]) ** 2) / np.sum(wanted**2))
