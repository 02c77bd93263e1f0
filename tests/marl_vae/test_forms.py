"""The baselines: a flat VAE and a deterministic autoencoder, by closed forms, and what each refuses."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats
from flax import nnx

from data_gen.trajectory import ActionSpec, InputError, to_device
from marl_vae.bound import bound_terms, make_noise
from marl_vae.checkpoint import Description, read_description, write_description
from marl_vae.diagnostics.usage import Usage, verdict_of
from marl_vae.diagnostics.words import key_figures, sentences
from marl_vae.embed import TrainedModel, load
from marl_vae.metrics import describe, read_metrics
from marl_vae.model import AUTOENCODER, FLAT, FORMS, Dims, HierarchicalVAE, Model
from marl_vae.normalise import scaled_obs
from marl_vae.objectives import MMD, OBJECTIVES, BetaBound, FreeBits, Importance, TwoLevel
from marl_vae.objectives.objective import Beta, check_form, sampled
from marl_vae.policy import action_log_likelihood
from tests.builders import B, N, styled_batch
from tests.marl_vae import oracles_objectives, tiny_task
from tests.marl_vae.test_diagnostics import hidden
from tests.marl_vae.test_model import ACTIONS, WIDTHS, make
from tests.marl_vae.test_train import same

CONTINUOUS = ACTIONS["continuous"]
LEVELS = Beta(jnp.float32(0.3), jnp.float32(0.7))


def terms_of(form: str, seed: int = 0):
    model, scale, batch = make(CONTINUOUS, form=form)
    return bound_terms(model, scale, to_device(batch), make_noise(jax.random.key(seed), model, B)), model, scale, batch


def policy_of(model, scale, batch, z: np.ndarray) -> np.ndarray:
    """Σ_it log π with the given latents, by the decoder and the likelihood alone."""
    device = to_device(batch)
    index = jnp.broadcast_to(jnp.eye(N)[None], (B, N, N))
    out = model.decoder(scaled_obs(scale, device), jnp.concatenate([jnp.asarray(z), index], -1), device.mask)
    return np.asarray(action_log_likelihood(out, device, CONTINUOUS, scale, 0.05).sum((1, 2)))


def test_the_flat_policy_is_given_the_joint_draw_itself_and_only_the_joint_level_pays() -> None:
    found, model, scale, batch = terms_of(FLAT)
    noise = make_noise(jax.random.key(0), model, B)
    joint = model.joint(model.features(scale, to_device(batch))[0])
    mean, std = np.asarray(joint.mean, np.float64), np.exp(np.asarray(joint.log_std, np.float64))
    z = (mean + std * np.asarray(noise.joint)).astype(np.float32)
    wanted = policy_of(model, scale, batch, np.repeat(z[:, None], N, 1))
    np.testing.assert_allclose(found.recon, wanted, rtol=1e-4)
    np.testing.assert_allclose(found.kl_joint, (std**2 + mean**2 - 1) / 2 - np.log(std), rtol=1e-3, atol=1e-4)
    assert found.kl_local.shape == (B, N, 0)


def test_flat_latents_of_agents_are_the_joint_ones_without_spread() -> None:
    model, scale, batch = make(CONTINUOUS, form=FLAT)
    trained = TrainedModel(model, scale, "flat")
    latents = trained.embed(batch)
    np.testing.assert_array_equal(latents.alpha_mean, np.repeat(latents.omega_mean[:, None], N, 1))
    assert latents.alpha_std.shape == latents.alpha_mean.shape and not latents.alpha_std.any()
    prior = trained.local_prior(latents.omega_mean)
    np.testing.assert_array_equal(prior.mean, latents.alpha_mean)
    assert not np.exp(prior.log_std).any()
    by_hand = policy_of(model, scale, batch, latents.alpha_mean)
    np.testing.assert_allclose(trained.log_likelihood(batch, latents.alpha_mean), by_hand, rtol=1e-5)
    assert trained.act(batch.obs[:, 0], latents.alpha_mean).shape == (B, N, 2)


def test_flat_importance_weights_by_densities() -> None:
    """log w = log π + log N(z; 0, I) − log q(z), drawn as importance_bounds draws."""
    model, scale, batch = make(CONTINUOUS, form=FLAT)
    trained, key, draws = TrainedModel(model, scale, "flat"), jax.random.key(5), 3
    found, latents = trained.log_weights(batch, draws, key=key), trained.embed(batch)
    for k, one in enumerate(jax.random.split(key, draws)):
        z = latents.omega_mean + latents.omega_std * np.asarray(make_noise(one, model, B).joint)
        q = scipy.stats.norm(latents.omega_mean, latents.omega_std).logpdf(z).sum(-1)
        p = scipy.stats.norm.logpdf(z).sum(-1)
        recon = policy_of(model, scale, batch, np.repeat(z[:, None], N, 1))
        np.testing.assert_allclose(found[:, k], recon + p - q, rtol=1e-3)


def test_latents_of_an_autoencoder_are_points() -> None:
    """Two noises, one result: that of the policy at the heads' outputs; and no number that looks like a bound."""
    (found, model, scale, batch), (other, *_) = terms_of(AUTOENCODER, 0), terms_of(AUTOENCODER, 1)
    assert same(found, other)
    assert found.kl_joint.shape == (B, 0) and found.kl_local.shape == (B, N, 0)
    trained = TrainedModel(model, scale, "points")
    latents = trained.embed(batch)
    assert not latents.omega_std.any() and not latents.alpha_std.any()
    np.testing.assert_allclose(found.recon, policy_of(model, scale, batch, latents.alpha_mean), rtol=1e-4)
    for undefined in (
        lambda: trained.elbo(batch, key=jax.random.key(0)),
        lambda: trained.log_weights(batch, 2, key=jax.random.key(0)),
        lambda: trained.local_prior(latents.omega_mean),
    ):
        with pytest.raises(InputError, match="is an autoencoder"):
            undefined()


