"""The decoders step by step in NumPy, what a step may see, and acting with a memory."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec, InputError, all_real, to_device
from marl_vae.checkpoint import Checkpoints
from marl_vae.decoders import DECODERS, GRU
from marl_vae.diagnostics.latent_free import latent_free_policy
from marl_vae.embed import TrainedModel, load
from marl_vae.metrics import read_metrics
from marl_vae.model import Dims, Model
from marl_vae.normalise import fit_normaliser, scaled_obs
from marl_vae.policy import gaussian_policy
from tests.builders import DO, B, N, T, styled_batch, tiny_batch
from tests.marl_vae import tiny_task
from tests.marl_vae.test_model import ACTIONS, make

C, H, OUT = 2, 8, 5


def decoder(name: str):
    """With weights at which every input matters."""
    net = DECODERS[name](DO, C, H, OUT, rngs=nnx.Rngs(0))
    graph, params = nnx.split(net)
    leaves, tree = jax.tree.flatten(params)
    moved = [leaf + 0.3 * jax.random.normal(jax.random.key(n), leaf.shape) for n, leaf in enumerate(leaves)]
    return nnx.merge(graph, jax.tree.unflatten(tree, moved))


def inputs(seed: int = 0):
    rng = np.random.default_rng(seed)
    mask = rng.random((B, T, N)) < 0.7
    return tuple(rng.normal(size=s).astype(np.float32) for s in ((B, T, N, DO), (B, N, C))) + (mask,)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def array(param) -> np.ndarray:
    return np.asarray(param[...], np.float64)


def test_the_recurrent_decoder_equals_numpy_step_by_step() -> None:
    """One agent of one episode at a time, over the steps at which it is there; elsewhere the state is the last one."""
    net, (obs, context, mask) = decoder("recurrent"), inputs()
    found = net(*map(jnp.asarray, (obs, context, mask)))
    gates, square = (np.split(array(p), 3, axis=-1) for p in (net.gates.kernel, net.recurrent))
    bias = np.split(array(net.gates.bias), 3)
    for b, n in np.ndindex(B, N):
        hidden = np.zeros(H)
        for t in range(T):
            if mask[b, t, n]:
                x = obs[b, t, n] @ array(net.from_obs.kernel) + array(net.from_obs.bias)
                x = x + context[b, n] @ array(net.from_context.kernel)
                x = x * sigmoid(x)
                reset, update = (sigmoid(x @ gates[k] + bias[k] + hidden @ square[k]) for k in (0, 1))
                new = np.tanh(x @ gates[2] + bias[2] + reset * (hidden @ square[2]))
                hidden = update * hidden + (1 - update) * new
            wanted = hidden @ array(net.out.kernel) + array(net.out.bias)
            np.testing.assert_allclose(found[b, t, n], wanted, atol=1e-5)


@pytest.mark.parametrize("name", DECODERS)
def test_a_step_sees_the_agent_s_own_past_and_nothing_else(name: str) -> None:
    """Gradients of each output with respect to each observation: never the future, another agent or an absent step."""
    net, (obs, context, mask) = decoder(name), inputs()
    mask[0] = True
    mask[0, 2, 1] = False
    one = tuple(jnp.asarray(x[:1]) for x in (obs, context, mask))
    moved = np.abs(jax.jacobian(lambda o: net(o, *one[1:]).sum(-1))(one[0]))[0, :, :, 0].sum(-1)
    for t, n, s, m in np.ndindex(T, N, T, N):
        sees = n == m and (s == t if name == "feedforward" else s <= t and (s, m) != (2, 1))
        assert (moved[t, n, s, m] > 0) == sees, (t, n, s, m)


@pytest.mark.parametrize(("action", "name"), [("continuous", "recurrent"), ("discrete", "recurrent")])
def test_acting_step_by_step_equals_decoding_the_episode(action: str, name: str) -> None:
    model, scale, batch = make(ACTIONS[action], decoder=name)
    batch.mask[1, 1, 0] = False
    trained, z = TrainedModel(model, scale, "test"), np.random.default_rng(0).normal(size=(B, N, 9)).astype(np.float32)
    device = to_device(batch)
    out = model.decode(scaled_obs(scale, device), jnp.asarray(z), device.mask)
    whole = gaussian_policy(out, scale, 0.05).mean if action == "continuous" else out.argmax(-1)
    memory = trained.start(B)
    for t in range(T):
        actions, memory = trained.step(memory, batch.obs[:, t], z, present=batch.mask[:, t])
        here = batch.mask[:, t]
        np.testing.assert_allclose(np.asarray(actions)[here], np.asarray(whole[:, t])[here], rtol=1e-4, atol=1e-5)
    first, _ = trained.step(trained.start(B), batch.obs[:, 3], z)
    assert np.abs(np.asarray(first) - np.asarray(whole[:, 3]))[batch.mask[:, 3]].max() > 0.01  # so the past mattered


def test_a_feed_forward_model_acts_without_memory_and_takes_steps_alike() -> None:
    model, scale, batch = make(ACTIONS["continuous"])
    trained, z, key = TrainedModel(model, scale, "test"), np.ones((B, N, 9), np.float32), jax.random.key(1)
    assert trained.start(B) == ()
    for draw in (None, key):
        found, memory = trained.step(trained.start(B), batch.obs[:, 0], z, key=draw)
        np.testing.assert_array_equal(found, trained.act(batch.obs[:, 0], z, key=draw))
        assert memory == ()


def test_a_model_that_remembers_says_what_it_needs() -> None:
    model, scale, batch = make(ACTIONS["continuous"], decoder="recurrent")
    trained, z = TrainedModel(model, scale, "test"), np.ones((B, N, 9), np.float32)
    with pytest.raises(InputError, match="model.start"):
        trained.act(batch.obs[:, 0], z)
    for memory in ((), trained.start(B - 1)):
        with pytest.raises(InputError, match=f"begin with start.{B}"):
            trained.step(memory, batch.obs[:, 0], z)


def test_the_policy_without_latents_remembers_as_the_model_does() -> None:
    action = ActionSpec("continuous", 2)
    batch = tiny_batch(action)
    batch.mask[:] = True
    dims, scale = Dims(N, DO, action), fit_normaliser(batch, action, all_real(N, DO, action))
    for name in DECODERS:
        free = latent_free_policy(Model(decoder=name, decoder_hidden=6), dims, scale, 0)
        before = np.asarray(free.residuals(free.params, to_device(batch)))
        other = batch._replace(obs=batch.obs.copy())
        other.obs[:, 2] += 1.0
        moved = np.abs(np.asarray(free.residuals(free.params, to_device(other))) - before).max((0, 2, 3)) > 0
        assert moved.tolist() == [t == 2 or (name == "recurrent" and t > 2) for t in range(T)]


@pytest.mark.slow
def test_a_recurrent_decoder_trains_and_goes_on_after_an_interruption(tmp_path: Path) -> None:
    settings = {"model": replace(tiny_task.MODEL, decoder="recurrent"), "steps": 30}
    whole = tiny_task.run(tmp_path / "whole", **settings)

    def stop(row: dict) -> None:
        if row["step"] == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tiny_task.run(tmp_path / "cut", stop, **settings)
    assert 0 < (Checkpoints(tmp_path / "cut" / "checkpoints").latest() or 0) < 30
    again = tiny_task.run(tmp_path / "cut", **settings)
    for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(again), strict=True):
        assert np.array_equal(a, b)
    rows = read_metrics(tmp_path / "cut" / "metrics.jsonl")
    assert rows == read_metrics(tmp_path / "whole" / "metrics.jsonl")
    assert rows[-1]["train_bound"] > rows[0]["train_bound"]
    model, batch = load(tmp_path / "cut"), styled_batch(2, 10)
    assert isinstance(model._model.decoder, GRU)
    for a, b in zip(model.embed(batch), load(tmp_path / "whole").embed(batch), strict=True):
        assert np.array_equal(a, b)
