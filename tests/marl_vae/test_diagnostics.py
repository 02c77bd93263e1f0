"""Figures of use against closed forms, and planted collapses that must get the right verdict."""

from pathlib import Path

import jax
import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real
from marl_vae.diagnostics.latent_free import latent_free_policy
from marl_vae.diagnostics.units import (
    active_units,
    constant_prior_gain,
    information_of_agents,
    mutual_information,
    offsets,
    same_over_an_episode,
)
from marl_vae.diagnostics.usage import (
    BOTH_COLLAPSED,
    HEALTHY,
    JOINT_COLLAPSED,
    LOCAL_IGNORED,
    NO_GAIN,
    NOT_PASSED_ON,
    Usage,
    derangement,
    importance_bounds,
    swapped,
    verdict_of,
)
from marl_vae.diagnostics.words import key_figures, sentences
from marl_vae.embed import TrainedModel, load
from marl_vae.latents import Embeddings, Gaussian, Posteriors
from marl_vae.model import Dims, Model
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives import BetaBound
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.train import fit
from tests.builders import styled_batch, tiny_batch
from tests.marl_vae import tiny_task
from tests.marl_vae.linear_gaussian import SCALE, R, S, T, W, batch_of
from tests.marl_vae.test_bound import LinearGaussian, actions, exact


def latents_of(omega: np.ndarray, alpha: np.ndarray) -> Embeddings:
    ones = [np.ones_like(part, dtype=np.float32) for part in (omega, alpha)]
    return Embeddings(omega.astype(np.float32), ones[0], alpha.astype(np.float32), ones[1])


def test_active_units_by_hand() -> None:
    """Agent 1 is absent from the last two episodes, whose values must not count; agents' own places do not either."""
    omega = np.array([[0.0, 5.0], [0.3, 5.0], [0.0, 5.1], [0.3, 5.0]])
    alpha = np.zeros((4, 2, 2))
    alpha[:, 1] = 9.0
    alpha[2:, 1, 0] = 99.0
    alpha[:, 0, 1] = [0, 1, 0, 1]
    mask = np.ones((4, 3, 2), bool)
    mask[2:, :, 1] = False
    found = active_units(latents_of(omega, alpha), mask)
    assert found.omega.tolist() == [True, False] and found.alpha.tolist() == [False, True]


def test_mutual_information_in_closed_form() -> None:
    places = np.repeat([[-50.0], [50.0]], 400, axis=0)
    ones = np.ones_like(places)
    assert mutual_information(places, ones, 0) == pytest.approx(np.log(2), abs=1e-6)
    assert mutual_information(np.zeros((300, 3)), np.full((300, 3), 0.7), 0) == pytest.approx(0, abs=1e-9)
    apart = 100.0 * np.arange(300)[:, None]
    assert mutual_information(apart, np.ones_like(apart), 0) == pytest.approx(np.log(300), abs=1e-6)
    wide = np.random.default_rng(1).normal(size=(2000, 1)) * 3
    # z = mean + N(0, 1), mean ~ N(0, 9): ½ log(1 + 9).
    assert mutual_information(wide, np.ones_like(wide), 0) == pytest.approx(0.5 * np.log(10), abs=0.06)


def test_information_of_agents_reads_episodes_where_they_are_present() -> None:
    alpha, mask = np.zeros((200, 2, 1)), np.ones((200, 3, 2), bool)
    alpha[:, 0, 0] = np.where(np.arange(200) < 100, -50, 50)
    alpha[100:, 1] = 1e4
    mask[100:, :, 1] = False
    found = information_of_agents(latents_of(np.zeros((200, 1)), alpha), mask, 0)
    assert found == pytest.approx((np.log(2) + 0) / 2, abs=1e-6)


def test_the_gain_over_a_constant_prior_in_closed_form() -> None:
    """q(z_α) = p(z_α|z_ω) = N(w z_ω, 1): the constant's deviation is √(1 + w²), so each agent gains log √(1 + w²)."""
    z = np.random.default_rng(0).normal(size=(4000, 1))
    z = (z - z.mean()) / z.std()
    w = np.array([2.0, 0.5])
    mean = (z * w)[..., None].astype(np.float32)
    mask, one = np.ones((4000, 3, 2), bool), Gaussian(mean, np.zeros_like(mean))

    def found(prior: Gaussian) -> float:
        return constant_prior_gain(Posteriors(one, one, prior, mean, mean), mask)

    assert found(one) == pytest.approx(0.5 * np.log(1 + w**2).sum(), rel=1e-4)
    mask[:, :, 1] = False
    assert found(one) == pytest.approx(0.5 * np.log(5), rel=1e-4)
    assert found(Gaussian(0 * mean, np.full_like(mean, 0.5 * np.log(5)))) == pytest.approx(0, abs=1e-4)
    assert found(Gaussian(0 * mean, 0 * mean)) < -0.5  # a constant, and not the best one


