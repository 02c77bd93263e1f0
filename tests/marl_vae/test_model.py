import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec, InputError, TrajectoryBatch, all_real, to_device
from marl_vae.bound import Noise, bound_terms, make_noise
from marl_vae.embed import TrainedModel
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import Normaliser, fit_normaliser, scaled_obs
from tests.builders import DO, B, N, tiny_batch

ACTIONS = {"continuous": ActionSpec("continuous", 2), "discrete": ActionSpec("discrete", 5)}
WIDTHS = {"joint_width": 8, "local_width": 9, "hidden": 10, "decoder_hidden": 11}


def make(action: ActionSpec, **choices) -> tuple[HierarchicalVAE, Normaliser, TrajectoryBatch]:
    """A model whose last layers are not small, so that every input matters, with a batch and its scales."""
    batch = tiny_batch(action)
    model = HierarchicalVAE(Model(**WIDTHS, **choices), Dims(N, DO, action), rngs=nnx.Rngs(0))
    heads = [vars(model)[name] for name in ("joint", "local", "prior", "decoder", "dynamics") if name in vars(model)]
    for number, head in enumerate(heads):
        kernel = head.out.kernel
        kernel[...] = 0.5 * jax.random.normal(jax.random.key(number), kernel[...].shape)
    return model, fit_normaliser(batch, action, all_real(N, DO, action)), batch


