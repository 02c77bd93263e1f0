"""Every objective's loss against plain loops, its two levels apart, and training with it."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec, InputError, all_real, to_device
from marl_vae.bound import bound
from marl_vae.checkpoint import Checkpoints
from marl_vae.embed import load
from marl_vae.metrics import read_metrics
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives import MMD, BetaBound, FreeBits, Importance, TwoLevel
from marl_vae.objectives.mmd import mmd2
from marl_vae.objectives.objective import Beta, Objective, Sample, in_nats_an_action, sampled
from marl_vae.objectives.two_level import factors, outer_gradient
from marl_vae.train import fit
from tests.builders import styled_batch, tiny_batch
from tests.marl_vae import oracles_objectives, tiny_task

ACTION = ActionSpec("continuous", 2)
CONFIG = Model(joint_width=5, local_width=2, hidden=7, decoder_hidden=6)
BETA = Beta(jnp.float32(0.3), jnp.float32(0.7))


def tiny(objective: Objective, seed: int = 0) -> tuple[HierarchicalVAE, Sample]:
    """A random model whose posteriors lie off the priors, on episodes from one of which an agent is absent."""
    batch = tiny_batch(ACTION, seed)
    batch.mask[2, :, 1] = False
    dims = Dims(agents=3, obs=batch.obs.shape[-1], action=ACTION)
    scale = fit_normaliser(batch, ACTION, all_real(3, dims.obs, ACTION))
    model = HierarchicalVAE(CONFIG, dims, rngs=nnx.Rngs(seed))
    for head in (model.joint, model.local, model.prior):
        head.out.kernel[...] = 150 * head.out.kernel[...]
    rows = jnp.arange(len(batch.mask))
    return model, sampled(objective, model, scale, to_device(batch), rows, beta=BETA, key=jax.random.key(4))


def summed(objective: Objective, sample: Sample) -> tuple[float, float]:
    tuned = objective.tuned(len(sample.rows))
    return tuple(float(loss(sample, tuned).sum()) for loss in (objective.inner_loss, objective.outer_loss))


def test_the_weighted_bound_is_the_bound() -> None:
    objective = BetaBound()
    _, sample = tiny(objective)
    assert sample.terms.recon.shape == (1, 6)
    expected = -bound(jax.tree.map(lambda x: x[0], sample.terms), *BETA)
    found = objective.inner_loss(sample, {}) + objective.outer_loss(sample, {})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(objective.outer_loss(sample, {}), 0.3 * sample.terms.kl_joint[0].sum(-1), rtol=1e-6)


@pytest.mark.parametrize("level", [0.0, 0.4, 1e3])
def test_free_bits_pay_for_each_dimension_what_is_beyond_the_free_part(level: float) -> None:
    objective = FreeBits(joint=level, local=level / 2)
    _, sample = tiny(objective)
    joint, local = (np.asarray(x[0], np.float64) for x in sample.terms[1:3])
    assert (joint.mean(0) > 0.4).any() and (joint.mean(0) < 0.4).any()  # so that .4 lies between
    team, own = oracles_objectives.free_bits(joint, local, np.asarray(sample.present), level, level / 2)
    inner, outer = summed(objective, sample)
    np.testing.assert_allclose(outer, 0.3 * team, rtol=1e-5)
    np.testing.assert_allclose(inner, 0.7 * own - float(sample.terms.recon.sum()), rtol=1e-5)


def test_bits_that_are_free_have_no_gradient() -> None:
    objective = FreeBits(joint=1e3, local=1e3)
    _, sample = tiny(objective)

    def paid(kl_joint, kl_local):
        terms = sample.terms._replace(kl_joint=kl_joint, kl_local=kl_local)
        changed = sample._replace(terms=terms)
        return (objective.inner_loss(changed, {}) + objective.outer_loss(changed, {})).sum()

    for grads in jax.grad(paid, argnums=(0, 1))(sample.terms.kl_joint, sample.terms.kl_local):
        assert not np.any(grads)


@pytest.mark.parametrize("draws", [1, 5])
def test_the_importance_weighted_bound_by_densities(draws: int) -> None:
    objective = Importance(draws=draws)
    _, sample = tiny(objective)
    found = sample.posteriors
    arrays = {"z_joint": found.z_joint, "z_local": found.z_local}
    for name, gaussian in {"joint": found.joint, "local": found.local, "prior": found.local_prior}.items():
        arrays |= {f"{name}_mean": gaussian.mean, f"{name}_std": jnp.exp(gaussian.log_std)}
    arrays = {name: np.asarray(value, np.float64) for name, value in arrays.items()}
    expected = oracles_objectives.importance(
        np.asarray(sample.terms.recon), arrays, np.asarray(sample.present), (0.3, 0.7)
    )
    np.testing.assert_allclose(objective.inner_loss(sample, {}), -expected, rtol=2e-5)
    assert not np.any(objective.outer_loss(sample, {}))


@pytest.mark.slow
def test_more_draws_tighten_the_bound() -> None:
    def value(draws: int) -> float:
        objective = Importance(draws=draws)
        _, sample = tiny(objective)
        return float(objective.inner_loss(sample._replace(beta=Beta(1.0, 1.0)), {}).mean())

    assert value(300) < value(20) - 0.1 < value(1) - 0.2


def test_mmd_against_loops_and_over_real_rows_alone() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)) * 1.5 + 0.4
    real = np.array([True] * 7 + [False] * 2)
    found = float(mmd2(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), jnp.asarray(real)))
    np.testing.assert_allclose(found, oracles_objectives.mmd2(x[:7], y[:7]), rtol=1e-4)
    assert abs(float(mmd2(jnp.asarray(x, jnp.float32), jnp.asarray(x, jnp.float32), jnp.asarray(real)))) < 1e-6


def test_mmd_of_both_levels() -> None:
    objective = MMD(joint=3.0, local=5.0, joint_share=0.5, local_share=0.25)
    _, sample = tiny(objective)
    found = jax.tree.map(lambda x: np.asarray(x[0], np.float64), sample.posteriors)
    fresh = [np.asarray(noise, np.float64) for noise in sample.fresh]
    inner, outer = summed(objective, sample)
    apart = oracles_objectives.mmd2(found.z_joint, fresh[0])
    kl_joint, kl_local = (np.asarray(x[0], np.float64).sum() for x in sample.terms[1:3])
    np.testing.assert_allclose(outer, 0.3 * (0.5 * kl_joint + 3.0 * apart * 6), rtol=1e-4)
    std, present = np.exp(found.local_prior.log_std), np.asarray(sample.present)
    theirs = found.local_prior.mean + std * fresh[1]
    spread = [std[present[:, i], i].mean(0) for i in range(3)]
    own = 0.0
    for i in range(3):
        here = np.asarray(sample.present)[:, i]
        own += oracles_objectives.mmd2(found.z_local[here, i] / spread[i], theirs[here, i] / spread[i])
    expected = 0.7 * (0.25 * kl_local + 5.0 * own * 6) - float(sample.terms.recon.sum())
    np.testing.assert_allclose(inner, expected, rtol=1e-4)


def test_one_differentiated_step_against_differences() -> None:
    """θ − η ∇ inner by hand: inner = w₀ (θ − 1)² + w₁ θ⁴, outer = (θ − 3)²."""

    def inner(theta, w):
        return w["a"] * (theta - 1) ** 2 + w["b"] * theta**4

    def outer(theta, w):
        return (theta - 3.0) ** 2

    theta, rate, w = 0.7, 0.1, {"a": 0.5, "b": 0.3}
    found = outer_gradient(inner, outer, rate)(jnp.float32(theta), {k: jnp.float32(v) for k, v in w.items()})

    def after(a: float, b: float) -> float:
        moved = theta - rate * (2 * a * (theta - 1) + 4 * b * theta**3)
        return (moved - 3.0) ** 2

    eps = 1e-6
    np.testing.assert_allclose(found["a"], (after(0.5 + eps, 0.3) - after(0.5 - eps, 0.3)) / (2 * eps), rtol=1e-4)
    np.testing.assert_allclose(found["b"], (after(0.5, 0.3 + eps) - after(0.5, 0.3 - eps)) / (2 * eps), rtol=1e-4)


def test_weights_of_two_levels_start_as_the_weighted_bound() -> None:
    plain = sum(summed(BetaBound(), tiny(BetaBound())[1]))
    for tune in ("levels", "episodes"):
        objective = TwoLevel(tune=tune)
        _, sample = tiny(objective)
        inner, outer = summed(objective, sample)
        np.testing.assert_allclose(inner, plain, rtol=1e-6)
        one = jax.tree.map(lambda x: x[0], sample.terms)
        np.testing.assert_allclose(outer, -float(bound(one, 1.0, 1.0).sum()), rtol=1e-6)


def test_confidence_weighs_its_own_episode() -> None:
    objective = TwoLevel(tune="episodes")
    _, sample = tiny(objective)
    sample = sample._replace(rows=jnp.array([4, 1, 0, 3, 2, 5]))
    whole = objective.inner_loss(sample, {"confidence": jnp.zeros(6)})
    low = objective.inner_loss(sample, {"confidence": jnp.zeros(6).at[0].set(-np.log(3.0))})  # 2 σ(−log 3) = 1/2
    np.testing.assert_allclose(np.asarray(low / whole), [1, 1, 0.5, 1, 1, 1], rtol=1e-6)


@pytest.mark.parametrize(
    "objective",
    [
        pytest.param(FreeBits(), marks=pytest.mark.slow),
        pytest.param(MMD(), marks=pytest.mark.slow),
        pytest.param(Importance(draws=3), marks=pytest.mark.slow),
        pytest.param(TwoLevel(), marks=pytest.mark.slow),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_each_lifts_the_bound(objective: Objective, tmp_path) -> None:
    tiny_task.run(tmp_path, objective=objective)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows[-1]["val_bound"] > rows[2]["val_bound"] + 0.3
    if isinstance(objective, TwoLevel):  # two of three cycles' β is above 0, so both factors have moved
        assert abs(rows[-1]["factor_joint"] - 1) > 0.01 and abs(rows[-1]["factor_local"] - 1) > 0.01


@pytest.mark.parametrize("draws", [1, 4])
def test_fresh_noise_is_no_draw_of_a_latent(draws: int) -> None:
    _, sample = tiny(Importance(draws=draws))
    found = sample.posteriors
    used = (found.z_joint - found.joint.mean) / jnp.exp(found.joint.log_std)
    apart = jnp.abs(used - sample.fresh.joint[None]).max((1, 2))
    assert apart.shape == (draws,) and apart.min() > 0.1


@pytest.mark.slow
def test_tuned_weights_go_on_after_an_interruption(tmp_path) -> None:
    objective = TwoLevel(tune="episodes")
    whole = tiny_task.run(tmp_path / "whole", objective=objective)
    rows = read_metrics(tmp_path / "whole" / "metrics.jsonl")

    def stop(row: dict) -> None:
        if row["step"] == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_task.run(tmp_path / "cut", stop, objective=objective)
    assert Checkpoints(tmp_path / "cut" / "checkpoints").latest() == 45
    again = tiny_task.run(tmp_path / "cut", objective=objective)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(again), strict=True):
        assert np.array_equal(a, b)
    assert read_metrics(tmp_path / "cut" / "metrics.jsonl") == rows


@pytest.mark.parametrize("weight", [3.0, 0.3])
def test_a_factor_goes_to_one_from_both_sides(weight: float) -> None:
    """recon (θ − 2)²/2 and KL θ²/2; inner is at its minimum θ = 2/(1 + β), outer is both at β = 1.

    Then ∂outer/∂(log factor) = η β (β − 1) θ² + O(η²), so that descent moves β towards 1.
    """

    def inner(theta, tuned):
        return ((theta - 2) ** 2 + weight * jnp.exp(tuned) * theta**2) / 2

    def outer(theta, tuned):
        return ((theta - 2) ** 2 + theta**2) / 2

    theta, rate = 2 / (1 + weight), 1e-3
    found = float(outer_gradient(inner, outer, rate)(jnp.float32(theta), jnp.float32(0.0)))
    assert found == pytest.approx(rate * weight * (weight - 1) * theta**2, rel=0.02)


@pytest.mark.slow
def test_validation_episodes_distrust_episodes_that_are_noise(tmp_path) -> None:
    """A third of the training episodes have their agents' actions replaced by noise."""
    rng, good, bad = np.random.default_rng(0), styled_batch(0, 40), styled_batch(3, 20)
    bad = bad._replace(actions=(3 * rng.normal(size=bad.actions.shape)).astype(np.float32))
    both = type(good)(*(np.concatenate(fields) for fields in zip(good, bad, strict=True)))
    task = tiny_task.task(TwoLevel(tune="episodes", outer_rate=0.2))
    (state,) = fit(both, styled_batch(1, 20), task, tmp_path, lambda row: None)
    found = np.asarray(factors(state.tuned)["confidence"])
    assert found[40:].mean() < found[:40].mean() - 0.1, (found[:40].mean(), found[40:].mean())


