"""Learning on an engine: what an update reads, company, and that it learns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains.mujoco import EngineChoice, MuJoCo
from data_gen.learners.body_learner import (
    advance,
    by_seed,
    check_segment,
    init_bodies,
    learn_from_host,
    team_of,
    transitions_of,
)
from data_gen.learners.moments import ObsScale
from data_gen.learners.ppo import PPO
from data_gen.learners.segments import Turn
from data_gen.recording.body_world import BodyWorld
from data_gen.trajectory import InputError
from tests.data_gen.bodies import SMALL, Failing, scene, seed_keys


def updated(bodies, state, ppo=SMALL):
    state, seen = advance(bodies, ppo, state)
    learner, moments, progress = learn_from_host(bodies.masks, ppo, state.learner, state.moments, seen)
    return state._replace(learner=learner, moments=moments), seen, jax.tree.map(np.asarray, progress)


def flat(tree, seed):
    return np.concatenate([np.ravel(np.asarray(leaf)[seed]) for leaf in jax.tree.leaves(tree)])


def test_moments_are_those_of_all_that_was_seen_and_the_scale_lags_one_update():
    bodies = scene("Hopper 3x1", 6)
    state, segments = init_bodies(bodies, SMALL, seed_keys(0, 1)), []
    for _ in range(2):
        state, seen, _ = updated(bodies, state)
        segments.append(by_seed(jnp.asarray(seen.obs), 2))
    every = np.concatenate([np.asarray(part[1]).reshape(-1, *part.shape[3:]) for part in segments])
    scale = team_of(False, state).scale
    real = bodies.scenario.obs_mask
    np.testing.assert_allclose(np.asarray(scale.mean)[1][real], every.mean(0)[real], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.asarray(scale.std)[1][real], every.std(0)[real], rtol=1e-3, atol=1e-4)
    assert state.learner.number.tolist() == [2, 2]


def test_rows_of_a_segment_go_to_their_seed_and_environment():
    field = np.arange(5 * 6).reshape(5, 6, 1)  # T, A, …
    got = np.asarray(by_seed(jnp.asarray(field), 2))
    assert got.shape == (2, 3, 5, 1)
    for seed in range(2):
        for env in range(3):
            np.testing.assert_array_equal(got[seed, env, :, 0], field[:, seed * 3 + env, 0])


def test_an_update_reads_ends_falls_and_what_followed_them():
    bodies = scene("Hopper 3x1", 3, horizon=15)
    state = init_bodies(bodies, SMALL, seed_keys(0))
    state, _, _ = updated(bodies, state)
    state, seen = advance(bodies, SMALL, state)
    one = Turn(*(by_seed(jnp.asarray(field), 1)[0] for field in seen))
    scale = ObsScale(*(field[0] for field in team_of(False, state).scale))
    real = bodies.scenario.obs_mask
    got = transitions_of(one, scale, jnp.asarray(real))
    truncated, terminated = seen.truncated.T, seen.terminated.T
    assert truncated[:, :-1].any() and (terminated & ~truncated).any()
    want = truncated | terminated
    want[:, -1] = True
    np.testing.assert_array_equal(got.ended, want)
    np.testing.assert_array_equal(got.terminated, terminated)
    for name in ("obs", "following"):
        raw = np.moveaxis(getattr(seen, name), 0, 1)
        by_hand = np.clip((raw - np.asarray(scale.mean)) / np.asarray(scale.std), -10, 10) * real
        np.testing.assert_allclose(getattr(got, name), by_hand, rtol=1e-4, atol=1e-5)


def test_progress_counts_episodes_that_ended_and_their_returns():
    bodies = scene("Hopper 3x1", 6)
    state = init_bodies(bodies, SMALL, seed_keys(0, 1))
    for _ in range(3):
        state, seen, progress = updated(bodies, state)
        for seed in range(2):
            own = seen.finished[:, seed * 3 : seed * 3 + 3]
            assert progress.episodes[seed] == np.isfinite(own).sum()
            if progress.episodes[seed]:
                np.testing.assert_allclose(progress.team_return[seed], own[np.isfinite(own)].mean(), rtol=1e-5)
            else:
                assert np.isnan(progress.team_return[seed])
    assert progress.finite.all() and not progress.broken.any()


def test_a_seed_learns_the_same_whatever_its_company():
    results = []
    for numbers, place in (((0, 1), 1), ((1, 2), 0)):
        bodies = scene("HalfCheetah 2x3", 6)
        state = init_bodies(bodies, SMALL, seed_keys(*numbers))
        state, _, _ = updated(bodies, state)
        results.append((flat(state.learner.params, place), flat(state.learner.params, 1 - place)))
    np.testing.assert_allclose(results[0][0], results[1][0], atol=2e-4)
    assert np.abs(results[0][1] - results[1][1]).max() > 0.01


def test_the_same_keys_give_the_same_numbers_bit_for_bit():
    found = []
    for _ in range(2):
        bodies = scene("Hopper 3x1", 3)
        state = init_bodies(bodies, SMALL, seed_keys(0))
        for _ in range(2):
            state, seen, _ = updated(bodies, state)
        found.append((flat(state.learner.params, 0), seen.obs))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_failed_physics_is_counted_and_learning_goes_on():
    bodies = scene("HalfCheetah 2x3", 6)
    state = init_bodies(bodies, SMALL, seed_keys(0, 1))
    failing = bodies._replace(engine=Failing(bodies.engine, env=4, at=2))
    state, _, progress = updated(failing, state)
    assert progress.broken.tolist() == [0, 1] and progress.finite.all()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.moments))


@pytest.mark.parametrize("values, word", [({"segment": 0}, "segment is 0"), ({"segment": 201}, "segment is 201")])
def test_a_segment_must_fit_the_episode(values, word):
    with pytest.raises(InputError, match=word):
        check_segment(200, 3, PPO(**values))
    with pytest.raises(InputError, match="equal minibatches"):
        check_segment(200, 3, PPO(segment=5, envs=1, minibatches=4))


@pytest.mark.slow
def test_halfcheetah_learns_to_run():
    ppo = PPO(
        updates=50, envs=8, segment=256, epochs=10, minibatches=8, lr=3e-4, hidden=64, initial_std=0.5, gamma=0.99
    )
    ppo = PPO(**vars(ppo) | {"entropy": 0.0})
    world = BodyWorld(MuJoCo(engine=EngineChoice("native")), ppo)
    _, progress = world.train(world.start(seed_keys(0, 1)), 50, lambda share: None)
    known = [row[np.isfinite(row)] for row in progress.team_return]
    assert all(row[-2:].mean() > row[:2].mean() + 300 for row in known)
