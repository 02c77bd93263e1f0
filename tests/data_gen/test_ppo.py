import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from data_gen.learners.policy import head_of, init_actor, init_network
from data_gen.learners.ppo import PPO, Samples, by_learner, gae, inputs_of, loss, real_head, value_of
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.oracles_plane import advantages, mlp

KINDS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 5)}


def test_advantages_bootstrap_from_the_value_after_the_cut():
    rng = np.random.default_rng(0)
    rewards, values, last = rng.normal(size=(3, 7)), rng.normal(size=(3, 7)), rng.normal(size=3)
    following = np.concatenate([values[:, 1:], last[:, None]], axis=1)
    never = jnp.zeros((3, 7), bool)
    got = gae(*(jnp.asarray(x) for x in (rewards, values, following)), never, never, (0.9, 0.8))
    want = [advantages(r, v, w, 0.9, 0.8) for r, v, w in zip(rewards, values, last, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_advantages_stop_at_an_end_and_a_fall_is_worth_nothing_more():
    rng = np.random.default_rng(1)
    rewards, values, following = rng.normal(size=(3, 1, 9))
    terminated, ended = np.zeros((2, 1, 9), bool)
    ended[0, [2, 5]], terminated[0, 5] = True, True
    arrays = (jnp.asarray(x) for x in (rewards, values, following, terminated, ended))
    got = np.asarray(gae(*arrays, (0.9, 0.8)))[0]
    # Three episodes of their own: the first is cut after step 2, the second falls at 5, the third runs on.
    for part, last in ((slice(0, 3), following[0, 2]), (slice(3, 6), 0.0), (slice(6, 9), following[0, 8])):
        inner = np.concatenate([following[0, part][:-1], [last]])
        delta = rewards[0, part] + 0.9 * inner - values[0, part]
        want = [sum((0.9 * 0.8) ** k * d for k, d in enumerate(delta[t:])) for t in range(3)]
        np.testing.assert_allclose(got[part], want, rtol=1e-5)


def test_constant_reward_and_its_true_value_leave_no_advantage():
    gamma = 0.9
    value = jnp.full((2, 5), 1 / (1 - gamma))
    never = jnp.zeros((2, 5), bool)
    got = gae(jnp.ones((2, 5)), value, value, never, never, (gamma, 0.7))
    np.testing.assert_allclose(got, 0, atol=1e-5)


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
    samples = Samples(*(jnp.asarray(x) for x in (obs, actions, np.ones((n, 2)), old, advantage, target)))
    np.testing.assert_allclose(loss(params, samples, kind, ppo), want, rtol=1e-4)


def test_padded_action_dimensions_change_nothing():
    rng, n = np.random.default_rng(0), 7
    ppo, kind = PPO(entropy=0.3), "continuous"
    wide = init_actor(jax.random.key(0), 4, 8, ActionSpec(kind, 3), 0.5)
    narrow = wide | {"w2": wide["w2"][:, :2], "b2": wide["b2"][:2], "raw_std": wide["raw_std"][:2]}
    critic = init_network(jax.random.key(1), (4, 8, 8, 1), 1.0)
    obs, old, advantage, target = rng.normal(size=(n, 4)), *rng.normal(size=(3, n))
    actions, real = rng.normal(size=(n, 3)), np.tile([1.0, 1.0, 0.0], (n, 1))
    samples = Samples(*(jnp.asarray(x) for x in (obs, actions, real, old, advantage, target)))
    padded = samples._replace(actions=samples.actions * samples.real)
    plain = samples._replace(actions=samples.actions[:, :2], real=samples.real[:, :2])
    # The padding's density is that of 0 under N(0, 1), in the old policy as in the new.
    padded = padded._replace(log_prob=padded.log_prob - 0.5 * np.log(2 * np.pi))
    one, two = (
        jax.value_and_grad(loss)({"actor": actor, "critic": critic}, which, kind, ppo)
        for actor, which in ((wide, padded), (narrow, plain))
    )
    constant = ppo.entropy * 0.5 * np.log(2 * np.pi * np.e)
    np.testing.assert_allclose(one[0], two[0] - constant, rtol=1e-4)
    np.testing.assert_allclose(one[1]["actor"]["w2"][:, :2], two[1]["actor"]["w2"], atol=1e-6)
    assert not np.any(one[1]["actor"]["w2"][:, 2]) and one[1]["actor"]["raw_std"][2] == 0
    assert np.any(two[1]["actor"]["w2"])
    head = head_of(wide, jnp.asarray(obs), kind)
    np.testing.assert_array_equal(real_head(head, jnp.asarray(real), kind)[:, [2, 5]], 0)


def test_learners_by_agent():
    x = jnp.arange(12.0).reshape(3, 2, 2)
    assert by_learner(x, sharing=False).shape == (3, 1, 2, 2) and by_learner(x, sharing=True).shape == (1, 3, 2, 2)
    seen = np.asarray(inputs_of(x, sharing=True))
    np.testing.assert_array_equal(seen[0, :, :, 2:], np.broadcast_to(np.eye(3)[:, None], (3, 2, 3)))


@pytest.mark.parametrize(
    "values, word",
    [
        ({"updates": 0}, "updates"),
        ({"lr": -1.0}, "lr"),
        ({"gamma": 1.0}, "gamma"),
        ({"entropy": -0.1}, "entropy"),
        ({"initial_std": 0.1}, "initial_std"),
        ({"segment": -1}, "segment"),
    ],
)
def test_a_wrong_value_names_itself(values, word):
    with pytest.raises(InputError, match=word):
        PPO(**values)
