"""Spaces as columns, against Gymnasium's own flattening and Minari's own JSON."""

import json

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten
from hypothesis import given, settings
from hypothesis import strategies as st
from minari.serialization import serialize_space

from data_gen.spaces import choice, column_names, columns, space_of, space_of_json
from data_gen.team import acts, feature_mask, observes, team_of
from data_gen.trajectory import ActionSpec, InputError

SIZES = st.integers(1, 3)
LEAVES = st.one_of(
    st.lists(SIZES, max_size=2).map(lambda shape: spaces.Box(-2, 2, tuple(shape))),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), SIZES, st.integers(-2, 2)),
    st.lists(SIZES, min_size=1, max_size=3).map(spaces.MultiBinary),
    st.lists(SIZES, min_size=1, max_size=3).map(lambda n: spaces.MultiDiscrete(n, start=np.arange(len(n)))),
)
SPACES = st.recursive(
    LEAVES,
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2).map(spaces.Dict)
        | st.lists(inner, min_size=1, max_size=2).map(spaces.Tuple)
    ),
    max_leaves=4,
)


@settings(deadline=None, max_examples=60)
@given(SPACES, st.integers(0, 99))
def test_columns_are_those_of_gymnasium(space, seed):
    space.seed(seed)
    own, value = space_of(space, "it"), space.sample()
    np.testing.assert_array_equal(columns(own, value, (), "it"), np.float32(flatten(space, value)))
    assert len(column_names(own)) == flatdim(space)
    assert space_of_json(json.loads(serialize_space(space)), "it") == own


def test_leading_axes_are_kept():
    space = space_of(spaces.Dict({"k": spaces.Discrete(3, start=1), "x": spaces.Box(-2, 2, (2, 2))}), "it")
    x = np.arange(5 * 4.0).reshape(5, 2, 2)
    found = columns(space, {"k": [1, 2, 3, 1, 1], "x": x}, (5,), "it")
    np.testing.assert_array_equal(found[:, :3], np.eye(3)[[0, 1, 2, 0, 0]])
    np.testing.assert_array_equal(found[:, 3:], x.reshape(5, 4))
    assert column_names(space) == ("k_0", "k_1", "k_2", "x_0", "x_1", "x_2", "x_3")


@pytest.mark.parametrize("value", [0, 4, 1.5, np.nan])
def test_what_is_no_choice_is_refused(value):
    with pytest.raises(InputError, match=f"it is {value}; by its space it is one of 1..3"):
        choice(space_of(spaces.Discrete(3, start=1), "it"), value, (), "it")


def test_a_team_shares_columns_by_name():
    seen = {
        "a": spaces.Dict({"x": spaces.Box(-1, 1, (2,))}),
        "b": spaces.Dict({"x": spaces.Box(-1, 1, (1,)), "y": spaces.Box(-1, 1, ())}),
    }
    done = {"a": spaces.Box(-1, 1, (1,)), "b": spaces.Box(-1, 1, (2,))}
    team = team_of(*({agent: space_of(one, agent) for agent, one in each.items()} for each in (seen, done)), "it")
    assert team.obs_names == ("x_0", "x_1", "y") and team.action == ActionSpec("continuous", 2)
    assert feature_mask(team).obs.tolist() == [[True, True, False], [True, False, True]]
    assert feature_mask(team).actions.tolist() == [[True, False], [True, True]]
    assert observes(team, "b", {"x": [0.5], "y": 2}, (), "it").tolist() == [0.5, 0, 2]
    assert acts(team, "a", [0.25], (), "it").tolist() == [0.25, 0]


def test_two_parts_of_one_name_are_refused():
    space = space_of(spaces.Dict({"x": spaces.Box(-1, 1, (2,)), "x_0": spaces.Box(-1, 1, ())}), "it")
    with pytest.raises(InputError, match="observation of a: two parts are both named 'x_0'"):
        team_of({"a": space}, {"a": space_of(spaces.Discrete(2), "it")}, "it")
