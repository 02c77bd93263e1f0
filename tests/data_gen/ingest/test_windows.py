"""Windows hold the steps they say; labels of their steps against collections.Counter; slots give nothing away."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_gen.ingest.order import put, slots_in
from data_gen.ingest.recording import LabelColumn
from data_gen.ingest.windows import spans, summary
from data_gen.trajectory import InputError
from tests.data_gen.ingest.recordings import layout_of, take_agents, walk

KIND = LabelColumn("kind", "frame", "class", ("a", "b", "c"))
LEVEL = LabelColumn("level", "frame", "real")


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(st.integers(1, 60), st.integers(0, 25), st.integers(0, 30))
def test_windows_cover_the_recording_and_overlap_only_where_asked(n_steps: int, window: int, stride: int):
    found = spans(n_steps, window, stride)
    size, move = window or n_steps, stride or window or n_steps
    assert [a for a, _ in found] == [k * move for k in range(len(found))]
    assert all(b == min(a + size, n_steps) for a, b in found)
    counts = np.zeros(n_steps, int)
    for a, b in found:
        counts[a:b] += 1
    if move <= size:
        assert counts.min() == 1
    if move >= size:
        assert counts.max() == 1
        for t in range(n_steps):  # only what lies between windows is left out
            assert counts[t] == (t % move < size)
    assert len(found) == 1 or found[-1][1] > found[-2][1]


def test_windows_by_hand():
    assert spans(10, 4, 0) == [(0, 4), (4, 8), (8, 10)]
    assert spans(10, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert spans(10, 4, 3) == [(0, 4), (3, 7), (6, 10)]
    assert spans(10, 3, 5) == [(0, 3), (5, 8)]
    assert spans(4, 9, 2) == spans(4, 0, 0) == [(0, 4)]


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(st.lists(st.integers(-1, 2), min_size=1, max_size=9), st.integers(0, 2**9 - 1))
def test_a_windows_class_is_the_commonest_where_half_is_known(values: list[int], bits: int):
    here = np.array([bool(bits >> k & 1) for k in range(len(values))])
    known = [value for value, one in zip(values, here, strict=True) if one and value >= 0]
    counts = Counter(known)
    want = max(counts, key=lambda code: (counts[code], -code)) if known and 2 * len(known) >= here.sum() else -1
    assert summary(np.array(values), here, KIND) == want
    level = np.where(np.array(values) < 0, np.nan, np.array(values) / 4)
    found = summary(level, here, LEVEL)
    np.testing.assert_allclose(found, np.mean(known) / 4 if want >= 0 else np.nan, rtol=1e-6)


def test_labels_of_each_agent_are_summed_up_apart():
    values = np.array([[0, 2], [0, 2], [1, -1], [-1, -1]])
    here = np.array([[True, True], [True, True], [True, True], [False, True]])
    assert summary(values, here, KIND).tolist() == [0, 2]
    assert summary(values, here & [[True, False]] * 4, KIND).tolist() == [0, -1]
    np.testing.assert_allclose(summary(values / 1.0, here, LEVEL), [1 / 3, 0.5], rtol=1e-6)


def test_the_order_of_agents_is_drawn_and_the_files_order_says_nothing():
    layout = layout_of()
    recording, n, everyone = walk(layout, n_agents=4), 4, np.ones(4, bool)
    turned = take_agents(recording, [2, 0, 3, 1])
    first, by_name = [], {}
    for t0 in range(600):
        slots = slots_in(recording, layout, everyone, 6, 3, t0)
        assert sorted(slots.tolist()) == list(range(n))
        by_name = dict(zip(recording.agents, slots.tolist(), strict=True))
        other = slots_in(turned, layout, everyone, 6, 3, t0)
        assert dict(zip(turned.agents, other.tolist(), strict=True)) == by_name
        first.append(by_name["id9"])
    # chi-squared with 3 degrees of freedom is below 16.3 in 999 of 1000 draws
    counts = np.bincount(first, minlength=n)
    assert ((counts - 150) ** 2 / 150).sum() < 16.3
    assert (
        slots_in(recording, layout, everyone, 6, 4, 0).tolist()
        != slots_in(recording, layout, everyone, 6, 5, 0).tolist()
    )
    assert slots_in(recording, layout, everyone, 6, None, 0).tolist() == [0, 1, 2, 3]


def test_agents_who_are_not_in_a_window_take_no_slot():
    layout = layout_of()
    recording = walk(layout, n_agents=5)
    real = np.array([False, True, True, False, True])
    assert slots_in(recording, layout, real, 3, None, 0).tolist() == [-1, 0, 1, -1, 2]
    with pytest.raises(
        InputError, match="walk0.csv: recording 'walk 0' has 3 agents in the window from step 7, more than the 2"
    ):
        slots_in(recording, layout, real, 2, None, 7)


def test_roles_have_their_own_slots():
    layout = layout_of(agents=("keeper", "left", "right"))
    recording = take_agents(walk(layout), [2, 0])
    assert slots_in(recording, layout, np.array([False, True]), 4, 3, 5).tolist() == [2, 0]
    values = np.arange(8).reshape(2, 2, 2) + 1
    want = np.zeros((2, 4, 2), int)
    want[:, 2], want[:, 0] = values[:, 0], values[:, 1]
    np.testing.assert_array_equal(put(values, np.array([2, 0]), 4), want)
    with pytest.raises(InputError, match="has an agent 'referee', which is none of the roles keeper, left, right"):
        slots_in(recording._replace(agents=("referee", "left")), layout, np.ones(2, bool), 3, 0, 0)
