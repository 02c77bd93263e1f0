"""Concept vectors on a latent, learned together with a linear map from their scores to a label.

After Yeh et al. 2020, "On Completeness-aware Concept-Based Explanations in Deep Neural Networks", section 4.
Letters: B rows, F features, M concepts, K outputs (one a class, or 1 for a real target), N nearest rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.utils.class_weight import compute_sample_weight

from data_gen.trajectory import InputError

SOFTNESS = 0.05  # width, as a cosine, over which a concept switches on while it is learned
SLACK = 0.1  # added to the sum of the scores while they are learned; without it one concept alone has no gradient


@dataclass
class Concepts:
    """How concepts are found, chosen and shown.

    `most` is the largest number of concepts tried; `threshold` the cosine at or below which a concept is off.
    `salience` weighs the mean cosine of a concept with its `salient` nearest training rows, `similarity` the mean
    squared cosine between concepts, `strength` the L2 penalty on the linear map while concepts are learned, in `steps`
    steps from each of `starts` starts. A concept shows its `nearest` test episodes, at most `per_group` of one group.
    """

    most: int = 8
    threshold: float = 0.1
    salience: float = 0.1
    similarity: float = 0.1
    salient: int = 32
    strength: float = 1e-3
    starts: int = 3
    steps: int = 100
    nearest: int = 12
    per_group: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("most", "salient", "starts", "steps", "nearest", "per_group"):
            if getattr(self, name) < 1:
                raise InputError(f"concepts.{name} is {getattr(self, name)}; it must be 1 or more.")
        for name in ("salience", "similarity", "strength", "seed"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(
                    f"concepts.{name} is {getattr(self, name)}; give a finite number that is not negative."
                )
        if not 0 <= self.threshold < 1:
            raise InputError(f"concepts.threshold is {self.threshold}; it is a cosine, so give one in [0, 1).")


class Learned(NamedTuple):
    """Unit concept vectors, and the objective they reached."""

    vectors: Float[np.ndarray, "M F"]
    loss: float


class Lesson(NamedTuple):
    """What concepts are learned from: unit features, outputs to predict (one-hot, or one number), row weights."""

    unit: Float[np.ndarray, "B F"]
    outputs: Float[np.ndarray, "B K"]
    weights: Float[np.ndarray, " B"]
    kind: str


def unit_rows(features: Float[np.ndarray, "B F"]) -> Float[np.ndarray, "B F"]:
    """Rows of length 1; a row of zeros stays one."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    return features / np.where(length > 0, length, 1)


def concept_scores(
    features: Float[np.ndarray, "B F"], vectors: Float[np.ndarray, "M F"], threshold: float
) -> Float[np.ndarray, "B M"]:
    """s_j = a_j / sum_k a_k with a_j = c_j.z where c_j.z / |z| > threshold, else 0; `vectors` have length 1.

    A row with no concept above the threshold has no score to divide: all its scores are 0. The length of z cancels, so
    scores say where a latent points and not how far out it lies.
    """
    cosine = unit_rows(features) @ vectors.T
    above = np.where(cosine > threshold, cosine, 0)
    total = above.sum(1, keepdims=True)
    return above / np.where(total > 0, total, 1)


def make_lesson(features: Float[np.ndarray, "B F"], y: Num[np.ndarray, " B"], kind: str, n_classes: int) -> Lesson:
    """Classes weigh equally, as they do in the score; a real target is standardised."""
    if kind == "class":
        outputs, weights = np.eye(n_classes)[y], compute_sample_weight("balanced", y)
    else:
        outputs, weights = ((y - y.mean()) / y.std())[:, None], np.ones(len(y))
    return Lesson(unit=unit_rows(features), outputs=outputs, weights=weights / weights.sum(), kind=kind)


def learn_concepts(lesson: Lesson, n_concepts: int, config: Concepts, rng: np.random.Generator) -> Learned:
    """The vectors of the lowest objective over several starts: k-means centres, then rows drawn at random."""
    starts = [_start(lesson.unit, n_concepts, k == 0, config, rng) for k in range(config.starts)]
    return min((_descend(lesson, start, config) for start in starts), key=lambda found: found.loss)


def _start(unit: np.ndarray, n_concepts: int, centres: bool, config: Concepts, rng: np.random.Generator) -> np.ndarray:
    if centres:
        n_clusters = min(n_concepts, len(np.unique(unit, axis=0)))
        start = KMeans(n_clusters, random_state=config.seed).fit(unit).cluster_centers_
    else:
        start = unit[rng.integers(0, len(unit), n_concepts)]
    # The noise tells equal starting vectors apart, and gives a direction to a latent that is the same in every row.
    return np.resize(start, (n_concepts, unit.shape[1])) + 0.05 * rng.normal(size=(n_concepts, unit.shape[1]))


