"""Where new episodes differ from those that a model was trained on, column by column.

A column is a feature or an action of one agent, or a figure of whole episodes. Letters: B episodes, T steps, N agents,
Do observation, Da action, K values.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from data_gen.trajectory import ActionSpec, AnyArray, FeatureMask, TrajectoryBatch
from marl_vae.normalise import CONSTANT, Normaliser

OBSERVATION, ACTION, EPISODE = KINDS = ("observation", "action", "episode")
LENGTH, AGENTS, MISSING = EPISODE_NAMES = ("length", "agents", "missing share")
ALL = -1  # in place of an agent's number: of all agents together
# Bounds for covariates that are balanced: Rubin, Health Services and Outcomes Research Methodology 2 (2001), 169-188.
MEAN, VARIANCE = 0.25, 2.0
OUTSIDE = 0.01  # ours: of a sample of the training's own distribution two values of K + 1 are expected outside


class Column(NamedTuple):
    """Which column (kind, place among those of its kind, agent), and its values at real steps, or one an episode."""

    key: tuple[str, int, int]
    values: Float64[np.ndarray, " K"]


class Measure(NamedTuple):
    """A column in five numbers; NaN where there is no value, or where a figure is not known."""

    count: int
    mean: float
    std: float
    low: float
    high: float


class Difference(NamedTuple):
    """A column of new episodes beside the training's.

    `mean_difference` is (m_new − m) / s and `spread_ratio` s_new / s, with the training's mean m and standard deviation
    s; `outside` the share of new values that are less than the training's least or more than its greatest. NaN where
    there is nothing to compare with. `reasons` says what lies beyond the bounds; it is empty where nothing does.
    """

    key: tuple[str, int, int]
    training: Measure
    new: Measure
    mean_difference: float
    spread_ratio: float
    outside: float
    reasons: tuple[str, ...]


Measures = dict[tuple[str, int, int], Measure]


def columns(batch: TrajectoryBatch, features: FeatureMask, action: ActionSpec, by_agent: bool) -> Iterator[Column]:
    """Every column: of each agent, or of all agents for which it is real together.

    A discrete action has a column for each choice, 1 at the steps at which it was taken and 0 at others.
    """
    mask, obs, actions = np.asarray(batch.mask), np.asarray(batch.obs), np.asarray(batch.actions)
    n_agents = mask.shape[2]
    groups = {agent: np.arange(n_agents) == agent for agent in range(n_agents)} if by_agent else {ALL: None}
    for agent, only in groups.items():
        for kind, values, real in ((OBSERVATION, obs, features.obs), (ACTION, actions, features.actions)):
            for place in range(real.shape[1]):
                whose = real[:, place] if only is None else real[:, place] & only
                if whose.any():
                    one = values == place if values.ndim == 3 else values[..., place]
                    yield Column((kind, place, agent), one[:, :, whose][mask[:, :, whose]].astype(np.float64))
        yield Column((EPISODE, EPISODE_NAMES.index(MISSING), agent), missing_share(mask, agent))
    yield Column((EPISODE, EPISODE_NAMES.index(LENGTH), ALL), lengths(mask).astype(np.float64))
    yield Column((EPISODE, EPISODE_NAMES.index(AGENTS), ALL), mask.any(1).sum(1).astype(np.float64))


def lengths(mask: Bool[np.ndarray, "B T N"]) -> Int[np.ndarray, " B"]:
    """Steps from the first to the last at which any agent is there, so that padding does not count."""
    there = np.any(mask, axis=2)
    first, last = there.argmax(1), there.shape[1] - there[:, ::-1].argmax(1)
    return np.where(there.any(1), last - first, 0)


def missing_share(mask: Bool[np.ndarray, "B T N"], agent: int) -> Float64[np.ndarray, " B"]:
    """Share of an episode's steps at which the agent is not there; of `ALL`, mean over agents that are there at all."""
    steps, present = np.maximum(lengths(mask), 1), mask.sum(1)
    if agent != ALL:
        return 1 - present[:, agent] / steps
    return 1 - present.sum(1) / (steps * np.maximum((present > 0).sum(1), 1))


def measure(values: Float64[np.ndarray, " K"]) -> Measure:
    """The column's figures; the standard deviation is that of the values, with the divisor K."""
    if not len(values):
        return Measure(count=0, mean=np.nan, std=np.nan, low=np.nan, high=np.nan)
    figures = (float(figure) for figure in (values.mean(), values.std(), values.min(), values.max()))
    return Measure(len(values), *figures)


def measures(batch: TrajectoryBatch, features: FeatureMask, action: ActionSpec, by_agent: bool) -> Measures:
    """The figures of every column."""
    return {column.key: measure(column.values) for column in columns(batch, features, action, by_agent)}


def measures_of(scale: Normaliser, action: ActionSpec) -> Measures:
    """What a model itself still knows of its training episodes: means and deviations over all agents, no ranges."""
    found = {(OBSERVATION, place, ALL): pair for place, pair in _pairs(scale.obs_mean, scale.obs_std)}
    if action.kind == "continuous":
        found |= {(ACTION, place, ALL): pair for place, pair in _pairs(scale.action_mean, scale.action_std)}
    return {key: Measure(count=0, mean=mean, std=std, low=np.nan, high=np.nan) for key, (mean, std) in found.items()}


def _pairs(mean: Float[AnyArray, " F"], std: Float[AnyArray, " F"]) -> Iterator[tuple[int, tuple[float, float]]]:
    return enumerate(zip(np.asarray(mean).tolist(), np.asarray(std).tolist(), strict=True))


def differences(training: Measures, new: Iterator[Column]) -> list[Difference]:
    """Every new column that the training's figures have, in the new ones' order."""
    return [difference(column, training[column.key]) for column in new if column.key in training]


def difference(column: Column, training: Measure) -> Difference:
    """One column against the training's figures."""
    new, values = measure(column.values), column.values
    varies = training.std > CONSTANT
    found = Difference(
        key=column.key,
        training=training,
        new=new,
        mean_difference=(new.mean - training.mean) / training.std if varies else np.nan,
        spread_ratio=new.std / training.std if varies else np.nan,
        outside=float(((values < training.low) | (values > training.high)).mean())
        if new.count and np.isfinite(training.low)
        else np.nan,
        reasons=(),
    )
    return found._replace(reasons=tuple(_reasons(found)))


def _reasons(found: Difference) -> Iterator[str]:
    new, training = found.new, found.training
    if not new.count:
        return
    if np.isnan(training.mean):
        yield "never there in training"
    elif training.std <= CONSTANT and max(abs(new.mean - training.mean), new.std) > CONSTANT:
        yield f"always {training.mean:.4g} in training"
    if abs(found.mean_difference) > MEAN:
        yield f"mean {found.mean_difference:+.2f} training deviations away"
    if not (1 / VARIANCE <= found.spread_ratio**2 <= VARIANCE or np.isnan(found.spread_ratio)):
        yield f"spread {found.spread_ratio:.2f} times the training's"
    if found.outside > OUTSIDE:
        yield f"{found.outside:.1%} outside the training's {training.low:.4g} to {training.high:.4g}"
