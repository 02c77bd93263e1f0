"""What an engine played is what a second engine plays again from the same starts under the same actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.engines import environments
from data_gen.learners.body_learner import init_bodies, team_of
from data_gen.learners.moments import ObsScale
from data_gen.learners.policy import init_actor
from data_gen.learners.segments import Team, act, begin, play, starts
from data_gen.trajectory import ActionSpec
from tests.data_gen.bodies import SMALL, Failing, scene, seed_keys
from tests.data_gen.oracles_plane import mlp

LENGTH = 60


@pytest.fixture(scope="module")
def played():
    hop = scene("Hopper 3x1", 6)
    state = init_bodies(hop, SMALL, seed_keys(0, 1))
    team = team_of(False, state)
    _, turns = play(hop, team, begin(hop, team.keys, np.int32(-1)), 0, LENGTH)
    return hop, team, turns


def test_a_second_engine_plays_the_same(played):
    hop, team, turns = played
    other = scene("Hopper 3x1", 6)
    running, obs = environments.begin(other.scenario, other.engine, *starts(other, team.keys, np.int32(-1)))
    total = np.zeros(6)
    for t in range(LENGTH):
        np.testing.assert_array_equal(turns.obs[t], obs.astype(np.float32))
        np.testing.assert_allclose(turns.qpos[t], running.physics.fields["qpos"], rtol=1e-6)
        running, outcome = environments.step(other.scenario, other.engine, 200, running, turns.actions[t])
        np.testing.assert_allclose(turns.following[t], outcome.obs, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(turns.rewards[t], outcome.rewards, rtol=1e-6)
        np.testing.assert_array_equal(turns.terminated[t], outcome.terminated)
        total += outcome.rewards[:, 0]
        ended = outcome.terminated
        np.testing.assert_allclose(turns.finished[t][ended], total[ended], rtol=1e-4)
        assert np.isnan(turns.finished[t][~ended]).all()
        total[ended], obs = 0, outcome.obs
        if ended.any():
            running, obs = environments.restart(
                other.scenario, other.engine, running, ended, starts(other, team.keys, np.int32(t))
            )
    assert 3 <= turns.terminated.sum() and not turns.truncated.any() and not turns.broken.any()


def test_a_fall_is_followed_by_a_start_and_its_own_last_observation_is_kept(played):
    hop, _, turns = played
    z, angle = (hop.scenario.obs_names[0].index(name) for name in ("qpos 1", "qpos 2"))
    t, env = np.argwhere(turns.terminated[:-1])[0]
    last, first = turns.following[t, env, 0], turns.obs[t + 1, env, 0]
    assert last[z] <= 0.7 or abs(last[angle]) >= 0.2
    np.testing.assert_allclose([first[z], first[angle]], [1.25, 0], atol=0.01)


def test_episodes_are_cut_at_the_horizon_and_go_on_elsewhere():
    cheetah = scene("HalfCheetah 2x3", 3, horizon=10)
    state = init_bodies(cheetah, SMALL, seed_keys(0))
    _, turns = play(cheetah, team_of(False, state), state.now, 0, 25)
    np.testing.assert_array_equal(np.flatnonzero(turns.truncated[:, 1]), [9, 19])
    assert not turns.terminated.any()
    np.testing.assert_allclose(turns.finished[9], turns.rewards[:10, :, 0].sum(0), rtol=1e-5)
    gap = np.abs(turns.obs[1:] - turns.following[:-1]).max(axis=(1, 2, 3))
    np.testing.assert_array_equal(np.flatnonzero(gap), [9, 19])
    assert np.abs(turns.qpos[10] - turns.qpos[20]).max() > 1e-3  # each start is drawn anew


def test_an_environment_is_the_same_whatever_its_company(played):
    _, _, turns = played
    alone = scene("Hopper 3x1", 3)
    state = init_bodies(alone, SMALL, seed_keys(1))
    team = team_of(False, state)
    _, one = play(alone, team, begin(alone, team.keys, np.int32(-1)), 0, 20)
    np.testing.assert_allclose(one.obs, turns.obs[:20, 3:], atol=2e-4)
    assert np.abs(one.obs - turns.obs[:20, :3]).max() > 0.01


def test_actions_are_draws_of_each_agents_own_policy_and_padding_is_zero():
    n_obs, real = 4, np.array([[True, True], [True, False]])
    obs_real = np.array([[True] * 4, [True, True, True, False]])
    keys = jax.random.split(jax.random.key(0), (1, 4000))
    actors = jax.vmap(lambda k: init_actor(k, n_obs, 8, ActionSpec("continuous", 2), 0.5))(
        jax.random.split(jax.random.key(1), 2)
    )
    actors["w2"] = 50 * actors["w2"]
    scale = ObsScale(mean=jnp.full((1, 2, n_obs), 2.0), std=jnp.full((1, 2, n_obs), 3.0))
    team = Team(actors=jax.tree.map(lambda x: x[None], actors), scale=scale, keys=keys)
    obs = np.random.default_rng(0).normal(size=(2, n_obs)).astype(np.float32)
    many = jnp.asarray(np.tile(obs, (4000, 1, 1)))
    got = np.asarray(act((jnp.asarray(obs_real), jnp.asarray(real)), False, team, many, jnp.int32(7)))
    for agent in range(2):
        own = {name: np.asarray(x[agent]) for name, x in actors.items()}
        mean = mlp(own, np.where(obs_real[agent], (obs[agent] - 2) / 3, 0)[None])[0]
        np.testing.assert_allclose(got[:, agent, 0].mean(), mean[0], atol=0.04)
        np.testing.assert_allclose(got[:, agent, 0].std(), 0.5, rtol=0.05)
    assert (got[:, 1, 1] == 0).all() and got[:, 0, 1].std() > 0.4
    again = np.asarray(act((jnp.asarray(obs_real), jnp.asarray(real)), False, team, many, jnp.int32(8)))
    assert abs(np.corrcoef(got[:, 0, 0], again[:, 0, 0])[0, 1]) < 0.1
    assert abs(np.corrcoef(got[:, 0, 0], got[:, 1, 0])[0, 1]) < 0.1


def test_a_failure_of_physics_ends_the_episode_and_poisons_nothing():
    cheetah = scene("HalfCheetah 2x3", 3, horizon=100)
    failing = cheetah._replace(engine=Failing(cheetah.engine, env=1, at=4))
    state = init_bodies(failing, SMALL, seed_keys(0))
    now, turns = play(failing, team_of(False, state), state.now, 0, 8)
    np.testing.assert_array_equal(np.argwhere(turns.broken), [[4, 1]])
    for name in ("obs", "actions", "rewards", "following", "qpos"):
        assert np.isfinite(getattr(turns, name)).all(), name
    assert (turns.rewards[4, 1] == 0).all() and np.isnan(turns.finished).all()
    np.testing.assert_array_equal(turns.following[4, 1], turns.obs[4, 1])
    np.testing.assert_allclose(now.total[1], turns.rewards[5:, 1, 0].sum(), rtol=1e-5)
    assert now.running.age.tolist() == [8, 3, 8]