@pytest.mark.parametrize("form", [pytest.param(FORMS[0], marks=pytest.mark.slow), *FORMS[1:]])
def test_every_weight_of_a_form_learns(form: str) -> None:
    """There is no network that a form does not use, and no gradient that is not finite."""
    model, scale, batch = make(CONTINUOUS, form=form, predict_state=0.5)
    graph, params = nnx.split(model)

    def loss(params):
        args = {"beta": LEVELS, "key": jax.random.key(0)}
        sample = sampled(BetaBound(), nnx.merge(graph, params), scale, to_device(batch), jnp.arange(B), **args)
        return (BetaBound().inner_loss(sample, {}) + BetaBound().outer_loss(sample, {})).sum()

    grads = nnx.to_pure_dict(jax.jit(jax.grad(loss))(params))
    parts = {"team_encoder", "joint", "decoder", "dynamics"}
    of_agents = {FLAT: set(), AUTOENCODER: {"local_encoder", "local"}}
    assert grads.keys() == parts | of_agents.get(form, {"local_encoder", "local", "prior"})
    for path, grad in jax.tree.leaves_with_path(grads):
        assert np.isfinite(grad).all() and np.abs(grad).max() > 0, jax.tree_util.keystr(path)


def sample_of(objective, form: str):
    model, scale, batch = make(CONTINUOUS, form=form)
    batch.mask[2, :, 1] = False
    args = {"beta": LEVELS, "key": jax.random.key(4)}
    return sampled(objective, model, scale, to_device(batch), jnp.arange(B), **args)


@pytest.mark.parametrize("objective", [BetaBound(), FreeBits(), MMD(), Importance(draws=3), TwoLevel()])
def test_every_objective_trains_a_flat_model_on_the_joint_level_alone(objective) -> None:
    sample, tuned = sample_of(objective, FLAT), objective.tuned(B)
    inner, outer = (np.asarray(f(sample, tuned)) for f in (objective.inner_loss, objective.outer_loss))
    recon, joint = (np.asarray(x, np.float64) for x in sample.terms[:2])
    if isinstance(objective, Importance):
        found = sample.posteriors
        z, mean, std = (
            np.asarray(x, np.float64) for x in (found.z_joint, found.joint.mean, np.exp(found.joint.log_std))
        )
        ratio = (scipy.stats.norm.logpdf(z) - scipy.stats.norm(mean, std).logpdf(z)).sum(-1)
        wanted = np.log(3) - scipy.special.logsumexp(recon + 0.3 * ratio, axis=0)
        np.testing.assert_allclose(inner, wanted, rtol=1e-4)
        assert not outer.any()
    elif isinstance(objective, TwoLevel):
        np.testing.assert_allclose(inner, 0.3 * joint[0].sum(-1) - recon[0], rtol=1e-5)
        np.testing.assert_allclose(outer, joint[0].sum(-1) - recon[0], rtol=1e-5)
    else:
        np.testing.assert_allclose(inner, -recon[0], rtol=1e-6)
        apart = oracles_objectives.mmd2(np.asarray(sample.posteriors.z_joint[0]), np.asarray(sample.fresh.joint))
        paid = {
            BetaBound: joint[0].sum(-1),
            FreeBits: np.full(B, np.maximum(0.25, joint[0].mean(0)).sum()),
            MMD: 0.1 * joint[0].sum(-1) + 20 * apart,
        }
        np.testing.assert_allclose(outer, 0.3 * paid[type(objective)], rtol=1e-4)


