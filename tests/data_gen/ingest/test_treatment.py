"""Recordings to episodes: by hand where it is short, and by what must not matter where it is not."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_gen.ingest.episodes import Episode
from data_gen.ingest.treatment import Treatment, episodes_of, outline
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.ingest.recordings import layout_of, walk
from tests.data_gen.ingest.treated import FRAMES, LABELS, TWO, N, dirty, labels_for, treated, with_agents

PROPERTY = settings(derandomize=True, database=None, deadline=None, max_examples=12)


def same(a: list[Episode], b: list[Episode], order: list[int] | None = None, atol: float = 0.0, n: int = N) -> None:
    """Episodes are alike, the agents of `b` taken in this order and the first n of either alone."""
    assert len(a) == len(b) > 0
    slots = order or list(range(n))
    for one, other in zip(a, b, strict=True):
        width = min(one.obs.shape[2], other.obs.shape[2])
        assert one.t0 == other.t0
        np.testing.assert_array_equal(one.mask[:, :n], other.mask[:, slots])
        np.testing.assert_allclose(one.obs[:, :n, :width], other.obs[:, slots, :width], atol=atol)
        for name in ("actions", "rewards"):
            np.testing.assert_allclose(getattr(one, name)[:, :n], getattr(other, name)[:, slots], atol=atol)
        for name in ("weight", "near"):
            np.testing.assert_array_equal(one.labels[name][:n], other.labels[name][slots])
        for name in ("site", "phase", "team_return"):
            np.testing.assert_allclose(one.labels[name], other.labels[name], rtol=1e-5)


FRAME = st.sampled_from(["world", "egocentric", "teammates"])
HEADING = st.sampled_from([[], ["tail", "nose"]])


@PROPERTY
@given(st.integers(0, 99), FRAME, HEADING, st.sampled_from([0, 5]), st.integers(1, 4))
def test_room_for_more_agents_changes_nothing(seed: int, frame: str, heading: list[str], window: int, more: int):
    how = {"frame": frame, "heading": heading, "window": window, "gap": 0.1, "speed": 60.0}
    recording = dirty(seed)
    plain, wide = treated(recording, TWO, N, **how), treated(recording, TWO, N + more, **how)
    same(plain, wide)
    for one in wide:
        assert not one.mask[:, N:].any() and np.isnan(one.labels["weight"][N:]).all()
        assert (one.labels["near"][N:] == -1).all() and not one.obs[:, :, plain[0].obs.shape[2] :].any()
    # As many neighbours, as many columns: what one model reads from either is the same.
    few = [treated(recording, TWO, n, **how, neighbours=1) for n in (N, N + more)]
    assert few[0][0].obs.shape[2] == few[1][0].obs.shape[2]
    same(few[0], few[1])
    # Nor does an agent that is never there.
    gone = with_agents(recording, [0, 1, 2, 2])._replace(agents=(*recording.agents, "never"))
    gone.present[:, 3] = False
    same(plain, treated(gone, TWO, N + more, **how))


@PROPERTY
@given(st.integers(0, 99), FRAME, HEADING, st.permutations(range(N)), st.sampled_from([0, 5]))
def test_the_order_of_agents_in_the_file_permutes_or_changes_nothing(
    seed: int, frame: str, heading: list[str], order: list[int], window: int
):
    recording = dirty(seed, lost=0.05)
    how = {"frame": frame, "heading": heading, "window": window, "gap": 0.1}
    moved = with_agents(recording, order)
    # all three agents are there in every window, or slots would close up
    if all(one.mask.any(0).all() for one in treated(recording, TWO, N, **how, permute=False)):
        plain, other = (treated(one, TWO, N, **how, permute=False) for one in (recording, moved))
        same([_permuted(one, order) for one in plain], other, atol=1e-6)
    same(treated(recording, TWO, N, **how), treated(moved, TWO, N, **how), atol=1e-6)


def _permuted(one: Episode, order: list[int]) -> Episode:
    fields = {name: getattr(one, name)[:, order] for name in ("obs", "actions", "mask", "rewards")}
    labels = one.labels | {name: one.labels[name][order] for name in ("weight", "near")}
    return one._replace(**fields, labels=labels)


@PROPERTY
@given(st.integers(0, 99), HEADING, st.integers(-9, 9), st.floats(-np.pi, np.pi))
def test_place_and_direction_do_not_matter_where_they_must_not(seed: int, heading: list[str], away: int, angle: float):
    recording = dirty(seed, lost=0.02)
    moved = recording._replace(position=recording.position + np.array([away, 2 * away], np.float32))
    for frame in ("egocentric", "teammates"):
        how = {"frame": frame, "heading": heading, "window": 6}
        same(treated(recording, TWO, N, **how), treated(moved, TWO, N, **how), atol=1e-3)
    spin = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = recording._replace(position=(recording.position.astype(float) @ spin).astype(np.float32))
    how = {"frame": "egocentric", "heading": heading, "window": 6}
    same(treated(recording, TWO, N, **how), treated(turned, TWO, N, **how), atol=1e-3)


@PROPERTY
@given(st.integers(0, 99), st.integers(1, 8), st.integers(1, 8), st.floats(0, 0.6))
def test_windows_are_the_steps_they_say(seed: int, window: int, stride: int, lost: float):
    recording = dirty(seed, lost=lost)
    how = {"least": 1, "permute": False, "action": "displacement"}
    agents = recording._replace(agents=("a", "b", "c"))
    roles = TWO._replace(agents=agents.agents)
    whole = treated(agents, roles, N, **how)
    cut = treated(agents, roles, N, **how, window=window, stride=stride)
    times = np.zeros(FRAMES, int)
    for one in cut:
        here = slice(one.t0, one.t0 + len(one.mask))
        times[here] += 1
        for name in ("obs", "actions", "mask", "rewards"):
            np.testing.assert_array_equal(getattr(one, name), getattr(whole[0], name)[here])
    real = whole[0].mask.any(1) if whole else np.zeros(FRAMES, bool)
    if stride <= window:
        assert (times[real] > 0).all()
    if stride >= window:
        assert times.max(initial=0) <= 1
    assert all(one.mask.any() for one in cut)


def test_an_episode_by_hand():
    layout = layout_of(features=(), action=ActionSpec("discrete", 4), labels=LABELS[:1])
    recording = walk(layout, frames=7, n_agents=2, labels={"site": np.array(1, np.int32)})
    recording.present[2, 1] = False
    recording.actions[3, 0] = -1
    first, last = treated(recording, layout, 3, window=4, permute=False)
    assert (first.t0, last.t0, len(first.mask), len(last.mask)) == (0, 4, 4, 3)
    want = np.ones((7, 3), bool)
    want[2, 1] = want[3, 0] = False
    want[:, 2] = False
    np.testing.assert_array_equal(np.concatenate([first.mask, last.mask]), want)
    place = np.where(want[:, :2, None], recording.position[:, :, 0], 0)
    np.testing.assert_array_equal(np.concatenate([first.obs, last.obs])[:, :2], place)
    acts = np.where(want[:, :2], recording.actions, 0)
    np.testing.assert_array_equal(np.concatenate([first.actions, last.actions])[:, :2], acts)
    assert first.truncated.tolist() == [False] * 3 + [True] and not first.terminated.any()
    assert last.terminated.tolist() == [False, False, True] and not last.truncated.any()
    assert first.labels["site"] == 1 and first.obs.dtype == np.float32 and first.actions.dtype == np.int32
    rewards = recording.rewards.astype(float)
    team = [rewards[t].mean() if t != 2 else rewards[t, 0] for t in range(7)]
    np.testing.assert_allclose(first.labels["team_return"], sum(team[:4]), rtol=1e-6)
    np.testing.assert_allclose(last.labels["team_return"], sum(team[4:]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_labels_of_a_window_by_hand(seed: int):
    roles = TWO._replace(agents=("a", "b", "c"))
    recording = dirty(seed, roles, lost=0.15)
    truth = recording.labels

    def commonest(codes: list[int], n: int) -> int:
        known = Counter(code for code in codes if code >= 0)
        return max(known, key=lambda code: (known[code], -code)) if known and 2 * known.total() >= n else -1

    for one in treated(recording, roles, N + 1, window=5, least=1, gap=0.2):
        here = range(one.t0, one.t0 + len(one.mask))
        assert one.labels["phase"] == commonest([truth["phase"][t] for t in here], len(here))
        near = [[truth["near"][t, n] for t in here if one.mask[t - one.t0, n]] for n in range(N)]
        assert one.labels["near"].tolist() == [*(commonest(codes, len(codes)) for codes in near), -1]
        np.testing.assert_array_equal(one.labels["weight"], [*truth["weight"], np.nan])
        assert one.labels["site"] == seed % 2


def test_velocity_is_displacement_by_the_rate():
    recording = dirty(0, lost=0)
    by_step, by_second = (treated(recording, TWO, N, action=name)[0] for name in ("displacement", "velocity"))
    np.testing.assert_allclose(by_second.actions, 10 * by_step.actions, rtol=1e-5)
    slots = [by_step.labels["weight"].tolist().index(weight) for weight in recording.labels["weight"]]
    way = np.diff(recording.position.reshape(FRAMES, N, 4), axis=0)
    np.testing.assert_allclose(by_step.actions[:-1, slots], way, atol=1e-5)
    assert not by_step.mask[-1].any() and by_step.mask[:-1].all()
    at_five = treated(recording, TWO, N, action="velocity", rate=5.0)[0]
    slots = [at_five.labels["weight"].tolist().index(weight) for weight in recording.labels["weight"]]
    coarse = np.diff(recording.position[::2].reshape(7, N, 4), axis=0) * 5
    np.testing.assert_allclose(at_five.actions[:-1, slots], coarse, atol=1e-5)


def test_rewards_that_are_not_known_leave_the_return_unknown():
    recording = dirty(0, lost=0)
    recording.rewards[2, 1], recording.rewards[9, 0] = np.nan, np.inf
    made, lines = episodes_of(recording, TWO, Treatment(window=5), N)
    assert [bool(np.isnan(one.labels["team_return"])) for one in made] == [True, True, False]
    assert all(np.isfinite(one.rewards).all() for one in made)
    assert "walk 0 (walk0.csv): 2 reward(s) are not known, nor is the return there" in lines


def test_all_that_was_done_is_said():
    layout = layout_of(parts=("body",), features=("pulse",), rate=10.0)
    recording = walk(layout, frames=20, n_agents=2)
    recording.position[:] = np.cumsum(np.full((20, 2, 1, 2), 0.1), axis=0)
    recording.position[12:, 0] += 50
    recording.features[4, 1] = np.nan
    recording.present[15:, 1] = False
    how = Treatment(frame="egocentric", gap=0.1, speed=5.0, window=4, stride=6, least=3)
    made, lines = episodes_of(recording, layout, how, 2)
    where = "walk 0 (walk0.csv): "
    assert [line.removeprefix(where) for line in lines] == [
        "1 value(s) of agents that are there are missing: 'pulse' 1",
        "1 step(s) of an agent faster than 5, the first to time 1.2 by agent 'id9'; the agent is masked on both sides",
        "1 step(s) of an agent filled across gaps of up to 0.1",
        # heading: first steps of both and agent 0 after its teleport; action: before the teleport, at each one's end
        "8 of 35 steps of agents that are there masked: 3 where the heading is not known, 3 where the action is not "
        "known (no place at the next step), 2 where a value is missing",
        "1 of 4 window(s) dropped, the first from step 18: an agent is there in fewer than 3 steps",
        "6 of 20 steps lie between the windows and are left out",
    ]
    assert [one.t0 for one in made] == [0, 6, 12]


def test_a_recording_in_which_nobody_is_there_makes_no_episode():
    recording = dirty(0)
    recording.present[:] = False
    made, lines = episodes_of(recording, TWO, Treatment(), N)
    assert made == [] and "1 of 1 window(s) dropped" in lines[-1]
    one_frame = walk(TWO, frames=1, labels=labels_for(0, 1))
    assert episodes_of(one_frame, TWO, Treatment(), N)[0] == []


def test_features_alone_need_no_places():
    layout = layout_of(parts=(), axes=(), features=("a", "b"), action=ActionSpec("continuous", 2), rate=0.0)
    recording = walk(layout, lost=0.1)
    one = treated(recording, layout, N, permute=False)[0]
    np.testing.assert_array_equal(one.mask, recording.present & np.isfinite(recording.features).all(-1))
    np.testing.assert_array_equal(one.obs, np.where(one.mask[..., None], recording.features, 0))
    assert outline(layout, Treatment(), N, False).position == ()


def test_an_agent_alone_with_nothing_to_observe():
    layout = layout_of(features=())
    with pytest.raises(InputError, match="frame=teammates there is nothing to observe for 1 agent"):
        outline(layout, Treatment(frame="teammates"), 1, False)
    # A recording of one among others of more has as many steps, however many agents the others have.
    recording = walk(layout, n_agents=1)
    recording.present[5] = False
    alone, others = (episodes_of(recording, layout, Treatment(frame="egocentric"), n)[0] for n in (1, 3))
    np.testing.assert_array_equal(alone[0].mask[:, 0], others[0].mask[:, 0])
    # Not the first, the heading being unknown, nor the one before the gap, in it, or just after it, nor the last.
    assert np.flatnonzero(alone[0].mask[:, 0]).tolist() == [1, 2, 3, 7, 8, 9, 10] and alone[0].obs.shape[2] == 0
    acting = layout_of(features=(), action=ActionSpec("discrete", 4))
    recording = walk(acting, n_agents=1)
    recording.position[3] = np.nan
    for n in (1, 3):
        made = episodes_of(recording, acting, Treatment(frame="teammates"), n)[0]
        assert np.flatnonzero(~made[0].mask[:, 0]).tolist() == [3]