def test_an_objective_has_a_level_at_least() -> None:
    with pytest.raises(TypeError, match="neither"):
        type("Nothing", (Objective,), {})
    with pytest.raises(TypeError, match="abstract"):
        Objective()


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (FreeBits, {"joint": -0.1}),
        (FreeBits, {"local": float("nan")}),
        (Importance, {"draws": 0}),
        (MMD, {"joint": float("inf")}),
        (TwoLevel, {"tune": "lots"}),
        (TwoLevel, {"inner_rate": 0.0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind: type, settings: dict) -> None:
    with pytest.raises(InputError, match=f"objective.{next(iter(settings))}"):
        kind(**settings)


def test_the_loss_of_a_batch_twice_is_the_loss_of_the_batch() -> None:
    loss, batch = jnp.arange(6.0), to_device(tiny_batch(ACTION))
    twice = jax.tree.map(lambda x: jnp.concatenate([x, x]), batch)
    assert float(in_nats_an_action(jnp.concatenate([loss, loss]), twice)) == float(in_nats_an_action(loss, batch))
    assert float(in_nats_an_action(loss, batch)) == pytest.approx(15.0 / float(batch.mask.sum()))


def test_the_example_of_the_docs_trains(tmp_path) -> None:
    """The block of docs/objectives.md, as it stands, and what it promises: means of z_ω go to zero."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "objectives.md").read_text()
    block = text.split("```python\n")[1].split("```")[0]
    assert len(block.strip().splitlines()) <= 30
    module: dict = {"__name__": "sparse"}
    exec(block, module)
    sizes = []
    for weight in (0.0, 30.0):
        folder = tmp_path / str(weight)
        tiny_task.run(folder, objective=module["Sparse"](weight=weight))
        sizes.append(np.abs(load(folder).embed(styled_batch(5, 30)).omega_mean).mean())
    assert sizes[1] < 0.5 * sizes[0], sizes