@pytest.mark.parametrize("objective", [BetaBound(), TwoLevel(tune="episodes")])
def test_an_autoencoder_trains_on_the_data_term_alone(objective) -> None:
    check_form(objective, Model(form=AUTOENCODER))
    sample = sample_of(objective, AUTOENCODER)
    inner, outer = (f(sample, objective.tuned(B)) for f in (objective.inner_loss, objective.outer_loss))
    np.testing.assert_allclose(inner, -sample.terms.recon[0], rtol=1e-6)
    np.testing.assert_allclose(outer, -sample.terms.recon[0] if isinstance(objective, TwoLevel) else 0.0, rtol=1e-6)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_what_cannot_train_a_form_is_refused_before_anything_is_written(name: str, tmp_path: Path) -> None:
    for form in FORMS:
        objective, model = OBJECTIVES[name](), replace(tiny_task.MODEL, form=form)
        if form == AUTOENCODER and name != "beta_bound":
            with pytest.raises(InputError, match=f"{type(objective).__name__} cannot train model.form=autoencoder: "):
                tiny_task.run(tmp_path, objective=objective, model=model)
        else:
            check_form(objective, model)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("form", [FLAT, AUTOENCODER])
def test_a_form_trains_and_its_log_says_what_there_is(form: str, tmp_path: Path) -> None:
    state = tiny_task.run(tmp_path, model=replace(tiny_task.MODEL, form=form), steps=60)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    names = {name for row in rows for name in row}
    value = "val_recon" if form == AUTOENCODER else "val_bound"
    random = set() if form == AUTOENCODER else {"beta_omega", "kl_omega", "train_bound"}
    units = {"active_omega"} | ({"active_alpha"} if form == AUTOENCODER else set())
    assert names == {"step", "loss", "recon", "cycle_end", "best_step", value} | random | units
    ends = [row[value] for row in rows if value in row]
    assert ends[-1] > ends[0] and float(state.best_bound) == np.float32(max(r[value] for r in rows if "best_step" in r))
    assert ("bound" in describe(rows[-1])) == (form == FLAT) and "α" not in describe(rows[-1])
    model, batch = load(tmp_path), styled_batch(2, 10)
    assert model.config.form == form
    if form == AUTOENCODER:  # what chose the model is the mean data term, to the last digit of a sum
        found = model.drawn(styled_batch(1, 20), key=jax.random.key(0)).terms
        np.testing.assert_allclose(found.recon.mean(), state.best_bound, rtol=1e-5)
    graph = nnx.split(HierarchicalVAE(model.config, model.dims, rngs=nnx.Rngs(0)))[0]
    best = TrainedModel(nnx.merge(graph, state.best), model.scale, "best")
    assert same(model.embed(batch), best.embed(batch))


@pytest.mark.parametrize("form", [FLAT, AUTOENCODER])
def test_what_a_form_lacks_is_undefined_and_no_number(form: str, monkeypatch) -> None:
    monkeypatch.setattr("marl_vae.diagnostics.latent_free.ROUNDS", 1)
    model, scale, batch = make(CONTINUOUS, form=form)
    found = tiny_task.usage_of(TrainedModel(model, scale, form), batch, batch, batch)
    lacks = {"kl_alpha", "mi_alpha", "prior_gain", "nll_alpha_prior"} | (
        {"active_alpha"}
        if form == FLAT
        else {"kl_omega", "mi_omega", "iwae_1", "iwae_10", "iwae_100", "nll_omega_shuffled", "nll_omega_prior"}
    )
    assert {name for name, value in found._asdict().items() if value is None} == lacks
    assert found.kl_alpha_dims == [] and (found.kl_omega_dims == []) == (form == AUTOENCODER)
    assert Usage(**json.loads(json.dumps(found._asdict(), allow_nan=False))) == found
    shown = {name: meaning for name, value, meaning in key_figures(found) if value == "–"}
    absent = {
        "KL of z_alpha",
        "information in z_alpha",
        "gain of p(z_alpha | z_omega)",
        "action NLL, own z_omega alone",
    }
    assert absent < shown.keys() and all(meaning.startswith("undefined: a") for meaning in shown.values())
    words = " ".join(sentences(found))
    assert "undefined" in words and ("bound -" in words) == (form == FLAT)