def _descend(lesson: Lesson, start: np.ndarray, config: Concepts) -> Learned:
    n_concepts, n_outputs = len(start), lesson.outputs.shape[1]
    flat = np.concatenate([start.ravel(), np.zeros(n_concepts * n_outputs + n_outputs)])
    found = minimize(
        objective,
        flat,
        args=(lesson, n_concepts, config),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": config.steps},
    )
    return Learned(vectors=unit_rows(found.x[: start.size].reshape(start.shape)), loss=float(found.fun))


def objective(
    flat: Float[np.ndarray, " P"], lesson: Lesson, n_concepts: int, config: Concepts
) -> tuple[float, Float[np.ndarray, " P"]]:
    """What is minimised over vectors v [M F], map W [M K] and offset b [K], laid end to end, and its gradient.

    loss(S W + b) + strength/2 |W|^2 - salience mean_j mean_{N nearest} cos(c_j, z) + similarity mean_{j<k} (c_j.c_k)^2,
    with c = v / |v|. The loss is cross-entropy or half the squared error. The paper averages the signed c_j.c_k, which
    rewards opposite concepts; the square stands for the absolute value and has a gradient at 0.
    """
    width, n_outputs = lesson.unit.shape[1], lesson.outputs.shape[1]
    raw, w, b = np.split(flat, np.cumsum([n_concepts * width, n_concepts * n_outputs]))
    raw, w = raw.reshape(n_concepts, width), w.reshape(n_concepts, n_outputs)
    length = np.linalg.norm(raw, axis=1, keepdims=True)
    vectors = raw / length
    cosine = lesson.unit @ vectors.T
    scores, above_slope, total = soft_scores(cosine, config.threshold)
    value, to_outputs = _data_loss(scores @ w + b, lesson)
    to_scores = to_outputs @ w.T
    to_cosine = (to_scores - (to_scores * scores).sum(1, keepdims=True)) / total * above_slope
    salience, to_salience = _salience(cosine, config.salient)
    similarity, to_similarity = _similarity(vectors)
    value += config.strength / 2 * (w**2).sum() - config.salience * salience + config.similarity * similarity
    to_vectors = (to_cosine - config.salience * to_salience).T @ lesson.unit + config.similarity * to_similarity
    to_raw = (to_vectors - (to_vectors * vectors).sum(1, keepdims=True) * vectors) / length
    to_w = scores.T @ to_outputs + config.strength * w
    return float(value), np.concatenate([to_raw.ravel(), to_w.ravel(), to_outputs.sum(0)])


def soft_scores(
    cosine: Float[np.ndarray, "B M"], threshold: float, softness: float = SOFTNESS, slack: float = SLACK
) -> tuple[Float[np.ndarray, "B M"], Float[np.ndarray, "B M"], Float[np.ndarray, "B 1"]]:
    """Scores with a gradient, the slope of their numerators, and their sum; `concept_scores` as both widths go to 0.

    s_j = h(q_j) / (slack + sum_k h(q_k)), h(q) = softness softplus(q / softness) sigmoid((q - threshold) / softness).
    """
    negative = expit(-cosine / softness)
    on = expit((cosine - threshold) / softness)
    above = -softness * np.log(negative) * on
    slope = (1 - negative) * on + above * (1 - on) / softness
    total = slack + above.sum(1, keepdims=True)
    return above / total, slope, total


def _data_loss(outputs: np.ndarray, lesson: Lesson) -> tuple[float, np.ndarray]:
    weights = lesson.weights[:, None]
    if lesson.kind == "class":
        shifted = outputs - outputs.max(1, keepdims=True)
        log_share = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        return float(-(weights * lesson.outputs * log_share).sum()), weights * (np.exp(log_share) - lesson.outputs)
    error = outputs - lesson.outputs
    return float((weights * error**2).sum() / 2), weights * error


def _salience(cosine: np.ndarray, salient: int) -> tuple[float, np.ndarray]:
    """Mean cosine of every concept with its nearest rows, and its gradient."""
    n_near = min(salient, len(cosine))
    near = np.argpartition(-cosine, n_near - 1, axis=0)[:n_near]
    slope = np.zeros_like(cosine)
    np.put_along_axis(slope, near, 1 / (n_near * cosine.shape[1]), axis=0)
    return float((slope * cosine).sum()), slope


def _similarity(vectors: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean squared cosine over pairs of concepts, and its gradient."""
    n_pairs = len(vectors) * (len(vectors) - 1) / 2
    if not n_pairs:
        return 0.0, np.zeros_like(vectors)
    between = vectors @ vectors.T - np.diag((vectors**2).sum(1))
    return float((between**2).sum() / 2 / n_pairs), 2 * between @ vectors / n_pairs
