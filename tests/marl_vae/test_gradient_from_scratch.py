"""The bound and its gradient against NumPy from scratch and centred differences.

docs/gradient-from-scratch.md explains the reference. Everything but the training step is in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import TrajectoryBatch
from marl_vae.batching import epoch_rows
from marl_vae.modules import GaussianHead
from marl_vae.normalise import Normaliser
from marl_vae.objective import make_noise
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.train import NOISE, ORDER, Train, make_program
from tests.marl_vae import oracle_layers
from tests.marl_vae.gradient_cases import (
    BETAS,
    CASES,
    CONTINUOUS,
    ZA,
    ZW,
    B,
    Choices,
    N,
    agree,
    config_of,
    dims_of,
    name_of,
    network,
    real_grads,
    real_value,
    scaled,
    some_data,
    some_params,
    training_loss,
)
from tests.marl_vae.oracle_bound import forward, loss_and_grads


@pytest.fixture(autouse=True)
def float64(quick_compiles):
    with jax.enable_x64(True):
        yield


def centred(loss, params, path, at, step: float = 3e-5) -> float:
    array = params
    for key in path:
        array = array[key.key]
    kept, values = array[at], []
    for moved in (kept + step, kept - step):
        array[at] = moved
        values.append(float(loss(params)))
    array[at] = kept
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("choices", CASES, ids=name_of)
def test_loss_and_gradient_equal_numpy_and_differences(choices: Choices) -> None:
    params, data = some_params(choices), some_data(choices)
    value, grads = real_value(params, choices, data), real_grads(params, choices, data)
    own_value, _, own_grads = loss_and_grads(params, choices, data, *BETAS)
    assert value.dtype == jnp.float64
    np.testing.assert_allclose(value, own_value, rtol=1e-12)
    assert jax.tree.structure(grads) == jax.tree.structure(own_grads)
    agree(grads, own_grads)

    rng = np.random.default_rng(2)
    for path, grad in jax.tree.leaves_with_path(own_grads):
        largest = np.unravel_index(np.abs(grad).argmax(), grad.shape)
        assert abs(grad[largest]) > 1e-3, jax.tree_util.keystr(path)
        for at in (largest, tuple(rng.integers(0, grad.shape))):
            for loss in (
                lambda p: real_value(p, choices, data),
                lambda p: -forward(p, choices, data, *BETAS)[0].sum() / data.mask.sum(),
            ):
                found = centred(loss, params, path, at)
                np.testing.assert_allclose(found, grad[at], rtol=1e-6, atol=1e-7, err_msg=jax.tree_util.keystr(path))


def test_the_training_step_follows_this_gradient() -> None:
    """Adam's first moment after one step is 1 − b1 = .1 times the gradient, here unclipped; training is in float32."""
    choices, data = CONTINUOUS, some_data(CONTINUOUS)
    level = lambda beta: Cyclical(cycles=1, ratio=0.0, maximum=beta)  # noqa: E731
    settings = Train(steps=1, batch=B, steps_per_dispatch=1, eval_every=1, clip=1e9)
    with jax.enable_x64(False):
        scale = Normaliser(*(field.astype(np.float32) for field in data[3:9]))
        schedule = Schedule(joint=level(BETAS[0]), local=level(BETAS[1]))
        program = make_program(config_of(choices), dims_of(choices), scale, schedule, settings)
        batch = TrajectoryBatch(jnp.float32(data.obs), jnp.float32(data.actions), jnp.asarray(data.mask))
        start, root = program.start(), jax.random.fold_in(jax.random.key(settings.seed), 1)
        after, _ = program.advance(start, batch)
        rows = np.asarray(epoch_rows(jax.random.fold_in(root, ORDER), jnp.int32(0), B, B))
        net = nnx.merge(network(choices)[0], start.params)
        noise = make_noise(jax.random.fold_in(jax.random.fold_in(root, NOISE), 0), net, B)
    moment = nnx.to_pure_dict(after.opt_state[1][0].mu)
    data = data._replace(
        joint_noise=np.asarray(noise.joint)[rows.argsort()], local_noise=np.asarray(noise.local)[rows.argsort()]
    )
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), nnx.to_pure_dict(start.params))
    agree(moment, scaled(loss_and_grads(params, choices, data, *BETAS)[2], 0.1), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("sees", "betas", "learns"),
    [(False, (0.0, 0.0), False), (False, (0.0, 0.7), True), (False, (0.3, 0.0), True), (True, (0.0, 0.0), True)],
)
def test_what_teaches_the_joint_latent(sees: bool, betas: tuple[float, float], learns: bool) -> None:
    """Without z_ω in the local posterior, the KLs alone: its own, and that of z_α through the prior."""
    choices = CASES[0]._replace(local_sees_joint=sees, agent_index=sees)
    assert choices in CASES
    params, data = some_params(choices), some_data(choices)
    real = real_grads(params, choices, data, lambda terms, mask: training_loss(terms, mask, betas))
    for grads in (real, loss_and_grads(params, choices, data, *betas)[2]):
        sizes = [np.abs(leaf).max() for name in ("joint", "team_lstm") for leaf in jax.tree.leaves(grads[name])]
        assert min(sizes) > 1e-6 if learns else max(sizes) == 0


def test_clipped_deviations_learn_nothing_and_edges_half() -> None:
    """jnp.clip is a maximum and a minimum, and at a tie the gradient is shared between the two arguments."""
    raw, width = np.array([-7.0, -6.0, 0.0, 3.0, 4.0]), 2
    module = GaussianHead(width, 3, len(raw), rngs=nnx.Rngs(0))
    graph, state = nnx.split(module)
    params = jax.tree.map(lambda x: np.zeros(x.shape), nnx.to_pure_dict(state))
    params["out"]["bias"] = np.concatenate([np.zeros(len(raw)), raw])
    x = np.ones((1, width))
    found = jax.grad(lambda p: nnx.merge(graph, nnx.State(p))(jnp.asarray(x)).log_std.sum())(params)["out"]["bias"]
    normal, cache = oracle_layers.head(params, x)
    ones = oracle_layers.Normal(np.zeros_like(normal.mean), np.ones_like(normal.log_std))
    wanted = np.concatenate([np.zeros(len(raw)), [0.0, 0.5, 1.0, 0.5, 0.0]])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(oracle_layers.head_back(cache, ones)[1]["out"]["bias"], wanted)


def test_clipped_latents_and_absent_agents_get_no_gradient() -> None:
    """The index rows of an agent that is never there, and the biases that some_params put beyond the edges."""
    params, data = some_params(CONTINUOUS), some_data(CONTINUOUS)
    mask = data.mask.copy()
    mask[:, :, 2] = False
    data = data._replace(mask=mask)
    real, own = real_grads(params, CONTINUOUS, data), loss_and_grads(params, CONTINUOUS, data, *BETAS)[2]
    agree(real, own)
    for grads in (real, own):
        clipped = {"joint": ZW, "local": ZA + 1, "prior": ZA + 2}
        assert all(grads[name]["out"]["bias"][at] == 0 for name, at in clipped.items())
        kernels = [grads[name]["hidden"]["kernel"] for name in ("local", "prior")]
        for kernel in [*kernels, grads["decoder"]["from_context"]["kernel"]]:
            assert np.abs(kernel[-N + 2]).max() == 0 and np.abs(kernel[-N : -N + 2]).min() > 0
