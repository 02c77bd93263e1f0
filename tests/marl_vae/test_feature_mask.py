"""Padding of narrow agents changes nothing: scales, inputs, likelihood, gradients, latents, actions."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from flax import nnx

from data_gen.trajectory import ActionSpec, FeatureMask, InputError, TrajectoryBatch, all_real, to_device
from marl_vae.bound import bound, bound_terms, make_noise
from marl_vae.checkpoint import read_description
from marl_vae.diagnostics.latent_free import latent_free_policy
from marl_vae.embed import TrainedModel, load
from marl_vae.metrics import read_metrics
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import fit_normaliser, scaled_actions, scaled_obs
from marl_vae.objectives import BetaBound
from marl_vae.policy import action_log_likelihood
from marl_vae.task import Task, Train
from marl_vae.train import fit
from tests.builders import ACTION_WIDTHS, DO, OBS_WIDTHS, UNEVEN, B, N, T, tiny_batch, uneven_batch, widened
from tests.marl_vae import tiny_task

WIDTHS = {"joint_width": 8, "local_width": 9, "hidden": 11, "decoder_hidden": 13}
WIDE, WIDE_DA, MIN_STD = 7, 3, 0.1


def lively(dims: Dims, seed: int, **choices) -> HierarchicalVAE:
    """A model whose last layers are not small, so that every input and output matters."""
    model, rng = HierarchicalVAE(Model(**WIDTHS, **choices), dims, rngs=nnx.Rngs(seed)), np.random.default_rng(seed)
    for head in (model.joint, model.local, model.prior, model.decoder):
        for weight in (head.out.kernel, head.out.bias):
            weight[...] = jnp.asarray(rng.normal(0, 0.5, weight[...].shape), jnp.float32)
    return model


def transplanted(narrow: HierarchicalVAE, wide: HierarchicalVAE, choices: int) -> HierarchicalVAE:
    """`wide` with the weights of `narrow` wherever those belong to something real."""
    real = np.arange(DO)
    step = np.concatenate([real, WIDE + np.arange(choices)])
    wide_step = WIDE + (choices if choices > 2 else WIDE_DA)
    member = np.append(step, wide_step)
    places = {
        (DO, WIDE): real,
        (len(step), wide_step): step,
        (N * len(member), N * (wide_step + 1)): np.concatenate([n * (wide_step + 1) + member for n in range(N)]),
        (4, 6): np.array([0, 1, 3, 4]),  # locations and scales of two actions out of three
    }

    def put(small, large):
        sizes, filled = zip(small.shape, large.shape, strict=True), np.array(large)
        filled[np.ix_(*(np.arange(a) if a == b else places[a, b] for a, b in sizes))] = small
        return jnp.asarray(filled)

    graph, own = nnx.split(wide)
    return nnx.merge(graph, jax.tree.map(put, nnx.split(narrow)[1], own))


CASES = {
    "concat": pytest.param(ActionSpec("continuous", 2), "concat", marks=pytest.mark.slow),
    "pool": pytest.param(ActionSpec("continuous", 2), "pool", marks=pytest.mark.slow),
    "discrete": (ActionSpec("discrete", 5), "concat"),
}


@pytest.mark.parametrize(("action", "team"), CASES.values(), ids=CASES)
def test_the_padded_form_of_a_task_is_the_same_task(action: ActionSpec, team: str) -> None:
    batch, features = tiny_batch(action), all_real(N, DO, action)
    wide_action = action if action.kind == "discrete" else ActionSpec("continuous", WIDE_DA)
    padded, mask = widened(batch, features, WIDE, wide_action.size)
    narrow = lively(Dims(N, DO, action), 0, team=team)
    wide = transplanted(narrow, lively(Dims(N, WIDE, wide_action), 1, team=team), action.size)
    small = TrainedModel(narrow, fit_normaliser(batch, action, features), "narrow")
    large = TrainedModel(wide, fit_normaliser(padded, wide_action, mask), "wide")
    for before, after in zip(small.embed(batch), large.embed(padded), strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)
    terms = (model.elbo(of, key=jax.random.key(0)) for model, of in ((small, batch), (large, padded)))
    for before, after in zip(*terms, strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-4)
    z = small.embed(batch).alpha_mean
    before, after = small.act(batch.obs[:, 0], z), np.asarray(large.act(padded.obs[:, 0], z))
    if action.kind == "continuous":
        assert (after[..., 2] == 0).all()
        after = after[..., :2]
    np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)


def test_scales_are_those_of_the_agents_that_have_the_feature() -> None:
    batch, features = uneven_batch()
    scale = fit_normaliser(batch, UNEVEN, features)
    for name, values, widths in (("obs", batch.obs, OBS_WIDTHS), ("action", batch.actions, ACTION_WIDTHS)):
        mean, std = getattr(scale, f"{name}_mean"), getattr(scale, f"{name}_std")
        for f in range(max(widths)):
            own = [values[b, t, n, f] for b, t, n in np.argwhere(batch.mask) if f < widths[n]]
            np.testing.assert_allclose([mean[f], std[f]], [np.mean(own), np.std(own)], rtol=1e-5, atol=1e-6)
        scaled = np.asarray((scaled_obs if name == "obs" else scaled_actions)(scale, to_device(batch)))
        for b, t, n, f in np.ndindex(scaled.shape):
            there = batch.mask[b, t, n] and f < widths[n]
            want = (values[b, t, n, f] - mean[f]) / std[f] if there else 0.0
            np.testing.assert_allclose(scaled[b, t, n, f], want, rtol=1e-4, atol=1e-5)


def test_scales_of_agents_that_have_all_are_what_they_were_before_there_was_a_mask() -> None:
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action)
    scale = fit_normaliser(batch, action, all_real(N, DO, action))
    for values, mean, std in ((batch.obs, *scale[:2]), (batch.actions, *scale[2:4])):
        real = values[batch.mask].astype(np.float64)
        np.testing.assert_array_equal(mean, real.mean(0).astype(np.float32))
        np.testing.assert_array_equal(std, real.std(0).astype(np.float32))
        assert mean.dtype == std.dtype == np.float32


def test_a_feature_that_nobody_has_keeps_unit_scale() -> None:
    padded, mask = widened(*uneven_batch(), WIDE, UNEVEN.size)
    scale = fit_normaliser(padded, UNEVEN, mask)
    assert (scale.obs_mean[5:] == 0).all() and (scale.obs_std[5:] == 1).all()


def decoded(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(B, T, N, 2 * UNEVEN.size)).astype(np.float32)


def padded_outputs(features: FeatureMask) -> np.ndarray:
    """Where a decoder's output, locations and then scales, stands for nothing."""
    return np.broadcast_to(~np.concatenate([features.actions] * 2, -1), (B, T, N, 2 * UNEVEN.size))


