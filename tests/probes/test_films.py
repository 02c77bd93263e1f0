"""Film strips: the right frames of the right episodes, each where it belongs."""

import numpy as np
from matplotlib.figure import Figure

from data_gen.trajectory import Dataset
from probes.report.episodes import episode_returns
from probes.report.films import FRAMES, Films, film_section, film_strips, no_films, paint_of, pick_films
from probes.report.report import pick_tracks
from tests.probes.test_report import dataset

# Of dataset(): checkpoint, first and last real step of an episode that began late and ended early.
T_LONG = 40


def long_dataset(first: int, last: int) -> Dataset:
    """Episodes of T_LONG steps of which only first..last are real, one agent after the other."""
    data = dataset()
    grow = [(0, 0), (0, T_LONG - data.batch.mask.shape[1]), (0, 0)]
    mask = np.zeros((len(data.split), T_LONG, data.batch.mask.shape[2]), bool)
    mask[:, first : (first + last) // 2 + 1, 0] = True
    mask[:, (first + last) // 2 : last + 1, 1] = True
    outcomes = data.outcomes._replace(
        rewards=np.pad(data.outcomes.rewards, grow),
        terminated=np.zeros(mask.shape[:2], bool),
        truncated=np.zeros(mask.shape[:2], bool),
    )
    batch = data.batch._replace(
        obs=np.pad(data.batch.obs, [*grow, (0, 0)]), actions=np.pad(data.batch.actions, grow), mask=mask
    )
    return data._replace(batch=batch, outcomes=outcomes)


def test_frames_are_spread_over_the_real_steps_alone() -> None:
    shots = pick_films(long_dataset(3, 31))
    assert shots.steps.shape == (6, FRAMES) and FRAMES == 8
    np.testing.assert_array_equal(shots.steps, np.tile([3, 7, 11, 15, 19, 23, 27, 31], (6, 1)))
    np.testing.assert_array_equal(np.unique(pick_films(long_dataset(5, 7)).steps), [5, 6, 7])


def test_the_same_episodes_as_the_tracks() -> None:
    data = dataset()
    shots, tracks = pick_films(data), pick_tracks(data, (2, 0))
    assert list(shots.titles) == [track.title for track in tracks]
    for row, track in zip(shots.rows, tracks, strict=True):
        np.testing.assert_array_equal(track.xy, np.asarray(data.batch.obs)[row][..., [2, 0]])


def test_an_episode_without_a_real_step_is_not_picked() -> None:
    data = long_dataset(3, 31)
    data.outcomes.rewards[:] = abs(data.outcomes.rewards) + 1
    gone = np.flatnonzero(data.rows.checkpoint == 0)[:3]
    np.asarray(data.batch.mask)[gone] = False
    assert (episode_returns(data)[gone] == 0).all(), "else the lowest"
    assert not np.isin(gone, pick_films(data).rows).any()


def test_titles_say_which_episodes_were_terminated() -> None:
    data = long_dataset(3, 31)
    first, second = pick_films(data).rows[:2]
    data.outcomes.terminated[first, 31] = True
    data.outcomes.terminated[second, 35] = True  # padding
    titles = pick_films(data).titles
    assert titles[0].endswith(", terminated") and not any("terminated" in title for title in titles[1:])


def drawn() -> tuple[Films, Figure]:
    rng = np.random.default_rng(0)
    films = Films(
        images=rng.integers(0, 256, (2, 3, 4, 5, 3), dtype=np.uint8),
        titles=("one", "two"),
        seconds=np.array([[0.0, 0.5, 1.0], [0.0, 0.0, 0.25]]),
        metres=np.array([[0.0, -0.04, 12.34], [0.0, 0.0, -0.26]]),
    )
    return films, film_strips(films, 3)


def test_each_frame_stands_over_its_time_and_way() -> None:
    films, figure = drawn()
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    for ax, expected in zip(figure.axes, ([0, 1, 2], [0, 2]), strict=True):
        number = figure.axes.index(ax)
        assert len(ax.images) == len(ax.texts) == len(expected)
        for place, (image, text, frame) in enumerate(zip(ax.images, ax.texts, expected, strict=True)):
            np.testing.assert_array_equal(image.get_array(), films.images[number, frame])
            left, right, *_ = image.get_extent()
            assert left == place * 1.03 and left < text.get_position()[0] < right
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.00 s · 0.0 m", "0.50 s · 0.0 m", "1.00 s · 12.3 m"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["0.00 s · 0.0 m", "0.25 s · -0.3 m"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["agent 0", "agent 1", "agent 2"]


def test_pixels_are_not_stretched() -> None:
    _, figure = drawn()
    figure.canvas.draw()
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    assert (top - bottom) / (right - left) == 4 / 5 and figure.axes[0].get_aspect() == 1


def test_limbs_are_painted_in_their_agents_colours() -> None:
    expected = np.array([[0xE6, 0x9F, 0x00], [0x00, 0x72, 0xB2], [0xE6, 0x9F, 0x00]]) / 255
    np.testing.assert_allclose(paint_of(np.array([1, 0, 1])), expected)


def test_the_section_without_pictures_says_why() -> None:
    section = film_section(no_films("Nothing was rendered, because."), 2)
    assert section.figure is None and section.absent == "Nothing was rendered, because."
    assert film_section(drawn()[0], 3).figure is not None
