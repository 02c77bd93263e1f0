"""Teleports are flagged and masked on both sides; what is missing is counted; what cannot be used is refused."""

import numpy as np
import pytest

from data_gen.ingest.clean import check_recording, clean, column_names
from data_gen.ingest.derive import derive
from data_gen.ingest.frames import bodies_of
from data_gen.ingest.resample import grid_of, resample
from data_gen.trajectory import InputError
from tests.data_gen.ingest.recordings import layout_of, walk

ONE = layout_of(features=())


def slow_walk(frames: int = 12, n_agents: int = 2):
    """0.1 along x a frame, or 1 a second."""
    recording = walk(ONE, frames=frames, n_agents=n_agents)
    recording.position[:] = 0
    recording.position[..., 0] = 0.1 * np.arange(frames)[:, None, None]
    return recording


def test_both_sides_of_a_teleport_are_masked_and_nothing_is_filled_across_it():
    recording = slow_walk()
    recording.position[5:, 1, 0, 1] += 3
    cleaned = clean(recording, ONE, 2.0)
    lost = np.isnan(cleaned.recording.position).all((2, 3))
    assert np.argwhere(lost).tolist() == [[4, 1], [5, 1]]
    assert cleaned.lines == (
        "1 step(s) of an agent faster than 2, the first to time 0.5 by agent 'id8'; the agent is masked on both sides",
    )
    track = resample(cleaned, ONE, grid_of(recording, ONE, 0.0, 5.0))
    assert np.isnan(track.position[4:6, 1]).all() and np.isfinite(track.position[6:]).all()
    assert not track.filled.any()
    assert clean(recording, ONE, 0.0).lines == () and clean(recording, ONE, 31.0).lines == ()


def test_a_way_over_missing_frames_counts_by_its_time():
    recording = slow_walk()
    recording.position[6:, 0, 0, 0] += 1.0
    recording.present[3:6, 0] = False
    assert clean(recording, ONE, 4.0).lines == ()  # 1.4 in 0.4 s
    assert "1 step(s)" in clean(recording, ONE, 3.4).lines[0]


def test_a_teleport_between_two_steps_of_a_coarse_rate_gives_no_action():
    recording = slow_walk(frames=21)
    recording.position[13:, 0, 0, 1] += 3
    track = resample(clean(recording, ONE, 2.0), ONE, grid_of(recording, ONE, 2.0, 0.0))
    acts = derive(track.position, bodies_of(track, "world", None), 1.0)
    assert np.isfinite(track.position).all()
    np.testing.assert_array_equal(
        np.isnan(acts).any(2), [[False] * 2, [False] * 2, [True, False], [False] * 2, [True] * 2]
    )
    np.testing.assert_allclose(acts[0], [[0.5, 0]] * 2, atol=1e-6)


def test_what_is_missing_is_counted_by_column():
    layout = layout_of(parts=("tail", "nose"), features=("pulse",))
    recording = walk(layout, frames=6, n_agents=2)
    recording.position[:, 1, 1, 0] = np.nan
    recording.features[2:4, 0, 0] = np.inf
    recording.present[:2, 1] = False
    lines = clean(recording, layout, 0.0).lines
    assert lines == (
        "agent 'id8' has no 'nose x' in any frame, so that none of its steps can be used; leave out the column or the "
        "agent",
        "6 value(s) of agents that are there are missing: 'nose x' 4, 'pulse' 2",
    )
    assert column_names(layout) == ("tail x", "tail y", "nose x", "nose y", "pulse")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"time": np.array([0, 0.1, 0.1, 0.3])}, "frame 2 has time 0.1 after 0.1, and 1 frame"),
        ({"time": np.array([0, 0.2, 0.1, 0.3])}, "frame 2 has time 0.1 after 0.2.*Sort the frames"),
        ({"time": np.array([0, np.nan, 0.1, 0.3])}, "the time of frame 1 is nan"),
        ({"agents": ("a", "a")}, "has agent 'a' more than once"),
    ],
)
def test_what_cannot_be_used_is_refused(change: dict, words: str):
    with pytest.raises(InputError, match=f"walk0.csv: recording 'walk 0'.*{words}"):
        check_recording(slow_walk(frames=4)._replace(**change))


def test_a_recording_without_frames_is_refused():
    with pytest.raises(InputError, match="walk0.csv: recording 'walk 0' has no frame"):
        check_recording(walk(ONE, frames=0))
