"""Data of more or fewer agents than a model was trained on, and data that it cannot read."""

from collections.abc import Sequence

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, Dataset, FeatureMask, InputError, TrajectoryBatch, all_real
from marl_vae.applying import check_order, embed_new, fitted
from marl_vae.embed import TrainedModel
from tests.builders import DO, N, tiny_batch, uneven_batch
from tests.data_gen.test_dataset import tiny_shard
from tests.marl_vae.test_model import ACTIONS, make

ACTION = ACTIONS["continuous"]
BLIND = {"team": "pool", "agent_index": False}


def of_agents(batch: TrajectoryBatch, agents: Sequence[int]) -> TrajectoryBatch:
    return TrajectoryBatch(*(np.asarray(field)[:, :, list(agents)] for field in batch))


def data(batch: TrajectoryBatch, action: ActionSpec = ACTION, features: FeatureMask | None = None) -> Dataset:
    """A data set of which a model reads nothing but these."""
    mask = all_real(batch.obs.shape[2], batch.obs.shape[3], action) if features is None else features
    rest, split = tiny_shard(0), np.zeros(len(batch.mask), np.int32)
    return Dataset(batch, mask, rest.rows, rest.outcomes, rest.labels, rest.hand, split, action, {})


def trained(action: ActionSpec = ACTION, **choices) -> tuple[TrainedModel, TrajectoryBatch]:
    model, scale, batch = make(action, **choices)
    return TrainedModel(model, scale, "a model"), batch


@pytest.mark.parametrize("choices", [{}, pytest.param(BLIND, marks=pytest.mark.slow)], ids=["told apart", "blind"])
def test_fewer_agents_are_agents_that_are_absent(choices: dict) -> None:
    model, batch = trained(**choices)
    absent = batch._replace(mask=batch.mask & (np.arange(N) < 2))
    wanted = model.embed(absent)
    few = data(of_agents(batch, [0, 1]))
    found = embed_new(fitted(model, few, "few"), few.batch)
    np.testing.assert_array_equal(found.omega_mean, wanted.omega_mean)
    np.testing.assert_array_equal(found.alpha_mean, wanted.alpha_mean[:, :2])
    np.testing.assert_array_equal(found.alpha_std, wanted.alpha_std[:, :2])
    assert np.abs(wanted.omega_mean - model.embed(batch).omega_mean).max() > 1e-3


def test_a_blind_model_takes_more_agents_and_a_team_twice_over_is_the_same_team() -> None:
    model, batch = trained(**BLIND)
    before = model.embed(batch)
    for order in ([0, 1, 2, 0, 1, 2], [2, 2, 1, 0, 1, 0]):
        double = data(of_agents(batch, order))
        found = embed_new(fitted(model, double, "many"), double.batch)
        np.testing.assert_allclose(found.omega_mean, before.omega_mean, atol=1e-5)
        np.testing.assert_allclose(found.alpha_mean, before.alpha_mean[:, order], atol=1e-5)
    more = data(of_agents(batch, [0, 1, 2, 2]))
    changed = embed_new(fitted(model, more, "more"), more.batch)
    assert np.abs(changed.omega_mean - before.omega_mean).max() > 1e-3


@pytest.mark.parametrize("choices", [{}, {"team": "pool"}, {"agent_index": False}])
def test_a_model_that_tells_agents_apart_takes_no_more(choices: dict) -> None:
    model, batch = trained(**choices)
    with pytest.raises(InputError, match="here has 4 agents, and the model tells 3 apart.*model.team=pool"):
        fitted(model, data(of_agents(batch, [0, 1, 2, 2])), "here")
    with pytest.raises(InputError, match="a model tells its 3 agents apart"):
        model.for_agents(4)


def test_agents_with_features_of_their_own_are_told_apart() -> None:
    _, features = uneven_batch()
    model, _ = trained(**BLIND)
    assert model.exchangeable
    real = {"obs_real": features.obs[:, :DO], "action_real": features.actions[:, :2]}
    scale = model.scale._replace(**{name: value.astype(np.float32) for name, value in real.items()})
    assert not TrainedModel(model._model, scale, "uneven").exchangeable


def test_other_features_or_actions_are_refused_by_name() -> None:
    model, batch = trained()
    fitted(model, data(batch), "the same")
    with pytest.raises(InputError, match="here has 3 observation features, and the model was trained on 4"):
        fitted(model, data(batch._replace(obs=batch.obs[..., :3])), "here")
    discrete = tiny_batch(ACTIONS["discrete"])
    with pytest.raises(InputError, match="discrete actions of 5 choices.* trained on continuous actions of 2 dim"):
        fitted(model, data(discrete, ACTIONS["discrete"]), "here")
    lacking = all_real(N, DO, ACTION)
    lacking.obs[1, 3] = False
    with pytest.raises(InputError, match="here: agent 1 lacks observation 3, and had one in the training data"):
        fitted(model, data(batch, features=lacking), "here")
    narrow = TrainedModel(model._model, model.scale._replace(obs_real=lacking.obs.astype(np.float32)), "narrow")
    with pytest.raises(InputError, match="here: agent 1 has observation 3, and had none"):
        fitted(narrow, data(batch), "here")
    fitted(narrow, data(of_agents(batch, [0])), "the first agent has all")


def test_names_in_another_order_are_refused_and_other_names_are_not() -> None:
    check_order("feature", ["x", "y"], ["x", "y"], "here")
    check_order("feature", ["x", "y"], ["x", "vy"], "here")
    check_order("feature", [], ["y", "x"], "here")
    check_order("feature", ["x", "x"], ["x", "x", "y"], "here")
    with pytest.raises(InputError, match=r"the feature 'y' is number 0 \(from 0\), and was number 1 .* order x, y"):
        check_order("feature", ["x", "y"], ["y", "x"], "here")
    with pytest.raises(InputError, match="the feature 'x' is number 1"):
        check_order("feature", ["x", "y"], ["speed", "x"], "here")