def test_what_stays_the_same_over_an_episode() -> None:
    """Planted variances: .6 between episodes and .4 within; lengths are ragged, and padding holds rubbish."""
    rng = np.random.default_rng(0)
    mask = np.arange(20)[None, :, None] < rng.integers(5, 21, (3000, 1, 1))
    values = rng.normal(size=(3000, 1, 1, 2)) * 0.6**0.5 + rng.normal(size=(3000, 20, 1, 2)) * 0.4**0.5
    values = np.where(mask[..., None], values, 1e3)
    assert same_over_an_episode(offsets(values, mask)) == pytest.approx(0.6, abs=0.02)
    assert same_over_an_episode(offsets(rng.normal(size=(3000, 20, 1, 2)) + 7, np.ones((3000, 20, 1), bool))) < 0.002


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_residuals_are_what_the_policy_does_not_expect(kind: str) -> None:
    action = ActionSpec(kind, 3)
    batch = tiny_batch(action)
    dims = Dims(agents=3, obs=batch.obs.shape[-1], action=action)
    scale = fit_normaliser(batch, action, all_real(3, dims.obs, action))
    free = latent_free_policy(Model(hidden=5, decoder_hidden=5), dims, scale, 0)
    params = jax.tree.map(lambda x: 0 * x, free.params)  # expects the mean action, or every action alike
    found = np.asarray(free.residuals(params, batch))
    if kind == "continuous":
        wanted = (batch.actions - scale.action_mean) / scale.action_std
    else:
        wanted = np.eye(3)[batch.actions] - 1 / 3
    np.testing.assert_allclose(found, np.where(batch.mask[..., None], wanted, 0), atol=1e-5)


def test_importance_bounds_of_an_exact_hierarchy_rise_to_log_p() -> None:
    """Posteriors are moved by half a deviation; one draw gives log p − 4 · ⅛, all draws nearly log p."""
    model = TrainedModel(LinearGaussian(0.5, 1.0), SCALE, "exact")
    batch = TrajectoryBatch(*map(np.asarray, batch_of(np.broadcast_to(actions(), (400, 4, 3)))))
    found = importance_bounds(model, batch, key=jax.random.key(0))
    assert found[1] == pytest.approx(exact() - 0.5, abs=0.03)  # 40,000 draws of deviation 1
    assert found[1] < found[10] < found[100] < exact() + 0.01
    assert exact() - found[100] < 0.02


def test_swapped_latents_in_closed_form() -> None:
    """E −log N(a; z, R²) = ½ log 2πR² + ((a − E z)² + Var z) / 2R² for Gaussian z, here in the exact hierarchy.

    All episodes are the same one, so another's z_ω is as good as the own.
    """
    model, a, size = TrainedModel(LinearGaussian(0.0, 1.0), SCALE, "exact"), actions(), 20_000
    batch = TrajectoryBatch(*map(np.asarray, batch_of(np.broadcast_to(a, (size, 4, 3)))))
    found = swapped(model, batch, model.embed(batch), float(batch.mask.sum()), seed=0, key=jax.random.key(0))
    v = S**2 + R**2 / T
    precision = 1 + (W**2).sum() / v
    omega = (a.mean(0) * W / v).sum() / precision

    def nll(mean: np.ndarray, variance: np.ndarray) -> float:
        return float((0.5 * np.log(2 * np.pi * R**2) + ((a - mean) ** 2 + variance) / (2 * R**2)).mean())

    own = nll(W * omega, W**2 / precision + S**2)
    assert found["nll_alpha_prior"] == pytest.approx(own, abs=0.02)
    assert found["nll_omega_shuffled"] == pytest.approx(own, abs=0.02)
    assert found["nll_omega_prior"] == pytest.approx(nll(0 * W, W**2 + S**2), abs=0.04)
    local = 1 / (S**-2 + T * R**-2)
    alpha = (W * omega * S**-2 + a.mean(0) * T * R**-2) * local
    posterior = nll(alpha, local + (local * W * S**-2) ** 2 / precision)
    assert found["nll_shuffled"] == pytest.approx(posterior, abs=0.02)


def test_a_derangement_moves_every_row() -> None:
    for size in (2, 3, 50):
        found = derangement(size, 0)
        assert sorted(found.tolist()) == list(range(size)) and (found != np.arange(size)).all()


def alone(seed: int, n_episodes: int) -> TrajectoryBatch:
    """Three agents, each with a style of its own that tells nothing of the others."""
    columns = [styled_batch(10 * seed + agent, n_episodes) for agent in range(3)]
    obs, acts = (np.stack([batch[k][:, :, i] for i, batch in enumerate(columns)], axis=2) for k in (0, 1))
    return columns[0]._replace(obs=obs, actions=acts)


