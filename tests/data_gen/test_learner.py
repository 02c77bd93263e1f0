from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from data_gen.domains.hill_climbing import HillClimbing, make
from data_gen.learner import (
    PPO,
    Samples,
    by_learner,
    check_fit,
    gae,
    init_learner,
    init_seeds,
    inputs_of,
    learn_from,
    loss,
    samples_of,
    train_seeds,
    value_of,
)
from data_gen.policy import DISTRIBUTIONS, head_of, init_actor, init_network, network
from data_gen.rollout import Episode
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.oracles_plane import advantages, mlp

SMALL = PPO(updates=4, envs=4, hidden=8, minibatches=2, epochs=2)
KINDS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 5)}


one_learner = jax.jit(init_learner, static_argnums=(0, 1))
samples_in = jax.jit(samples_of, static_argnums=(0, 1))


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


def test_advantages_bootstrap_from_the_value_after_the_cut():
    rng = np.random.default_rng(0)
    rewards, values, last = rng.normal(size=(3, 7)), rng.normal(size=(3, 7)), rng.normal(size=3)
    got = gae(jnp.asarray(rewards), jnp.asarray(values), jnp.asarray(last), 0.9, 0.8)
    want = [advantages(r, v, w, 0.9, 0.8) for r, v, w in zip(rewards, values, last, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_constant_reward_and_its_true_value_leave_no_advantage():
    gamma = 0.9
    value = jnp.full((2, 5), 1 / (1 - gamma))
    got = gae(jnp.ones((2, 5)), value, value[:, 0], gamma, 0.7)
    np.testing.assert_allclose(got, 0, atol=1e-5)


def test_gaussian_agrees_with_scipy():
    rng = np.random.default_rng(0)
    mean, log_std, a = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    head, gaussian = jnp.asarray(np.concatenate([mean, log_std], -1)), DISTRIBUTIONS["continuous"]
    normal = stats.norm(mean, np.exp(log_std))
    np.testing.assert_allclose(gaussian.log_prob(head, jnp.asarray(a)), normal.logpdf(a).sum(-1), rtol=1e-5)
    np.testing.assert_allclose(gaussian.entropy(head), normal.entropy().sum(-1), rtol=1e-5)
    drawn = np.asarray(gaussian.sample(jnp.tile(head[:1], (20000, 1)), jax.random.key(0)))
    np.testing.assert_allclose(drawn.mean(0), mean[0], atol=5 * np.exp(log_std[0]).max() / 20000**0.5)
    np.testing.assert_allclose(drawn.std(0), np.exp(log_std[0]), rtol=0.03)


def test_categorical_agrees_with_scipy():
    rng = np.random.default_rng(0)
    logits, a = rng.normal(size=(4, 5)), rng.integers(0, 5, 4)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    head, categorical = jnp.asarray(logits), DISTRIBUTIONS["discrete"]
    np.testing.assert_allclose(categorical.log_prob(head, jnp.asarray(a)), np.log(p[range(4), a]), rtol=1e-5)
    np.testing.assert_allclose(categorical.entropy(head), [stats.entropy(row) for row in p], rtol=1e-5)
    drawn = np.asarray(categorical.sample(jnp.tile(head[:1], (20000, 1)), jax.random.key(0)))
    np.testing.assert_allclose(np.bincount(drawn, minlength=5) / 20000, p[0], atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_new_policies_are_nearly_standard_and_networks_are_plain_tanh_layers(kind):
    params = init_actor(jax.random.key(0), 4, 16, KINDS[kind])
    x = np.random.default_rng(0).normal(size=(7, 4))
    head = np.asarray(head_of(params, jnp.asarray(x), kind))
    np.testing.assert_allclose(head, 0, atol=0.15)
    params = init_network(jax.random.key(1), (4, 16, 16, 3), 1.0)
    np.testing.assert_allclose(network(params, jnp.asarray(x)), mlp(params, x), rtol=1e-4, atol=1e-5)


def test_standard_deviation_has_a_floor():
    params = init_actor(jax.random.key(0), 4, 16, KINDS["continuous"]) | {"raw_std": jnp.full(2, -50.0)}
    log_std = np.asarray(head_of(params, jnp.zeros((1, 4)), "continuous"))[0, 2:]
    np.testing.assert_allclose(np.exp(log_std), 0.1, rtol=1e-5)


def test_values_are_in_units_of_return():
    critic = init_network(jax.random.key(1), (4, 8, 8, 1), 1.0)
    x = np.random.default_rng(0).normal(size=(7, 4))
    np.testing.assert_allclose(value_of(critic, jnp.asarray(x), 0.9), mlp(critic, x)[:, 0] / (1 - 0.9), rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_equals_numpy(kind):
    rng, n = np.random.default_rng(0), 11
    ppo = PPO(clip=0.1, entropy=0.3, gamma=0.9)
    params = {
        "actor": init_actor(jax.random.key(0), 4, 8, KINDS[kind]),
        "critic": init_network(jax.random.key(1), (4, 8, 8, 1), 1.0),
    }
    params["actor"]["w2"] = 50 * params["actor"]["w2"]
    obs, old, advantage, target = (
        rng.normal(size=(n, 4)),
        rng.normal(size=n) - 2,
        rng.normal(size=n),
        rng.normal(size=n),
    )
    out = mlp(params["actor"], obs)
    if kind == "continuous":
        actions = rng.normal(size=(n, 2))
        log_prob = stats.norm(out, 1).logpdf(actions).sum(-1)
        entropy = 2 * stats.norm(0, 1).entropy()
    else:
        actions = rng.integers(0, 5, n)
        p = np.exp(out) / np.exp(out).sum(-1, keepdims=True)
        log_prob, entropy = np.log(p[range(n), actions]), np.mean([stats.entropy(row) for row in p])
    ratio, scaled = np.exp(log_prob - old), (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    gain = np.minimum(ratio * scaled, np.clip(ratio, 0.9, 1.1) * scaled).mean()
    error = mlp(params["critic"], obs)[:, 0] - (1 - 0.9) * target
    want = -gain + 0.5 * np.mean(error**2) - 0.3 * entropy
    samples = Samples(*(jnp.asarray(x) for x in (obs, actions, old, advantage, target)))
    np.testing.assert_allclose(loss(params, samples, kind, ppo), want, rtol=1e-4)


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


def test_learners_by_agent():
    x = jnp.arange(12.0).reshape(3, 2, 2)
    assert by_learner(x, sharing=False).shape == (3, 1, 2, 2) and by_learner(x, sharing=True).shape == (1, 3, 2, 2)
    seen = np.asarray(inputs_of(x, sharing=True))
    np.testing.assert_array_equal(seen[0, :, :, 2:], np.broadcast_to(np.eye(3)[:, None], (3, 2, 3)))


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


@pytest.mark.parametrize(
    "values, word",
    [({"updates": 0}, "updates"), ({"lr": -1.0}, "lr"), ({"gamma": 1.0}, "gamma"), ({"entropy": -0.1}, "entropy")],
)
def test_a_wrong_value_names_itself(values, word):
    with pytest.raises(InputError, match=word):
        PPO(**values)


def test_minibatches_must_divide_the_samples():
    with pytest.raises(InputError, match="7 equal minibatches"):
        check_fit(small_domain(), PPO(envs=4, minibatches=7))
