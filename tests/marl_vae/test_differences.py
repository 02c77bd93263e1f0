"""Figures of columns against NumPy's on values picked one by one, and what is called a difference."""

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real
from marl_vae.differences import (
    ACTION,
    AGENTS,
    ALL,
    EPISODE,
    EPISODE_NAMES,
    LENGTH,
    MISSING,
    OBSERVATION,
    Column,
    Measure,
    columns,
    difference,
    differences,
    measures,
    measures_of,
)
from marl_vae.normalise import fit_normaliser
from tests.builders import DO, UNEVEN, N, tiny_batch, uneven_batch

DISCRETE, CONTINUOUS = ActionSpec("discrete", 5), ActionSpec("continuous", 2)
KEY = (OBSERVATION, 0, ALL)


def five(values: list[float]) -> Measure:
    return Measure(len(values), float(np.mean(values)), float(np.std(values)), min(values), max(values))


def picked(batch: TrajectoryBatch, kind: str, place: int, agents: list[int]) -> list[float]:
    """Values of a column, one real step after another."""
    values = batch.obs if kind == OBSERVATION else batch.actions
    found = []
    for b, t, n in np.argwhere(batch.mask):
        if n in agents:
            found.append(float(values[b, t, n] == place) if values.ndim == 3 else float(values[b, t, n, place]))
    return found


@pytest.mark.parametrize("action", [CONTINUOUS, DISCRETE], ids=["continuous", "discrete"])
def test_every_column_of_every_agent_and_of_all(action: ActionSpec) -> None:
    batch = tiny_batch(action)
    for by_agent, groups in ((True, {n: [n] for n in range(N)}), (False, {ALL: list(range(N))})):
        found = measures(batch, all_real(N, DO, action), action, by_agent)
        for agent, members in groups.items():
            for kind, width in ((OBSERVATION, DO), (ACTION, action.size)):
                for place in range(width):
                    wanted = five(picked(batch, kind, place, members))
                    np.testing.assert_allclose(found[kind, place, agent], wanted, rtol=1e-6, atol=1e-9)
        assert len(found) == len(groups) * (DO + action.size + 1) + 2


def test_columns_are_those_of_the_agents_that_have_them() -> None:
    batch, features = uneven_batch()
    found = measures(batch, features, UNEVEN, True)
    assert {key for key in found if key[0] == ACTION} == {(ACTION, f, n) for n, f in np.argwhere(features.actions)}
    pooled = measures(batch, features, UNEVEN, False)
    for place in range(features.obs.shape[1]):
        members = np.flatnonzero(features.obs[:, place]).tolist()
        wanted = five(picked(batch, OBSERVATION, place, members))
        np.testing.assert_allclose(pooled[OBSERVATION, place, ALL], wanted, rtol=1e-6)


def test_the_scales_of_a_model_are_the_figures_of_all_agents() -> None:
    batch, features = uneven_batch()
    whole = measures(batch, features, UNEVEN, False)
    kept = measures_of(fit_normaliser(batch, UNEVEN, features), UNEVEN)
    assert kept.keys() == {key for key in whole if key[0] != EPISODE}
    for key, of_model in kept.items():
        np.testing.assert_allclose(of_model[1:3], whole[key][1:3], rtol=1e-5)
        assert np.isnan(of_model.low) and np.isnan(of_model.high)
    discrete = fit_normaliser(tiny_batch(DISCRETE), DISCRETE, all_real(N, DO, DISCRETE))
    assert {kind for kind, _, _ in measures_of(discrete, DISCRETE)} == {OBSERVATION}


def test_lengths_agents_and_missing_shares_by_hand() -> None:
    rows = [
        # agent 0, agent 1, agent 2 over five steps
        ["11110", "11110", "11110"],  # 4 steps, nobody missing
        ["01100", "01000", "00000"],  # 2 steps from step 1 on; agent 1 misses one of two, agent 2 is no part of it
        ["10101", "11111", "11111"],  # 5 steps, of which agent 0 misses 2
    ]
    mask = np.array([[[flag == "1" for flag in agent] for agent in row] for row in rows]).swapaxes(1, 2)
    batch = TrajectoryBatch(np.zeros((3, 5, 3, 1), np.float32), np.zeros((3, 5, 3), np.int32), mask)
    place = {name: EPISODE_NAMES.index(name) for name in EPISODE_NAMES}
    every = [dict(columns(batch, all_real(3, 1, DISCRETE), DISCRETE, by_agent=by_agent)) for by_agent in (True, False)]
    for found in every:
        assert found[EPISODE, place[LENGTH], ALL].tolist() == [4, 2, 5]
        assert found[EPISODE, place[AGENTS], ALL].tolist() == [3, 2, 3]
    for agent, wanted in enumerate(([0, 0, 0.4], [0, 0.5, 0], [0, 1, 0])):
        np.testing.assert_allclose(every[0][EPISODE, place[MISSING], agent], wanted, atol=1e-12)
    np.testing.assert_allclose(every[1][EPISODE, place[MISSING], ALL], [0, 0.25, 2 / 15], atol=1e-12)


