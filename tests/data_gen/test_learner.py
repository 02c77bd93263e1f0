from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from data_gen.domains.hill_climbing import HillClimbing, make
from data_gen.learners.learner import check_fit, init_learner, init_seeds, train_seeds, transitions_of
from data_gen.learners.ppo import PPO, learn_from, loss, samples_of
from data_gen.learners.rollout import Episode
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.oracles_plane import advantages, mlp

SMALL = PPO(updates=4, envs=4, hidden=8, minibatches=2, epochs=2)
KINDS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 5)}


one_learner = jax.jit(init_learner, static_argnums=(0, 1))


@partial(jax.jit, static_argnums=(0, 1))
def samples_in(domain, ppo, params, episodes):
    real = jnp.ones((domain.n_agents, domain.action.size), bool)
    return samples_of(real, domain.action.kind, ppo, params, transitions_of(episodes))


@cache
def small_domain(kind="continuous"):
    return make(HillClimbing(actions=kind, horizon=6))


def random_episodes(domain, n_episodes, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n_episodes, domain.horizon, domain.n_agents)
    if domain.action.kind == "continuous":
        actions = rng.normal(size=(*shape, domain.action.size)).astype(np.float32)
    else:
        actions = rng.integers(0, domain.action.size, shape).astype(np.int32)
    n_obs = len(domain.obs_names)
    return Episode(
        obs=jnp.asarray(rng.normal(size=(*shape, n_obs)), jnp.float32),
        actions=jnp.asarray(actions),
        rewards=jnp.asarray(rng.normal(size=shape), jnp.float32),
        last_obs=jnp.asarray(rng.normal(size=(n_episodes, domain.n_agents, n_obs)), jnp.float32),
    )


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sharing", [False, True])
def test_samples_pair_each_learner_with_its_own_agents(kind, sharing):
    domain, ppo = small_domain(kind), PPO(envs=2, hidden=8, sharing=sharing)
    episodes = random_episodes(domain, 2)
    state = one_learner(domain, ppo, jax.random.key(0))
    samples = samples_in(domain, ppo, state.params, episodes)
    n_learners, k = (1, 3 * 2 * 6) if sharing else (3, 2 * 6)
    assert samples.advantage.shape == (n_learners, k)
    for agent in range(3):
        learner = 0 if sharing else agent
        params = jax.tree.map(lambda x, learner=learner: x[learner], state.params)
        for e in range(2):
            obs = np.concatenate([episodes.obs[e, :, agent], episodes.last_obs[e, agent][None]])
            if sharing:
                obs = np.concatenate([obs, np.tile(np.eye(3)[agent], (7, 1))], axis=1)
            first = (agent * 2 + e if sharing else e) * 6
            own = jax.tree.map(lambda x, learner=learner, first=first: x[learner, first : first + 6], samples)
            values = mlp(params["critic"], obs)[:, 0] / (1 - ppo.gamma)
            want = advantages(np.asarray(episodes.rewards)[e, :, agent], values[:-1], values[-1], 0.95, 0.95)
            np.testing.assert_allclose(own.obs, obs[:-1], rtol=1e-6)
            np.testing.assert_array_equal(own.actions, episodes.actions[e, :, agent])
            np.testing.assert_allclose(own.advantage, want, rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(own.target, want + values[:-1], rtol=1e-3, atol=1e-3)
            out, a = mlp(params["actor"], obs[:-1]), np.asarray(episodes.actions)[e, :, agent]
            if kind == "continuous":
                log_prob = stats.norm(out, 1).logpdf(a).sum(-1)
            else:
                log_prob = np.log((np.exp(out) / np.exp(out).sum(-1, keepdims=True))[range(6), a])
            np.testing.assert_allclose(own.log_prob, log_prob, rtol=1e-4)


def test_one_agents_samples_change_no_other_agent():
    domain = small_domain()
    state = one_learner(domain, SMALL, jax.random.key(0))
    learn = jax.jit(jax.vmap(partial(learn_from, kind="continuous", ppo=SMALL)))
    keys = jax.random.split(jax.random.key(1), 3)
    samples = samples_in(domain, SMALL, state.params, random_episodes(domain, 4))
    changed = samples._replace(advantage=samples.advantage.at[0].multiply(-3.0))
    one, _ = learn(state.params, state.optimiser, samples, keys)
    two, _ = learn(state.params, state.optimiser, changed, keys)
    apart = [flat(jax.tree.map(lambda x, y, i=i: x[i] - y[i], one, two)) for i in range(3)]
    assert np.abs(apart[0]).max() > 1e-4
    np.testing.assert_array_equal(np.abs(np.concatenate(apart[1:])).max(), 0)


def test_one_epoch_of_one_minibatch_is_one_adam_step():
    domain, ppo = small_domain(), PPO(envs=4, hidden=8, epochs=1, minibatches=1)
    state = one_learner(domain, ppo, jax.random.key(0))
    samples = samples_in(domain, ppo, state.params, random_episodes(domain, 4))
    own = [jax.tree.map(lambda x: x[1], tree) for tree in (state.params, state.optimiser, samples)]
    got, _ = jax.jit(partial(learn_from, kind="continuous", ppo=ppo))(*own, jax.random.key(2))
    gradient = jax.jit(partial(jax.grad(loss), kind="continuous", ppo=ppo))(own[0], own[2])
    g = flat(gradient)
    g = g * min(1, ppo.max_grad_norm / np.linalg.norm(g))
    np.testing.assert_allclose(flat(got) - flat(own[0]), -ppo.lr * g / (np.abs(g) + 1e-8), rtol=5e-2, atol=2e-6)


def test_a_seed_learns_the_same_whatever_its_company():
    domain = small_domain()
    keys = jax.random.split(jax.random.key(5), 3)
    together, curve = train_seeds(domain, SMALL, init_seeds(domain, SMALL, keys), 2)
    company = keys.at[jnp.array([0, 2])].set(jax.random.split(jax.random.key(6), 2))[jnp.array([1, 0, 2])]
    apart, other = train_seeds(domain, SMALL, init_seeds(domain, SMALL, company), 2)
    np.testing.assert_allclose(curve.team_return[1], other.team_return[0], rtol=1e-5)
    own, same = (flat(jax.tree.map(lambda x, k=k: x[k], s.params)) for s, k in ((together, 1), (apart, 0)))
    np.testing.assert_allclose(own, same, atol=1e-5)
    assert np.asarray(curve.finite).all() and np.asarray(together.number).tolist() == [2] * 3
    assert np.abs(np.asarray(curve.team_return) - np.asarray(other.team_return))[0].min() > 1e-3


def test_agents_start_with_networks_of_their_own():
    params = one_learner(small_domain(), SMALL, jax.random.key(0)).params
    w = np.asarray(params["actor"]["w0"])
    assert np.abs(w[0] - w[1]).max() > 0.1 and np.abs(w[1] - w[2]).max() > 0.1
    assert np.abs(w[0] - np.asarray(params["critic"]["w0"])[0]).max() > 0.1


def test_a_team_that_shares_one_network_learns():
    domain = make(HillClimbing(actions="discrete"))
    ppo = PPO(updates=40, lr=3e-3, sharing=True)
    state = init_seeds(domain, ppo, jax.random.split(jax.random.key(0), 2))
    _, progress = train_seeds(domain, ppo, state, 40)
    curve = np.asarray(progress.team_return)
    assert (curve[:, -5:].mean(axis=1) > curve[:, :2].mean(axis=1) + 2).all()


def test_a_domain_on_the_plane_takes_no_segment():
    with pytest.raises(InputError, match="whole episodes"):
        check_fit(small_domain(), PPO(segment=5))


def test_minibatches_must_divide_the_samples():
    with pytest.raises(InputError, match="7 equal minibatches"):
        check_fit(small_domain(), PPO(envs=4, minibatches=7))
