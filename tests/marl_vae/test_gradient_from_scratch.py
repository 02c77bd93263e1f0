"""The bound and its gradient against NumPy from scratch and centred differences.

docs/gradient-from-scratch.md explains the reference. All is in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from marl_vae.modules import GaussianHead
from tests.marl_vae import oracle_layers
from tests.marl_vae.gradient_cases import (
    BETAS,
    BLIND,
    CASES,
    CONTINUOUS,
    ZA,
    ZW,
    Choices,
    N,
    agree,
    name_of,
    real_grads,
    real_loss,
    some_data,
    some_params,
    training_loss,
)
from tests.marl_vae.oracle_bound import forward, loss_and_grads


@pytest.fixture(autouse=True)
def float64():
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
    value, grads = real_loss(params, choices, data), real_grads(params, choices, data)
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
                lambda p: real_loss(p, choices, data),
                lambda p: -forward(p, choices, data, *BETAS)[0].sum() / data.mask.sum(),
            ):
                found = centred(loss, params, path, at)
                np.testing.assert_allclose(found, grad[at], rtol=1e-6, atol=1e-7, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize(
    ("sees", "betas", "learns"),
    [(False, (0.0, 0.0), False), (False, (0.0, 0.7), True), (False, (0.3, 0.0), True), (True, (0.0, 0.0), True)],
)
def test_what_teaches_the_joint_latent(sees: bool, betas: tuple[float, float], learns: bool) -> None:
    """Without z_ω in the local posterior, the KLs alone: its own, and that of z_α through the prior."""
    choices = CONTINUOUS if sees else BLIND
    params, data = some_params(choices), some_data(choices)
    real = real_grads(params, choices, data, lambda terms, mask: training_loss(terms, mask, betas))
    for grads in (real, loss_and_grads(params, choices, data, *betas)[2]):
        sizes = [np.abs(leaf).max() for name in ("joint", "team_encoder") for leaf in jax.tree.leaves(grads[name])]
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
