"""The prediction of the next observation against SciPy, and that it stays beside the bound."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from flax import nnx

from data_gen.trajectory import ActionSpec, all_real, to_device
from marl_vae.bound import bound, bound_terms, make_noise
from marl_vae.dynamics import change_log_likelihood
from marl_vae.metrics import read_metrics
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives import BetaBound
from marl_vae.objectives.objective import Beta, sampled
from tests.builders import DO, OBS_WIDTHS, UNEVEN, B, N, T, tiny_batch, uneven_batch
from tests.marl_vae import tiny_task

ACTION = ActionSpec("continuous", 2)
WEIGHT, MIN_STD = 0.25, 0.1


def make(weight: float):
    batch = tiny_batch(ACTION)
    config = Model(joint_width=5, local_width=2, hidden=7, decoder_hidden=6, predict_state=weight)
    model = HierarchicalVAE(config, Dims(N, DO, ACTION), rngs=nnx.Rngs(0))
    return model, fit_normaliser(batch, ACTION, all_real(N, DO, ACTION)), batch


def test_the_likelihood_is_that_of_real_features_between_two_steps_at_which_the_agent_is_there() -> None:
    batch, features = uneven_batch()
    batch.mask[1, 2, 0] = False  # a gap: neither the step into it nor the one out of it counts
    scale, width = fit_normaliser(batch, UNEVEN, features), max(OBS_WIDTHS)
    rng = np.random.default_rng(1)
    out, obs = (rng.normal(size=(B, T, N, k * width)).astype(np.float32) for k in (2, 1))
    found = np.asarray(
        change_log_likelihood(jnp.asarray(out), jnp.asarray(obs), jnp.asarray(batch.mask), scale, MIN_STD)
    )
    assert found.shape == (B, T - 1, N)
    std = MIN_STD * np.exp(np.log1p(np.exp(out[..., width:] - np.log(MIN_STD))))
    for b, t, n in np.ndindex(found.shape):
        own = slice(0, OBS_WIDTHS[n])
        change = (obs[b, t + 1, n] - obs[b, t, n])[own]
        both = batch.mask[b, t, n] and batch.mask[b, t + 1, n]
        want = scipy.stats.norm(out[b, t, n, :width][own], std[b, t, n][own]).logpdf(change).sum() if both else 0.0
        np.testing.assert_allclose(found[b, t, n], want, rtol=2e-4, atol=1e-4)
    assert (found != 0).any() and (found == 0).any()
    loud = np.where(np.concatenate([features.obs] * 2, -1), out, 1e30)
    again = change_log_likelihood(jnp.asarray(loud), jnp.asarray(obs), jnp.asarray(batch.mask), scale, MIN_STD)
    np.testing.assert_array_equal(again, found)


def test_the_prediction_sees_observation_action_and_latent_of_its_own_agent_and_step() -> None:
    model, *_ = make(1.0)
    model.dynamics.out.kernel[...] = jax.random.normal(jax.random.key(0), model.dynamics.out.kernel[...].shape)
    rng = np.random.default_rng(0)
    obs, actions, z = (jnp.asarray(rng.normal(size=s), jnp.float32) for s in ((1, T, N, DO), (1, T, N, 2), (1, N, 2)))
    mask = jnp.ones((1, T, N), bool)
    out = lambda *given: model.predict_change(*given, mask)[0].sum(-1)  # noqa: E731
    of_obs, of_actions, of_z = (np.abs(np.asarray(x)) for x in jax.jacobian(out, argnums=(0, 1, 2))(obs, actions, z))
    own = np.einsum("ts,nm->tnsm", np.eye(T), np.eye(N)) > 0
    for moved in (of_obs, of_actions):
        np.testing.assert_array_equal(moved[:, :, 0].sum(-1) > 0, own)
    np.testing.assert_array_equal(of_z[:, :, 0].sum(-1) > 0, np.broadcast_to(np.eye(N) > 0, (T, N, N)))


def test_without_a_weight_there_is_no_network_and_with_one_the_others_start_alike() -> None:
    plain, weighted = (nnx.to_pure_dict(nnx.split(make(weight)[0])[1]) for weight in (0.0, WEIGHT))
    assert "dynamics" not in plain and weighted.keys() - plain.keys() == {"dynamics"}
    for path, value in jax.tree.leaves_with_path(plain):
        other = weighted
        for key in path:
            other = other[key.key]
        np.testing.assert_array_equal(value, other)


@pytest.mark.parametrize("weight", [0.0, WEIGHT])
def test_losses_see_the_weighted_sum_and_the_bound_the_actions_alone(weight: float) -> None:
    model, scale, batch = make(weight)
    device, rows, key = to_device(batch), jnp.arange(B), jax.random.key(4)
    sample = sampled(BetaBound(), model, scale, device, rows, beta=Beta(jnp.float32(1), jnp.float32(1)), key=key)
    recon, state = np.asarray(sample.terms.recon), np.asarray(sample.terms.state)
    assert (state != 0).all() if weight else (state == 0).all()
    np.testing.assert_allclose(sample.likelihood, recon + weight * state, rtol=1e-6)
    one = jax.tree.map(lambda x: x[0], sample.terms)
    loss = BetaBound().inner_loss(sample, {}) + BetaBound().outer_loss(sample, {})
    np.testing.assert_allclose(loss, -(bound(one, 1.0, 1.0) + weight * one.state), rtol=1e-5)
    plain = make(0.0)[0]
    without = bound_terms(plain, scale, device, make_noise(key, plain, B))
    np.testing.assert_allclose(bound(one, 1.0, 1.0), bound(without, 1.0, 1.0), rtol=1e-5)


@pytest.mark.slow
def test_it_learns_that_places_move_by_actions_and_does_not_choose_the_model(tmp_path: Path) -> None:
    state = tiny_task.run(tmp_path, model=replace(tiny_task.MODEL, predict_state=0.5))
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows[-1]["val_state"] > rows[2]["val_state"] + 5 and rows[-1]["state"] > rows[2]["state"] + 5
    assert float(state.best_bound) == np.float32(max(row["val_bound"] for row in rows if row.get("cycle_end")))
    for row in rows:
        np.testing.assert_allclose(row["train_bound"], row["recon"] - row["kl_omega"] - row["kl_alpha"], rtol=1e-5)