def test_the_likelihood_is_that_of_the_real_actions_and_deaf_to_outputs_under_padding() -> None:
    batch, features = uneven_batch()
    scale, out, device = fit_normaliser(batch, UNEVEN, features), decoded(1), to_device(batch)
    found = np.asarray(action_log_likelihood(jnp.asarray(out), device, UNEVEN, scale, MIN_STD))
    for b, t, n in np.ndindex(found.shape):
        own = slice(0, ACTION_WIDTHS[n])
        mean = scale.action_mean[own] + scale.action_std[own] * out[b, t, n, :3][own]
        std = scale.action_std[own] * MIN_STD * np.exp(np.log1p(np.exp(out[b, t, n, 3:][own] - np.log(MIN_STD))))
        want = scipy.stats.norm(mean, std).logpdf(batch.actions[b, t, n, own]).sum() * batch.mask[b, t, n]
        np.testing.assert_allclose(found[b, t, n], want, rtol=2e-4, atol=1e-4)
    for other in (decoded(2), np.full_like(out, 1e30), np.full_like(out, -1e30)):
        mixed = jnp.asarray(np.where(padded_outputs(features), other, out))
        np.testing.assert_array_equal(action_log_likelihood(mixed, device, UNEVEN, scale, MIN_STD), found)


def test_outputs_under_padding_get_no_gradient() -> None:
    batch, features = uneven_batch()
    scale, device = fit_normaliser(batch, UNEVEN, features), to_device(batch)
    total = lambda out: action_log_likelihood(out, device, UNEVEN, scale, MIN_STD).sum()  # noqa: E731
    grads = np.asarray(jax.grad(total)(jnp.asarray(decoded(1))))
    silent = padded_outputs(features) | ~batch.mask[..., None]
    assert (grads[silent] == 0).all() and (grads[~silent] != 0).all()


def test_weights_of_padded_columns_get_no_gradient_from_the_bound() -> None:
    padded, mask = widened(*uneven_batch(), WIDE, 4)
    action = ActionSpec("continuous", 4)
    scale = fit_normaliser(padded, action, mask)
    graph, params = nnx.split(lively(Dims(N, WIDE, action), 0))
    noise = make_noise(jax.random.key(0), nnx.merge(graph, params), B)

    def total(params):
        return bound(bound_terms(nnx.merge(graph, params), scale, to_device(padded), noise), 1.0, 1.0).sum()

    grads = nnx.merge(graph, jax.jit(jax.grad(total))(params))
    outputs, rows = grads.decoder.out.kernel[...], grads.decoder.from_obs.kernel[...]
    step = np.asarray(grads.local_encoder.inputs[...])
    for padding, real in (
        (outputs[:, [3, 7]], outputs[:, [0, 1, 2, 4, 5, 6]]),
        (rows[5:], rows[:5]),
        (step[:, [5, 6, 10]], step[:, [0, 1, 2, 3, 4, 7, 8, 9]]),
    ):
        assert (np.asarray(padding) == 0).all() and np.abs(real).max() > 1e-3
    assert (np.asarray(grads.decoder.out.bias[...])[[3, 7]] == 0).all()