def test_verdicts_of_models_that_lack_levels() -> None:
    fields = {name: 1.0 for name in Usage._fields} | {"active_omega": 3, "left_over": 0.5, "nll": 0.0}
    used = {"nll_shuffled": 1.0, "nll_without_latents": 0.5}
    without = dict.fromkeys(("kl_alpha", "mi_alpha", "prior_gain", "nll_alpha_prior"))
    flat = Usage(**fields | used | without | {"active_alpha": None, "form": FLAT})
    points = Usage(**fields | used | without | {"active_alpha": 0, "mi_omega": None, "form": AUTOENCODER})
    for found, change, verdict, why in (
        (flat, {}, "healthy: the joint level is used (there is no local level)", "save 0.500 nats an action, z_omega"),
        (flat, {"nll_shuffled": 0.0}, "joint level ignored", "a KL weighs too much"),
        (flat, {"nll_shuffled": 0.0, "active_omega": 0}, "joint level collapsed", "a KL weighs too much"),
        (flat, {"mi_omega": 0.0}, "joint level collapsed", "0.00 nats, 3 active"),
        (flat, {"nll_without_latents": 0.0}, "no gain from latents", "0.000 nats an action"),
        (points, {}, "latents used: an autoencoder has no KL", "save 0.500"),
        (points, {"active_omega": 0}, "latents used: an autoencoder has no KL", "save 0.500"),
        (points, {"nll_shuffled": 0.0}, "latents ignored", "0.50 of what the observation leaves is an offset"),
        (points, {"nll_without_latents": 0.0}, "no gain from latents", "0.000 nats an action"),
    ):
        said = verdict_of(found._replace(**change))
        assert said[0].startswith(verdict) and why in said[1], (change, said)
        assert found.form == FLAT or "KL weighs" not in said[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "maximum", "verdict"),
    [
        (FLAT, 0.3, "healthy: the joint level is used"),
        (FLAT, 100.0, "joint level collapsed"),
        (AUTOENCODER, 0.3, "latents used"),
    ],
)
def test_planted_styles_get_the_right_verdict(form: str, maximum: float, verdict: str, tmp_path: Path) -> None:
    parts = [hidden(seed, size) for seed, size in ((1, 300), (2, 60), (3, 120))]
    level = tiny_task.Cyclical(cycles=2, maximum=maximum)
    settings = {"steps": 600, "batch": 64, "steps_per_dispatch": 50, "eval_every": 300, "learning_rate": 5e-3}
    task = tiny_task.task(BetaBound(), model=Model(form=form, joint_width=3, hidden=8, decoder_hidden=32), **settings)
    tiny_task.fit(*parts[:2], task._replace(schedule=tiny_task.Schedule(level, level)), tmp_path, lambda row: None)
    found = tiny_task.usage_of(load(tmp_path), *parts)
    assert found.verdict.startswith(verdict), found


def test_a_checkpoint_from_before_the_forms_is_read_as_the_hierarchical_one(tmp_path: Path) -> None:
    action = ActionSpec("continuous", 2)
    description = Description(Model(**WIDTHS), Dims(N, 4, action), {"train": {"steps": 3}}, "data")
    write_description(tmp_path, description)
    path = tmp_path / "model.json"
    saved = json.loads(path.read_text())
    for name in ("form", "decoder", "predict_state"):
        del saved["model"][name]
    path.write_text(json.dumps(saved))
    assert read_description(tmp_path) == description
    write_description(tmp_path, description)
    with pytest.raises(InputError, match="another model"):
        write_description(tmp_path, description._replace(model=Model(**WIDTHS, form=FLAT)))
