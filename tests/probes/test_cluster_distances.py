"""Distances of trajectories against double loops and the textbook's recursion."""

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, FeatureMask, all_real
from probes.clusters.distances import Pairs, draw_pairs, euclidean, make_tracks, warped
from probes.features import flatten
from tests.builders import tiny_batch, uneven_batch
from tests.probes.oracles_clusters import textbook_dtw


def tracks_of(batch, features: FeatureMask, steps: int = 100):
    flat = flatten(batch, np.ones(len(batch.obs), bool), features)
    return make_tracks(flat, batch, features, steps)


def every_pair(n: int) -> Pairs:
    return draw_pairs(n, n * n, np.random.default_rng(0))


def test_every_pair_is_drawn_once_where_all_are_asked_for():
    pairs = every_pair(7)
    found = {frozenset(pair) for pair in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
    assert len(found) == len(pairs.first) == 21 and all(len(pair) == 2 for pair in found)


def test_drawn_pairs_are_different_and_every_episode_is_as_likely():
    pairs = draw_pairs(5000, 4000, np.random.default_rng(1))
    codes = {(a, b) for a, b in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
    assert len(codes) == 4000 and (pairs.first > pairs.second).all() and pairs.second.min() >= 0
    assert pairs.first.max() < 5000
    both = np.concatenate(pairs)
    assert abs(both.mean() - 2499.5) < 5 * 5000 / np.sqrt(12 * 8000)


def test_standardised_observations_are_those_of_real_steps():
    batch, features = uneven_batch(0, 8)
    tracks = tracks_of(batch, features)
    for f in range(features.obs.shape[1]):
        agents = np.flatnonzero(features.obs[:, f])
        if len(agents) == 1:
            seen = batch.obs[:, :, agents[0], f][batch.mask[:, :, agents[0]]]
            want = (batch.obs[:, :, agents[0], f] - seen.mean()) / seen.std()
            mask = tracks.mask[:, :, agents[0]]
            np.testing.assert_allclose(tracks.obs[:, :, agents[0], f][mask], want[mask], atol=1e-5)
    assert tracks.widths.tolist() == features.obs.sum(1).tolist() == [3, 5, 4]


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_euclidean_is_the_root_mean_square_over_what_both_have(kind):
    action = ActionSpec(kind, 2)
    batch = tiny_batch(action, 3)
    tracks = tracks_of(batch, all_real(3, 4, action))
    pairs = every_pair(len(batch.obs))
    want = []
    for a, b in zip(pairs.first, pairs.second, strict=True):
        squares = [
            (float(tracks.obs[a, t, i, f]) - float(tracks.obs[b, t, i, f])) ** 2
            for t in range(7)
            for i in range(3)
            for f in range(4)
            if batch.mask[a, t, i] and batch.mask[b, t, i]
        ]
        want.append(np.sqrt(np.mean(squares)))
    np.testing.assert_allclose(euclidean(tracks, pairs), want)


def test_padded_features_and_what_is_under_the_mask_count_for_nothing():
    batch, features = uneven_batch(1)
    tracks, pairs = tracks_of(batch, features), every_pair(6)
    changed = batch._replace(obs=np.where(batch.mask[..., None], batch.obs, 9).astype(np.float32))
    for distance in (euclidean, warped):
        np.testing.assert_allclose(distance(tracks, pairs), distance(tracks_of(changed, features), pairs))
    both = (batch.mask[1] & batch.mask[0])[..., None] & features.obs
    want = np.sqrt(np.square(tracks.obs[1] - tracks.obs[0])[both].mean())
    np.testing.assert_allclose(euclidean(tracks, pairs)[0], want, rtol=1e-6)


def test_warping_is_the_textbook_recursion_on_ragged_lengths():
    batch, features = uneven_batch(2)
    tracks, pairs = tracks_of(batch, features), every_pair(6)
    lengths = batch.mask.any(2).sum(1)
    assert len(set(lengths.tolist())) > 2
    want = []
    for a, b in zip(pairs.first, pairs.second, strict=True):
        series = [tracks.obs[i][: lengths[i]].reshape(lengths[i], -1).astype(float) for i in (a, b)]
        want.append(textbook_dtw(*series) / np.sqrt(max(lengths[a], lengths[b]) * 12))
    np.testing.assert_allclose(warped(tracks, pairs), want)


def test_warping_forgives_a_delay_and_never_exceeds_the_distance_step_by_step():
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action, 4)
    batch = batch._replace(mask=np.ones_like(batch.mask))
    late = np.concatenate([batch.obs[:, :1], batch.obs[:, :-1]], 1)
    batch = batch._replace(obs=np.concatenate([batch.obs[:3], late[:3]]))
    tracks, pairs = tracks_of(batch, all_real(3, 4, action)), every_pair(6)
    step, warp = euclidean(tracks, pairs), warped(tracks, pairs)
    assert (warp <= step + 1e-6).all()
    delayed = (pairs.first - pairs.second) == 3
    # Only the last step of the earlier one has no partner.
    assert (warp[delayed] < 0.6 * step[delayed]).all() and step[delayed].min() > 0.5


def test_long_episodes_are_thinned_evenly_and_no_common_step_is_no_distance():
    batch, features = uneven_batch(3)
    tracks = tracks_of(batch, features, 4)
    np.testing.assert_array_equal(tracks.obs, tracks_of(batch, features).obs[:, [0, 2, 4, 6]])
    mask = batch.mask.copy()
    mask[0], mask[1] = False, False
    mask[0, :2], mask[1, 2:5] = True, True
    tracks = tracks_of(batch._replace(mask=mask), features)
    assert np.isnan(euclidean(tracks, every_pair(2))).all() and np.isfinite(warped(tracks, every_pair(2))).all()
    mask[1] = False
    assert np.isnan(warped(tracks_of(batch._replace(mask=mask), features), every_pair(2))).all()