@pytest.mark.parametrize(
    ("action", "choices"),
    [
        ("continuous", {}),
        ("discrete", {"team": "pool"}),
        ("continuous", {"team": "pool", "encoder": "gru"}),
        ("discrete", {"encoder": "conv"}),
        ("continuous", {"encoder": "attention"}),
        ("continuous", {"decoder": "recurrent", "form": "flat", "predict_state": 1.0}),
        pytest.param("discrete", {"form": "autoencoder"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("pad", ["after", "before"])
def test_padding_changes_nothing(action: str, choices: dict, pad: str) -> None:
    model, scale, batch = make(ACTIONS[action], **choices)
    noise = make_noise(jax.random.key(0), model, B)
    widths = [(0, 0), (0, 3) if pad == "after" else (3, 0), (0, 0), (0, 0)]
    longer = TrajectoryBatch(*(np.pad(x, widths[: x.ndim], constant_values=0) for x in batch))
    longer.obs[~longer.mask] = 99.0
    graph, params = nnx.split(model)
    terms = jax.jit(lambda params, batch: bound_terms(nnx.merge(graph, params), scale, batch, noise))
    short, long = (terms(params, to_device(x)) for x in (batch, longer))
    for before, after in zip(short, long, strict=True):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("action", "choices"),
    [
        ("continuous", {}),
        ("discrete", {}),
        ("continuous", {"form": "autoencoder", "decoder": "recurrent"}),
    ],
)
def test_permuting_agents_permutes_local_latents_alone(action: str, choices: dict) -> None:
    model, scale, batch = make(ACTIONS[action], team="pool", agent_index=False, **choices)
    order = np.array([2, 0, 1])
    trained = TrainedModel(model, scale, "test")
    before = trained.embed(batch)
    turned = TrajectoryBatch(*(x[:, :, order] for x in batch))
    after = trained.embed(turned)
    likelihood = trained.log_likelihood(batch, before.alpha_mean)
    np.testing.assert_allclose(trained.log_likelihood(turned, before.alpha_mean[:, order]), likelihood, rtol=1e-5)
    np.testing.assert_allclose(after.omega_mean, before.omega_mean, atol=1e-5)
    np.testing.assert_allclose(after.alpha_mean, before.alpha_mean[:, order], atol=1e-5)
    assert np.abs(before.alpha_mean - before.alpha_mean[:, order]).max() > 0.1


def test_the_agent_index_and_concatenation_do_see_the_order() -> None:
    for choices in ({"team": "pool", "agent_index": True}, {"team": "concat", "agent_index": False}):
        model, scale, batch = make(ACTIONS["continuous"], **choices)
        trained, order = TrainedModel(model, scale, "test"), np.array([2, 0, 1])
        before = trained.embed(batch)
        after = trained.embed(TrajectoryBatch(*(x[:, :, order] for x in batch)))
        assert np.abs(after.alpha_mean - before.alpha_mean[:, order]).max() > 1e-3


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
def test_actions_do_not_move_with_the_joint_latent_given_the_local_one(action: ActionSpec) -> None:
    model, scale, batch = make(action)
    device = to_device(batch)
    noise = make_noise(jax.random.key(0), model, B)
    features = model.features(scale, device)
    fixed = model.infer(*features, noise.joint, noise.local).z_local

    def out(z_joint, hold: bool):
        local = model.local_posterior(features[1], z_joint)
        z_local = fixed if hold else local.mean + jnp.exp(local.log_std) * noise.local
        return model.decode(scaled_obs(scale, device), z_local, device.mask)

    zero, moves = (jax.jacobian(lambda z, h=hold: out(z, h))(noise.joint) for hold in (True, False))
    assert float(jnp.abs(zero).max()) == 0.0
    assert float(jnp.abs(moves).max()) > 1e-3


def test_the_local_posterior_sees_the_joint_latent_only_where_it_is_told_to() -> None:
    for sees in (True, False):
        model, scale, batch = make(ACTIONS["continuous"], local_sees_joint=sees)
        _, own = model.features(scale, to_device(batch))
        moved = jax.jacobian(lambda z, m=model, f=own: m.local_posterior(f, z).mean)(jnp.ones((B, 8)))
        assert bool(jnp.abs(moved).max() > 1e-3) == sees


def test_jit_equals_no_jit_and_traces_once() -> None:
    model, scale, batch = make(ACTIONS["continuous"])
    graph, params = nnx.split(model)
    traces = []

    def run(params, batch, noise):
        traces.append(1)
        return bound_terms(nnx.merge(graph, params), scale, batch, noise)

    compiled, device = jax.jit(run), to_device(batch)
    for number in range(3):
        noise = make_noise(jax.random.key(number), model, B)
        for a, b in zip(compiled(params, device, noise), bound_terms(model, scale, device, noise), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4)
    assert len(traces) == 1


def test_an_absent_agent_costs_nothing() -> None:
    model, scale, batch = make(ACTIONS["continuous"])
    batch.mask[:, :, 2] = False
    terms = bound_terms(model, scale, to_device(batch), make_noise(jax.random.key(0), model, B))
    assert float(jnp.abs(terms.kl_local[:, 2]).max()) == 0.0
    assert float(terms.kl_local[:, :2].min()) > 0.0


def test_noise_reaches_both_levels() -> None:
    model, scale, batch = make(ACTIONS["continuous"])
    zero = Noise(joint=jnp.zeros((B, 8)), local=jnp.zeros((B, N, 9)))
    base = bound_terms(model, scale, to_device(batch), zero)
    joint = bound_terms(model, scale, to_device(batch), zero._replace(joint=jnp.ones((B, 8))))
    local = bound_terms(model, scale, to_device(batch), zero._replace(local=jnp.ones((B, N, 9))))
    assert float(jnp.abs(joint.kl_local - base.kl_local).min()) > 0
    assert float(jnp.abs(local.recon - base.recon).min()) > 0
    np.testing.assert_array_equal(local.kl_local, base.kl_local)


@pytest.mark.parametrize(
    "bad",
    [
        *({"team": "consat"}, {"decoder": "lstm"}, {"form": "vae"}, {"hidden": 0}, {"min_std": 0.0}),
        *({"predict_state": -1.0}, {"predict_state": float("inf")}, {"form": "flat", "local_sees_joint": False}),
    ],
    ids=str,
)
def test_bad_settings_are_refused(bad: dict) -> None:
    with pytest.raises(InputError):
        Model(**bad)
