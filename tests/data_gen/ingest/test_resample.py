"""Frames on a grid of steps: values against np.interp and loops, and nothing across a gap that is too long."""

import numpy as np
import pytest

from data_gen.ingest.clean import clean
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.ingest.resample import Track, describe_grid, grid_of, resample
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.ingest.recordings import layout_of, walk

LABELS = (LabelColumn("phase", "frame", "class", ("a", "b", "c")), LabelColumn("level", "frame and agent", "real"))


def labels_for(frames: int, n_agents: int = 3, seed: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "phase": rng.integers(0, 3, frames).astype(np.int32),
        "level": rng.normal(size=(frames, n_agents)).astype(np.float32),
    }


def tracked(recording: Recording, layout: Layout, rate: float = 0.0, gap: float = 0.0, speed: float = 0.0) -> Track:
    return resample(clean(recording, layout, speed), layout, grid_of(recording, layout, rate, gap))


def frames_at(recording: Recording, kept: np.ndarray) -> Recording:
    """The recording without some frames."""
    fields = ("time", "present", "position", "features", "actions", "rewards")
    labels = {name: value[kept] for name, value in recording.labels.items()}
    return recording._replace(**{name: getattr(recording, name)[kept] for name in fields}, labels=labels)


def test_frames_that_are_steps_come_through_as_they_are():
    layout = layout_of(action=ActionSpec("continuous", 2), labels=LABELS)
    recording = walk(layout, lost=0.2, labels=labels_for(12))
    track = tracked(recording, layout, rate=10.0)
    gone = ~recording.present[..., None]
    np.testing.assert_array_equal(track.position, np.where(gone[..., None], np.nan, recording.position))
    np.testing.assert_array_equal(track.features, np.where(gone, np.nan, recording.features))
    np.testing.assert_array_equal(track.actions, np.where(gone, np.nan, recording.actions))
    np.testing.assert_array_equal(track.rewards, np.where(recording.present, recording.rewards, 0))
    np.testing.assert_array_equal(track.labels["phase"], recording.labels["phase"])
    np.testing.assert_array_equal(track.present, recording.present)
    assert not track.filled.any()


@pytest.mark.parametrize("rate", [4.0, 10.0 / 3, 25.0])
def test_another_rate_is_linear_for_numbers_and_held_for_choices(rate: float):
    layout = layout_of(action=ActionSpec("discrete", 4), labels=LABELS)
    recording = walk(layout, frames=21, labels=labels_for(21))
    track, time = tracked(recording, layout, rate=rate), np.arange(0, 2 + 1e-9, 1 / rate)
    assert len(track.present) == len(time)
    for n in range(3):
        for axis in range(2):
            want = np.interp(time, recording.time, recording.position[:, n, 0, axis])
            np.testing.assert_allclose(track.position[:, n, 0, axis], want, atol=1e-5)
        np.testing.assert_allclose(
            track.features[:, n, 0], np.interp(time, recording.time, recording.features[:, n, 0]), atol=1e-5
        )
    before = [max(s for s in range(21) if recording.time[s] <= t + 1e-9) for t in time]
    np.testing.assert_array_equal(track.actions, recording.actions[before])
    np.testing.assert_array_equal(track.labels["phase"], recording.labels["phase"][before])
    np.testing.assert_array_equal(track.labels["level"], recording.labels["level"][before])
    step = [max(t for t in range(len(time)) if time[t] <= s + 1e-9) for s in recording.time]
    want = np.zeros((len(time), 3))
    for s, t in enumerate(step):
        want[t] += recording.rewards[s]
    np.testing.assert_allclose(track.rewards, want, atol=1e-6)
    np.testing.assert_allclose(track.team.sum(), recording.rewards.astype(float).mean(1).sum(), atol=1e-5)
    assert not track.filled.any()


@pytest.mark.parametrize(("gap", "filled"), [(0.0, 0), (0.19, 1), (0.2, 3), (0.31, 6), (9.0, 6)])
def test_gaps_are_filled_up_to_their_longest_and_never_at_an_end(gap: float, filled: int):
    layout = layout_of(features=())
    recording = walk(layout, frames=20, n_agents=1)
    missing = [0, 3, 6, 7, 11, 12, 13, 19]
    recording.position[missing] = np.nan
    track = tracked(recording, layout, gap=gap)
    known = np.setdiff1d(np.arange(20), missing)
    want = np.interp(np.arange(20), known, recording.position[known, 0, 0, 1])
    within = np.isin(np.arange(20), {0: [], 1: [3], 3: [3, 6, 7], 6: [3, 6, 7, 11, 12, 13]}[filled])
    np.testing.assert_array_equal(track.filled[:, 0], within)
    shown = np.isin(np.arange(20), known) | within
    np.testing.assert_array_equal(np.isfinite(track.position[:, 0, 0, 1]), shown)
    np.testing.assert_allclose(track.position[shown, 0, 0, 1], want[shown], atol=1e-6)


