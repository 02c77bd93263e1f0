"""Hand features are what a plain loop over steps and agents counts."""

import numpy as np
import pytest

from data_gen.hand import PLANE, Described, hand_features, hand_names
from data_gen.ingest.episodes import Episode
from data_gen.trajectory import ActionSpec, FeatureMask, all_real
from tests.data_gen.ingest.memory import outline, recording, windows

PLACES = Described(outline().obs_names, outline().action, outline().action_names, outline().position)


def features_of(episode: Episode, of: Described = PLACES) -> np.ndarray:
    """Of agents that have every column."""
    real = all_real(episode.mask.shape[1], len(of.obs_names), of.action)
    return hand_features(episode.obs, episode.actions, episode.mask, real, of)


def test_hand_features_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    mask = rng.random((9, 3)) < 0.8
    place = rng.normal(size=(9, 3, 2))
    episode = windows(9)(recording(0, frames=9), 3)[0][0]
    episode = episode._replace(obs=np.concatenate([place, np.zeros((9, 3, 1))], 2).astype(np.float32), mask=mask)
    values = dict(zip(hand_names(PLACES), features_of(episode).tolist(), strict=True))
    assert list(values)[: len(PLANE)] == list(PLANE)
    steps = [(t, n) for t in range(8) for n in range(3) if mask[t, n] and mask[t + 1, n]]
    moves = {(t, n): place[t + 1, n] - place[t, n] for t, n in steps}
    speeds = {key: np.hypot(*move) for key, move in moves.items()}
    own = [np.mean([v for (_, m), v in speeds.items() if m == n]) for n in range(3)]
    pairs = [
        np.hypot(*(place[t, i] - place[t, j]))
        for t in range(9)
        for i in range(3)
        for j in range(i)
        if mask[t, i] and mask[t, j]
    ]
    centres = [place[t, mask[t]].mean(0) if mask[t].any() else None for t in range(9)]
    away = [np.hypot(*(place[t, n] - centres[t])) for t in range(9) for n in range(3) if mask[t, n]]
    headings = [[moves[t, n] / speeds[t, n] for n in range(3) if (t, n) in moves] for t in range(8)]
    order = [np.hypot(*np.mean(one, axis=0)) for one in headings if one]
    drift = [
        np.hypot(*(centres[t + 1] - centres[t])) for t in range(8) if mask[t].any() and (mask[t] == mask[t + 1]).all()
    ]
    ways = []
    for n in range(3):
        way = place[mask[:, n], n]
        ways.append(np.hypot(*(way[-1] - way[0])) / np.hypot(*(way[1:] - way[:-1]).T).sum())
    for name, wanted in (
        ("mean_speed", np.mean(list(speeds.values()))),
        ("speed_spread_of_agents", np.std(own)),
        ("straightness", np.mean(ways)),
        ("mean_pair_distance", np.mean(pairs)),
        ("sd_pair_distance", np.std(pairs)),
        ("mean_centre_distance", np.mean(away)),
        ("polarisation", np.mean(order)),
        ("centre_speed", np.mean(drift) if drift else 0),
        ("mean_ax", episode.actions[mask][:, 0].mean()),
        ("sd_ay", episode.actions[mask][:, 1].std()),
    ):
        assert values[name] == pytest.approx(wanted, rel=1e-4), name


def test_hand_features_of_choices_are_their_shares_and_of_little_are_zero() -> None:
    moves = ActionSpec("discrete", 3)
    of = Described(("x", "y", "heat"), moves, ("stay", "go", "turn"), position=())
    episode = windows(9)(recording(0, frames=4, agents=1), 1)[0][0]
    chosen = episode._replace(
        actions=np.array([[0], [2], [2], [1]], np.int32), mask=np.array([[1], [1], [1], [0]], bool)
    )
    assert hand_names(of)[6:] == ("share_stay", "share_go", "share_turn")
    np.testing.assert_allclose(features_of(chosen, of)[6:], [1 / 3, 0, 2 / 3], rtol=1e-6)
    seen = chosen.obs[:3, 0].astype(float)
    np.testing.assert_allclose(features_of(chosen, of)[:6], [*seen.mean(0), *seen.std(0)], rtol=1e-5)
    assert hand_names(of)[:6] == ("mean_x", "mean_y", "mean_heat", "sd_x", "sd_y", "sd_heat")
    assert hand_names(of._replace(action_names=()))[6:] == ("share_0", "share_1", "share_2")
    alone = episode._replace(mask=np.array([[1], [0], [0], [0]], bool))
    np.testing.assert_array_equal(features_of(alone)[: len(PLANE)], np.zeros(len(PLANE)))


def test_too_many_columns_are_not_described() -> None:
    many = Described(tuple(f"pixel {k}" for k in range(201)), ActionSpec("discrete", 21), (), position=())
    episode = windows(9)(recording(0, frames=4, agents=1), 1)[0][0]
    wide = np.zeros((4, 1, 201), np.float32)
    chosen = episode._replace(obs=wide, actions=np.zeros((4, 1), np.int32))
    assert hand_names(many) == () and features_of(chosen, many).shape == (0,)


def test_agents_that_lack_a_column_do_not_count_in_it() -> None:
    episode = windows(9)(recording(0, frames=5, agents=2), 2)[0][0]
    real = FeatureMask(obs=np.array([[1, 1, 1], [1, 1, 0]], bool), actions=np.array([[1, 0], [1, 1]], bool))
    of = PLACES._replace(position=())
    values = hand_features(episode.obs, episode.actions, episode.mask, real, of)
    own = dict(zip(hand_names(of), values.tolist(), strict=True))
    assert own["mean_heat"] == pytest.approx(episode.obs[:, 0, 2].mean(), rel=1e-5)
    assert own["sd_heat"] == pytest.approx(episode.obs[:, 0, 2].std(), rel=1e-5)
    assert own["mean_ay"] == pytest.approx(episode.actions[:, 1, 1].mean(), rel=1e-5)
    assert own["mean_x"] == pytest.approx(episode.obs[..., 0].mean(), rel=1e-4)