def test_values_under_padding_reach_neither_latents_nor_bound_nor_policy() -> None:
    batch, features = uneven_batch()
    loud = TrajectoryBatch(*(np.array(x) for x in batch))
    loud.obs[:, :, ~features.obs], loud.actions[:, :, ~features.actions] = 9.0, -9.0
    dims, scale = Dims(N, 5, UNEVEN), fit_normaliser(batch, UNEVEN, features)
    assert all((a == b).all() for a, b in zip(scale, fit_normaliser(loud, UNEVEN, features), strict=True))
    model = TrainedModel(lively(dims, 0), scale, "test")
    for one in (model.embed, lambda x: model.elbo(x, key=jax.random.key(0))):
        for quiet, with_noise in zip(one(batch), one(loud), strict=True):
            np.testing.assert_array_equal(quiet, with_noise)
    free = latent_free_policy(model.config, dims, scale, 0)
    likelihood, params = free.log_likelihood, free.params
    np.testing.assert_array_equal(*(likelihood(params, to_device(x)) for x in (batch, loud)))


@pytest.mark.parametrize("key", [None, 3])
def test_act_gives_zero_in_padding_and_the_same_as_ever_elsewhere(key: int | None) -> None:
    batch, features = uneven_batch()
    scale, model = fit_normaliser(batch, UNEVEN, features), lively(Dims(N, 5, UNEVEN), 0)
    full = TrainedModel(model, scale._replace(action_real=np.ones((N, 3), np.float32)), "full")
    z = np.random.default_rng(0).normal(size=(B, N, 9)).astype(np.float32)
    draw = None if key is None else jax.random.key(key)
    found, whole = (np.asarray(m.act(batch.obs[:, 0], z, key=draw)) for m in (TrainedModel(model, scale, "test"), full))
    assert (found[:, ~features.actions] == 0).all() and (whole != 0).all()
    np.testing.assert_array_equal(found[:, features.actions], whole[:, features.actions])
    if key is None:
        scaled = (batch.obs[:, :1] - scale.obs_mean) / scale.obs_std * features.obs
        out = np.asarray(model.decode(jnp.asarray(scaled), jnp.asarray(z), jnp.ones((B, 1, N), bool)))[:, 0, :, :3]
        want = (scale.action_mean + scale.action_std * out) * features.actions
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


def task(features: FeatureMask) -> Task:
    action = ActionSpec("continuous", 4)
    settings = Train(steps=20, batch=16, steps_per_dispatch=5, eval_every=10)
    dims = Dims(agents=N, obs=WIDE, action=action)
    schedule = tiny_task.Schedule(tiny_task.LEVEL, tiny_task.LEVEL)
    return Task(tiny_task.MODEL, dims, features, BetaBound(), schedule, settings, "it")


@pytest.mark.slow
def test_padded_data_train_and_the_mask_is_kept_with_the_model(tmp_path: Path) -> None:
    """Column 3 of the actions and 5 and 6 of the observations are real for no agent, others for some."""
    padded, mask = widened(*uneven_batch(0, 40), WIDE, 4)
    (state,) = fit(padded, padded, task(mask), tmp_path, lambda row: None)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert len(rows) == 4 and all(np.isfinite(value) for row in rows for value in row.values())
    model = load(tmp_path)
    np.testing.assert_array_equal(model.scale.obs_real, mask.obs)
    np.testing.assert_array_equal(model.scale.action_real, mask.actions)
    before = model.elbo(padded, key=jax.random.key(0))
    np.testing.assert_array_equal(state.params["decoder"]["out"]["bias"][jnp.array([3, 7])], 0)
    for weight in (model._model.decoder.out.kernel, model._model.decoder.out.bias):
        weight[...] = weight[...].at[..., jnp.array([3, 7])].set(5.0)
    after = TrainedModel(model._model, model.scale, "louder").elbo(padded, key=jax.random.key(0))
    np.testing.assert_array_equal(before.recon, after.recon)


def test_a_mask_that_the_episodes_contradict_is_refused_before_training(tmp_path: Path) -> None:
    padded, mask = widened(*uneven_batch(0, 40), WIDE, 4)
    wrong = mask._replace(obs=mask.obs & (np.arange(WIDE) != 2))
    with pytest.raises(
        InputError, match="training episodes: obs is .* feature 2, which the feature mask calls padding"
    ):
        fit(padded, padded, task(wrong), tmp_path, lambda row: None)
    with pytest.raises(InputError, match=r"the feature mask of actions is bool\[3, 3\]; it must be bool\[3, 4\]"):
        fit(padded, padded, task(mask._replace(actions=mask.actions[:, :3])), tmp_path, lambda row: None)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_from_before_the_mask_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"version": 1}))
    with pytest.raises(InputError, match="not of version 3, which this code reads. Train the run again"):
        read_description(tmp_path)
