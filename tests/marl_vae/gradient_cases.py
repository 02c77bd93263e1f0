"""Parameters and batches on which the code under test and the NumPy reference are compared, and how."""

from functools import lru_cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec, TrajectoryBatch
from marl_vae.bound import Noise, Terms, bound, bound_terms
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import Normaliser
from tests.marl_vae.oracle_bound import Choices, Data

B, T, N, DO, A, ZW, ZA, HIDDEN, DECODER = 5, 7, 3, 4, 2, 6, 8, 9, 10
BETAS = (0.3, 0.7)
# Half of the sixteen combinations, in which each three of the four choices still meet in every way.
CASES = [
    Choices(discrete, team, index, not (discrete ^ (team == "pool") ^ index), min_std=0.05)
    for discrete, team, index in product((False, True), ("concat", "pool"), (True, False))
]
CONTINUOUS, BLIND = (Choices(False, "pool", sees, sees, 0.05) for sees in (True, False))
assert CONTINUOUS in CASES and BLIND in CASES


def name_of(choices: Choices) -> str:
    kind = "discrete" if choices.discrete else "continuous"
    flags = [name for name in ("agent_index", "local_sees_joint") if getattr(choices, name)]
    return "-".join([kind, choices.team, *flags])


def config_of(choices: Choices) -> Model:
    widths = {"joint_width": ZW, "local_width": ZA, "hidden": HIDDEN, "decoder_hidden": DECODER}
    return Model(
        **widths, **{name: getattr(choices, name) for name in ("team", "agent_index", "local_sees_joint", "min_std")}
    )


def dims_of(choices: Choices) -> Dims:
    return Dims(N, DO, ActionSpec("discrete" if choices.discrete else "continuous", A))


@lru_cache
def network(choices: Choices):
    """Structure and shapes of the model, without values."""
    return nnx.split(nnx.eval_shape(lambda: HierarchicalVAE(config_of(choices), dims_of(choices), rngs=nnx.Rngs(0))))


@lru_cache
def compiled(choices: Choices):
    """The code under test: terms of a batch, and the parameters' gradient of the terms' weighted sum."""
    graph, _ = network(choices)

    def terms(params, data):
        batch = TrajectoryBatch(data.obs, data.actions, data.mask)
        noise = Noise(data.joint_noise, data.local_noise)
        return bound_terms(nnx.merge(graph, nnx.State(params)), Normaliser(*data[3:9]), batch, noise)

    def both(params, data, weights):
        found, pullback = jax.vjp(lambda p: terms(p, data), params)
        return found, pullback(weights)[0]

    return jax.jit(both)


def training_loss(terms: Terms, mask, betas=BETAS):
    """As marl_vae/program.py has it."""
    return -bound(terms, *betas).sum() / mask.sum()


def real_loss(params, choices: Choices, data: Data, loss=training_loss):
    return loss(compiled(choices)(params, data, no_weights(data))[0], data.mask)


def real_grads(params, choices: Choices, data: Data, loss=training_loss):
    """jax.grad of any loss that is linear in the terms: its weight on each term, pulled back to the parameters."""
    weights = jax.grad(loss)(no_weights(data), data.mask)
    return compiled(choices)(params, data, weights)[1]


def no_weights(data: Data) -> Terms:
    rows = (len(data.mask),)
    return Terms(*(jnp.zeros(shape) for shape in (rows, data.joint_noise.shape, data.local_noise.shape, rows)))


def some_params(choices: Choices, seed: int = 0) -> dict:
    """Weights of a size at which every part matters, in float64; two log-std of both levels lie beyond a clip edge."""
    rng = np.random.default_rng(seed)
    params = nnx.to_pure_dict(network(choices)[1])
    params = jax.tree.map(lambda x: rng.normal(size=x.shape) * (x.shape[-2] if x.ndim > 1 else 8) ** -0.5, params)
    params["joint"]["out"]["bias"][ZW] = params["local"]["out"]["bias"][ZA + 1] = -20.0
    params["prior"]["out"]["bias"][ZA + 2] = 20.0
    if not choices.discrete:
        params["decoder"]["out"]["bias"][A] = -6.0  # near the floor of the policy's deviation
    return params


def some_data(choices: Choices, seed: int = 1) -> Data:
    """Ragged ends, a late agent, a gap, an agent absent for a whole episode, and padded features."""
    rng = np.random.default_rng(seed)
    mask = np.arange(T)[None, :, None] < np.array([7, 4, 6, 3, 5])[:, None, None]
    mask = np.broadcast_to(mask, (B, T, N)).copy()
    mask[0, :2, 1] = mask[1, :, 2] = mask[2, 2, :] = mask[4, :4, 0] = False
    obs_real, action_real = np.ones((N, DO)), np.ones((N, A))
    obs_real[1, 3] = 0.0
    if not choices.discrete:
        action_real[2, 1] = 0.0
    actions = rng.integers(0, A, (B, T, N)) if choices.discrete else rng.normal(size=(B, T, N, A)) * action_real
    return Data(
        obs=rng.normal(size=(B, T, N, DO)) * 2 * obs_real,
        actions=actions.astype(np.int32) if choices.discrete else actions,
        mask=mask,
        obs_mean=rng.normal(size=DO),
        obs_std=rng.uniform(0.5, 2, DO),
        action_mean=np.zeros(A) if choices.discrete else rng.normal(size=A),
        action_std=np.ones(A) if choices.discrete else rng.uniform(0.5, 2, A),
        obs_real=obs_real,
        action_real=action_real,
        joint_noise=rng.normal(size=(B, ZW)),
        local_noise=rng.normal(size=(B, N, ZA)),
    )


def twice(data: Data) -> Data:
    """Every episode and its noise two times; scales and feature masks once."""
    rows = ("obs", "actions", "mask", "joint_noise", "local_noise")
    return data._replace(
        **{name: np.concatenate([value, value]) for name, value in data._asdict().items() if name in rows}
    )


def agree(found, wanted, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    for path, value in jax.tree.leaves_with_path(wanted):
        other = found
        for key in path:
            other = other[key.key]
        np.testing.assert_allclose(other, value, rtol=rtol, atol=atol, err_msg=jax.tree_util.keystr(path))


def differ(found, wanted) -> None:
    """The comparison of `agree` would have failed."""
    with pytest.raises(AssertionError):
        agree(found, wanted)


def scaled(grads, factor: float):
    return jax.tree.map(lambda g: factor * np.asarray(g), grads)