def hidden(seed: int, n_episodes: int) -> TrajectoryBatch:
    """A joint style that no observation tells: each agent's action is its goal, or the opposite, with noise."""
    batch, rng, style = styled_batch(seed, n_episodes), np.random.default_rng(100 + seed), styles(seed, n_episodes)
    goals = style * np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    moves = goals + 0.2 * rng.normal(size=batch.actions.shape)
    obs = rng.normal(size=batch.obs.shape).astype(np.float32)
    return batch._replace(obs=obs, actions=moves.astype(np.float32))


def styles(seed: int, n_episodes: int) -> np.ndarray:
    return np.random.default_rng(200 + seed).choice([-0.5, 0.5], (n_episodes, 1, 1, 1))


def seen(seed: int, n_episodes: int) -> TrajectoryBatch:
    """The same, but every agent observes the whole joint state: all observations, and the team's style."""
    batch = hidden(seed, n_episodes)
    whole = np.repeat(batch.obs.reshape(*batch.obs.shape[:2], 1, -1), 3, axis=2)
    style = np.broadcast_to(styles(seed, n_episodes), (*whole.shape[:3], 1))
    return batch._replace(obs=np.concatenate([whole, style], axis=-1).astype(np.float32))


PLANTED = {
    "healthy": (hidden, (0.3, 1.0), "healthy", "the latents save"),
    "weights far too large": (hidden, (100.0, 100.0), "both levels collapsed", "a KL weighs too much"),
    "the decoder sees all": (seen, (1.0, 1.0), "", "often it says all"),
    "independent agents": (alone, (1.0, 1.0), "joint level collapsed", "0 active units"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED)
def test_planted_collapses_get_the_right_verdict(case: str, tmp_path: Path) -> None:
    make, maxima, verdict, why = PLANTED[case]
    parts = [make(seed, size) for seed, size in ((1, 300), (2, 60), (3, 120))]
    n_obs = parts[0].obs.shape[-1]
    levels = [Cyclical(cycles=2, maximum=maximum) for maximum in maxima]
    task = tiny_task.task(BetaBound(), steps=600, batch=64, steps_per_dispatch=50, eval_every=300, learning_rate=5e-3)
    task = task._replace(
        model=Model(joint_width=3, local_width=2, hidden=8, decoder_hidden=32),
        schedule=Schedule(*levels),
        dims=Dims(agents=3, obs=n_obs, action=tiny_task.ACTION),
        features=all_real(3, n_obs, tiny_task.ACTION),
    )
    fit(parts[0], parts[1], task, tmp_path, lambda row: None)
    found = tiny_task.usage_of(load(tmp_path), *parts)
    assert found.verdict.startswith(verdict) and why in found.decided_by, found
    if case == "the decoder sees all":
        assert found.verdict in (BOTH_COLLAPSED, LOCAL_IGNORED)
    assert found.verdict in sentences(found)[0] and key_figures(found)[0][1] == found.verdict
    if case == "healthy":
        assert found.nll < found.nll_alpha_prior < found.nll_omega_shuffled
        assert found.mi_omega > 0.3 and found.nll_omega_shuffled > found.nll_alpha_prior + 0.3
    if case == "independent agents":
        assert found.active_alpha > 0 and found.nll < found.nll_without_latents - 0.1


def test_verdicts_follow_the_policy_upwards() -> None:
    fields: dict = {name: 1.0 for name in Usage._fields} | {"active_omega": 3, "active_alpha": 2, "left_over": 0.5}
    fields["form"] = "hierarchical"
    sound = Usage(**fields | {"nll": 0.0, "nll_shuffled": 1.0, "nll_without_latents": 0.5})
    assert verdict_of(sound)[0] == HEALTHY
    for change, verdict, why in (
        ({"nll_without_latents": 0.0}, NO_GAIN, "save 0.000 nats an action"),
        ({"prior_gain": 0.0}, NOT_PASSED_ON, "saves 0.00 nats"),
        ({"mi_omega": 0.0, "prior_gain": 0.0}, JOINT_COLLAPSED, "0.00 nats, 3 active"),
        ({"active_omega": 0, "prior_gain": 0.0}, JOINT_COLLAPSED, "1.00 nats, 0 active"),
        ({"nll_shuffled": 0.0, "active_omega": 0}, LOCAL_IGNORED, "a KL weighs too much"),
        ({"nll_shuffled": 0.0, "left_over": 0.0}, LOCAL_IGNORED, "often it says all"),
        ({"active_omega": 0, "active_alpha": 0, "nll_shuffled": 0.0}, BOTH_COLLAPSED, "a KL weighs too much"),
        # Shuffling costs, so the policy listens, however small the latents' scale is.
        ({"active_omega": 0, "active_alpha": 0}, JOINT_COLLAPSED, "0 active"),
    ):
        found = verdict_of(sound._replace(**change))
        assert found[0] == verdict and why in found[1], (change, found)