def test_a_value_of_its_own_pattern_is_filled_from_its_own_neighbours():
    layout = layout_of(features=("pulse", "heat"))
    recording = walk(layout, frames=9, n_agents=2)
    recording.features[4, 1, 0] = np.nan
    recording.features[5, 1, 1] = np.nan
    recording.present[2, 0] = False
    track = tracked(recording, layout, gap=0.1)
    one, two = recording.features[:, 1, 0], recording.features[:, 1, 1]
    np.testing.assert_allclose(track.features[4, 1, 0], (one[3] + one[5]) / 2, atol=1e-6)
    np.testing.assert_allclose(track.features[5, 1, 1], (two[4] + two[6]) / 2, atol=1e-6)
    np.testing.assert_allclose(track.position[2, 0, 0], recording.position[[1, 3], 0, 0].mean(0), atol=1e-6)
    assert np.argwhere(track.filled).tolist() == [[2, 0], [4, 1], [5, 1]]


def test_missing_frames_are_steps_and_actions_and_labels_are_never_filled():
    layout = layout_of(action=ActionSpec("discrete", 4), labels=LABELS)
    whole = walk(layout, frames=12, labels=labels_for(12))
    kept = np.setdiff1d(np.arange(12), [4, 7, 8])
    recording = frames_at(whole, kept)
    grid = grid_of(recording, layout, 0.0, 0.1)
    track = resample(clean(recording, layout, 0.0), layout, grid)
    assert describe_grid(recording, grid) == ("3 of 12 steps have no frame",)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(track.position[:, 1, 0, 0])), [7, 8])
    np.testing.assert_allclose(track.position[4, 1, 0], whole.position[[3, 5], 1, 0].mean(0), atol=1e-6)
    np.testing.assert_array_equal(track.actions[kept], whole.actions[kept])
    assert (track.actions[[4, 7, 8]] == -1).all() and (track.labels["phase"][[4, 7, 8]] == -1).all()
    assert np.isnan(track.labels["level"][[4, 7, 8]]).all() and not track.present[[4, 7, 8]].any()


def test_resampling_does_not_reach_across_a_gap():
    layout = layout_of(action=ActionSpec("continuous", 1), labels=LABELS)
    whole = walk(layout, frames=30, labels=labels_for(30))
    recording = frames_at(whole, np.setdiff1d(np.arange(30), np.arange(10, 19)))
    track, time = tracked(recording, layout, rate=4.0), np.arange(0, 2.9, 0.25)
    inside = (time > 0.9 + 1e-9) & (time < 1.9 - 1e-9)
    for values in (track.position[:, 0, 0, 0], track.features[:, 1, 0], track.actions[:, 2, 0]):
        np.testing.assert_array_equal(np.isnan(values), inside)
    np.testing.assert_array_equal(track.labels["phase"] == -1, inside)
    bridged = tracked(recording, layout, rate=4.0, gap=0.9)
    assert np.isfinite(bridged.position).all() and (bridged.labels["phase"][inside] == -1).all()
    np.testing.assert_array_equal(bridged.filled.all(1), inside)


def test_rounded_stamps_are_steps_and_irregular_ones_are_interpolated():
    layout = layout_of(rate=30.0)
    recording = walk(layout, frames=60)
    rounded = recording._replace(time=np.round(recording.time, 3))
    assert (rounded.time != recording.time).any()
    np.testing.assert_array_equal(tracked(rounded, layout).position, recording.position)
    jitter = np.random.default_rng(0).uniform(-0.012, 0.012, 60)
    irregular = recording._replace(time=np.sort(recording.time + jitter))
    track, start = tracked(irregular, layout), irregular.time[0]
    grid = start + np.arange(len(track.present)) / 30
    known = np.isfinite(track.position[:, 1, 0, 0])
    want = np.interp(grid, irregular.time, recording.position[:, 1, 0, 0])
    np.testing.assert_allclose(track.position[known, 1, 0, 0], want[known], atol=1e-5)
    assert known.mean() > 0.8


def test_a_recording_of_another_rate_gets_the_layouts():
    layout = layout_of(rate=30.0)
    slow = walk(layout, frames=10)
    slow = slow._replace(time=np.arange(10) / 15.0)
    grid = grid_of(slow, layout, 0.0, 0.0)
    assert (grid.n, grid.rate, grid.interval) == (19, 30.0, pytest.approx(2.0))
    assert describe_grid(slow, grid) == (
        "10 frames, one every 0.0666667, are resampled to 19 steps, one every 0.0333333",
    )
    track = resample(clean(slow, layout, 0.0), layout, grid)
    np.testing.assert_array_equal(track.position[::2], slow.position)
    np.testing.assert_allclose(track.position[1::2], (slow.position[1:] + slow.position[:-1]) / 2, atol=1e-6)
    assert not track.filled.any()


@pytest.mark.parametrize(
    ("rate", "time", "words"),
    [
        (30.0, np.arange(12.0), r"frames are 1 second\(s\) apart.*30 steps a second.*treatment.rate=1\."),
        (0.0, np.arange(12.0) * 5, r"frames are 5 frame number\(s\) apart.*treatment.rate=0.2\."),
        (10.0, np.append(np.arange(11) / 10, 1e9), "its 12 frames span 1e\\+09 units of time"),
    ],
)
def test_a_wrong_unit_of_time_is_refused(rate: float, time: np.ndarray, words: str):
    layout = layout_of(rate=rate)
    with pytest.raises(InputError, match=f"walk0.csv: recording 'walk 0'.*{words}"):
        grid_of(walk(layout, time=time), layout, 0.0, 0.0)


def test_numbered_frames_of_another_stride_can_be_asked_for():
    layout = layout_of(rate=0.0)
    recording = walk(layout, time=np.arange(12.0) * 5)
    np.testing.assert_array_equal(tracked(recording, layout, rate=0.2).position, recording.position)