@pytest.mark.parametrize("by_agent", [True, False])
def test_padding_and_what_lies_under_the_mask_change_no_figure(by_agent: bool) -> None:
    batch = tiny_batch(CONTINUOUS)
    widths = [(0, 0), (2, 3), (0, 0), (0, 0)]
    longer = TrajectoryBatch(*(np.pad(field, widths[: field.ndim]) for field in batch))
    longer.obs[~longer.mask] = np.nan
    real = all_real(N, DO, CONTINUOUS)
    short, long = (measures(one, real, CONTINUOUS, by_agent) for one in (batch, longer))
    assert short == long and len(short) >= DO + 2 + 3


def test_a_shift_of_one_agents_feature_is_found_and_nothing_else() -> None:
    training, new = tiny_batch(CONTINUOUS, n_episodes=200), tiny_batch(CONTINUOUS, seed=1, n_episodes=200)
    new.obs[:, :, 1, 2] = 3 * new.obs[:, :, 1, 2] - 5
    new.mask[: 200 // 2, 1, 0] = False
    real = all_real(N, DO, CONTINUOUS)
    known = measures(training, real, CONTINUOUS, True)
    found = {one.key: one for one in differences(known, columns(new, real, CONTINUOUS, True))}
    assert found.keys() == known.keys()
    missing = (EPISODE, EPISODE_NAMES.index(MISSING), 0)
    assert {key for key, one in found.items() if one.reasons} == {(OBSERVATION, 2, 1), missing}
    one, mine = found[OBSERVATION, 2, 1], np.array(picked(new, OBSERVATION, 2, [1]))
    before = np.array(picked(training, OBSERVATION, 2, [1]))
    assert np.isclose(one.mean_difference, (mine.mean() - before.mean()) / before.std(), rtol=1e-6)
    assert np.isclose(one.spread_ratio, mine.std() / before.std(), rtol=1e-6)
    assert np.isclose(one.outside, np.mean([not before.min() <= value <= before.max() for value in mine]))
    assert len(one.reasons) == 3 and found[missing].reasons[0].startswith("always 0 in training")


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([0.0, 2.0], []),
        ([0.24, 2.24], ["outside"]),
        ([0.26, 2.26], ["mean +0.26", "outside"]),
        ([-0.3, 1.7], ["mean -0.30", "outside"]),
        ([0.31, 1.69], ["spread 0.69"]),
        ([0.28, 1.72], []),
        ([-0.4, 2.4], ["outside"]),
        ([-0.42, 2.42], ["spread 1.42", "100.0% outside the training's 0 to 2"]),
        ([0.0, 2.0] * 99 + [0.0, 2.1] * 2, []),
        ([0.0, 2.0] * 96 + [0.0, 2.1] * 2, ["1.0% outside"]),
        ([], []),
    ],
)
def test_bounds(new: list[float], said: list[str]) -> None:
    """Training: 0 and 2, of mean 1 and deviation 1."""
    found = difference(Column(KEY, np.array(new, float)), five([0.0, 2.0]))
    assert len(found.reasons) == len(said), found.reasons
    assert all(words in reason for words, reason in zip(said, found.reasons, strict=True)), found.reasons


def test_a_constant_column_and_one_that_was_never_there() -> None:
    constant = five([7.0, 7.0])
    assert difference(Column(KEY, np.array([7.0])), constant).reasons == ()
    moved = difference(Column(KEY, np.array([7.0, 9.0])), constant)
    assert moved.reasons == ("always 7 in training", "50.0% outside the training's 7 to 7")
    assert np.isnan(moved.mean_difference) and np.isnan(moved.spread_ratio) and moved.outside == 0.5
    absent = Measure(0, np.nan, np.nan, np.nan, np.nan)
    assert difference(Column(KEY, np.array([1.0])), absent).reasons == ("never there in training",)
    assert np.isnan(difference(Column(KEY, np.array([1.0])), absent).outside)


def test_an_agent_that_training_did_not_have_is_left_out() -> None:
    batch = tiny_batch(CONTINUOUS)
    few = TrajectoryBatch(*(field[:, :, :2] for field in batch))
    known = measures(few, all_real(2, DO, CONTINUOUS), CONTINUOUS, True)
    found = differences(known, columns(batch, all_real(N, DO, CONTINUOUS), CONTINUOUS, True))
    assert {one.key[2] for one in found} == {0, 1, ALL}
