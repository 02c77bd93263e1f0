"""What agents see and do, against loops in plain NumPy; causal, in the right frame, the same in any order."""

import math

import numpy as np
import pytest

from data_gen.ingest.clean import clean
from data_gen.ingest.derive import action_names, derive
from data_gen.ingest.frames import bodies_of, nearest, observation_names, observe
from data_gen.ingest.recording import Layout, Recording
from data_gen.ingest.resample import grid_of, resample
from tests.data_gen.ingest.recordings import layout_of, walk

TWO = layout_of(parts=("tail", "nose"))


def seen(
    recording: Recording, layout: Layout, frame: str, heading: tuple[int, int] | None = None, n_seen: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Observations and displacements."""
    track = resample(clean(recording, layout, 0.0), layout, grid_of(recording, layout, 0.0, 0.0))
    bodies = bodies_of(track, frame, heading)
    obs = observe(track, bodies, frame, n_seen)
    assert obs.shape[2] == len(observation_names(layout, frame, n_seen))
    return obs, derive(track.position, bodies, 1.0)


def angle_by_parts(recording: Recording, t: int, n: int) -> float:
    tail, nose = recording.position[t, n].astype(float)
    return math.atan2(nose[1] - tail[1], nose[0] - tail[0])


def turned(vector: np.ndarray, angle: float) -> list[float]:
    """The vector as a complex number, turned back by the angle."""
    z = complex(*vector[:2]) * complex(math.cos(angle), -math.sin(angle))
    return [z.real, z.imag, *vector[2:]]


def by_hand(recording: Recording, t: int, n: int, angle: float | None, n_seen: int) -> list[float]:
    """What agent n sees at t, by loops: its parts, its features, then its mates by distance."""
    place = recording.position.astype(float).mean(2)
    if not recording.present[t, n]:
        return [math.nan] * 9
    rows = []
    for part in recording.position[t, n].astype(float):
        rows += turned(part - place[t, n], angle) if angle is not None else list(part - place[t, n])
    rows += recording.features[t, n].tolist()
    mates = [place[t, m] - place[t, n] for m in range(place.shape[1]) if m != n and recording.present[t, m]]
    mates = sorted(mates, key=lambda way: math.hypot(*way))[:n_seen]
    for mate in mates:
        rows += [1.0, *(turned(mate, angle) if angle is not None else mate)]
    return rows + [0.0] * 3 * (n_seen - len(mates))


@pytest.mark.parametrize("frame", ["egocentric", "teammates"])
@pytest.mark.parametrize("n_seen", [1, 3, 4])
def test_what_an_agent_sees_by_loops(frame: str, n_seen: int):
    recording = walk(TWO, frames=9, n_agents=4)
    recording.present[:] = np.random.default_rng(1).random((9, 4)) > 0.25
    obs, acts = seen(recording, TWO, frame, (0, 1), n_seen)
    for t in range(9):
        for n in range(4):
            angle = angle_by_parts(recording, t, n) if frame == "egocentric" else None
            want = np.array(by_hand(recording, t, n, angle, n_seen))
            if not recording.present[t, n]:
                assert np.isnan(obs[t, n]).all() and np.isnan(acts[t, n]).all()
                continue
            np.testing.assert_allclose(obs[t, n], want, atol=1e-5)
            if t == 8 or not recording.present[t + 1, n]:
                assert np.isnan(acts[t, n]).all()
                continue
            ways = recording.position[t + 1, n].astype(float) - recording.position[t, n]
            ways = [turned(way, angle) for way in ways] if angle is not None else ways
            np.testing.assert_allclose(acts[t, n], np.ravel(ways), atol=1e-5)


def test_the_world_is_seen_as_it_is():
    recording = walk(TWO, lost=0.2)
    obs, acts = seen(recording, TWO, "world")
    both = np.concatenate([recording.position.reshape(12, 3, 4), recording.features], axis=2)
    np.testing.assert_array_equal(obs, np.where(recording.present[..., None], both, np.nan))
    there = np.isfinite(recording.position).all((2, 3)) & recording.present
    for t, n in np.ndindex(12, 3):
        both = t < 11 and there[t, n] and there[t + 1, n]
        want = (recording.position[t + 1, n] - recording.position[t, n]).ravel() if both else [np.nan] * 4
        np.testing.assert_allclose(acts[t, n], want, atol=1e-6)
    assert observation_names(TWO, "world", 2) == ("tail x", "tail y", "nose x", "nose y", "pulse")
    assert action_names(layout_of(), "egocentric") == ("ahead", "left")
    assert observation_names(layout_of(), "egocentric", 1) == ("pulse", "mate 0 there", "mate 0 ahead", "mate 0 left")


def test_the_heading_is_the_way_gone_and_held_at_rest():
    layout = layout_of(features=())
    path = np.array([[0, 0], [0, 0], [0, 2], [0, 2], [3, 2], [9, 9], [1, 1], [1, 0], [1, 0]], np.float32)
    recording = walk(layout, frames=9, n_agents=2)
    recording.position[:, 0, 0], recording.position[:, 1, 0] = path, path + [5, 0]
    recording.present[5, 0] = False
    obs, acts = seen(recording, layout, "egocentric", n_seen=1)
    # Not known before the first move, nor when the agent has just come back; then the last way, held at rest.
    np.testing.assert_array_equal(
        np.isnan(obs[:, 0]).any(1), [True, True, False, False, False, True, True, False, False]
    )
    mate = {2: (0, -5), 3: (0, -5), 4: (5, 0), 7: (0, 5), 8: (0, 5)}  # 5 to the east, heading north, north, east, south
    for t, place in mate.items():
        np.testing.assert_allclose(obs[t, 0], [1, *place], atol=1e-6)
    np.testing.assert_allclose(acts[2, 0], [0, 0], atol=1e-6)
    np.testing.assert_allclose(acts[3, 0], [0, -3], atol=1e-6)
    np.testing.assert_allclose(acts[7, 0], [0, 0], atol=1e-6)
    assert np.isnan(acts[[0, 1, 4, 5, 6, 8], 0]).all()


def test_parts_that_lie_on_each_other_hold_the_heading():
    recording = walk(TWO, frames=5, n_agents=2)
    recording.position[2, 0, 1] = recording.position[2, 0, 0]
    recording.position[0, 1, 1] = recording.position[0, 1, 0]
    obs, _ = seen(recording, TWO, "egocentric", (0, 1), 1)
    assert np.isnan(obs[0, 1]).all() and np.isfinite(obs[1:, 1]).all()
    place = recording.position.astype(float).mean(2)
    want = turned(place[2, 1] - place[2, 0], angle_by_parts(recording, 1, 0))
    np.testing.assert_allclose(obs[2, 0, -2:], want, atol=1e-5)


@pytest.mark.parametrize("frame", ["world", "egocentric", "teammates"])
@pytest.mark.parametrize("heading", [None, (0, 1)])
def test_nothing_later_is_seen_and_actions_look_one_step_ahead(frame: str, heading: tuple[int, int] | None):
    recording = walk(TWO, frames=10, lost=0.05)
    for t in range(1, 9):
        later = recording._replace(position=recording.position.copy(), features=recording.features.copy())
        later.position[t + 1 :] += 7 * np.random.default_rng(t).normal(size=later.position[t + 1 :].shape)
        later.features[t + 1 :] += 3
        (obs, acts), (other_obs, other_acts) = (seen(one, TWO, frame, heading) for one in (recording, later))
        np.testing.assert_array_equal(obs[: t + 1], other_obs[: t + 1])
        np.testing.assert_array_equal(acts[:t], other_acts[:t])
        changed = (acts[t] != other_acts[t]) & np.isfinite(acts[t])
        assert changed.all(1)[np.isfinite(acts[t]).all(1)].all()


def test_equally_far_mates_come_in_an_order_of_their_own():
    way = np.array([[[1, 0], [0, 1], [-1, 0], [0, -1], [np.nan, 0], [0, 0.5]]], float)
    want = [[0, 0.5], [-1, 0], [0, -1], [0, 1], [1, 0], [0, 0], [0, 0]]
    for order in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 4, 1, 5, 3]):
        mates, there = nearest(way[:, order], 7)
        np.testing.assert_array_equal(mates[0], want)
        np.testing.assert_array_equal(there[0], [True] * 5 + [False] * 2)
        np.testing.assert_array_equal(nearest(way[:, order], 2)[0][0], want[:2])


def test_a_third_axis_stays_up():
    layout = layout_of(axes=("x", "y", "z"), features=())
    recording = walk(layout, frames=6, n_agents=2)
    obs, acts = seen(recording, layout, "egocentric", n_seen=1)
    place = recording.position[:, :, 0].astype(float)
    for t in range(1, 6):
        way = place[t, 0] - place[t - 1, 0]
        want = turned(place[t, 1] - place[t, 0], math.atan2(way[1], way[0]))
        np.testing.assert_allclose(obs[t, 0], [1, *want], atol=1e-5)
        if t < 5:
            np.testing.assert_allclose(acts[t, 0, 2], place[t + 1, 0, 2] - place[t, 0, 2], atol=1e-6)
