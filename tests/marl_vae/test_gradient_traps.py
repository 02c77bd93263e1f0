"""Sums and means that are easily mistaken for one another in the loss: each is caught, and differs by a known factor.

docs/gradient-from-scratch.md lists them.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import FeatureMask, TrajectoryBatch
from marl_vae.batching import epoch_rows
from marl_vae.bound import bound, make_noise
from marl_vae.keys import NOISE, ORDER, key_of
from marl_vae.normalise import Normaliser
from marl_vae.objectives import BetaBound
from marl_vae.program import make_program
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.task import Task, Train
from tests.marl_vae.gradient_cases import (
    BETAS,
    CONTINUOUS,
    ZA,
    ZW,
    B,
    N,
    T,
    agree,
    config_of,
    differ,
    dims_of,
    network,
    real_grads,
    real_loss,
    scaled,
    some_data,
    some_params,
    training_loss,
    twice,
)
from tests.marl_vae.oracle_bound import loss_and_grads


@pytest.fixture(autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


def sum_over_episodes(terms, mask):
    return -bound(terms, *BETAS).sum()


def mean_over_episodes(terms, mask):
    return -bound(terms, *BETAS).mean()


def mean_over_padded_steps(terms, mask):
    return -bound(terms, *BETAS).sum() / mask.size


def mean_of_episodes_means(terms, mask):
    return -(bound(terms, *BETAS) / mask.sum((1, 2))).mean()


def mean_over_joint_dimensions(terms, mask):
    return training_loss(terms._replace(kl_joint=terms.kl_joint / ZW), mask)


def mean_over_local_dimensions(terms, mask):
    return training_loss(terms._replace(kl_local=terms.kl_local / ZA), mask)


def mean_over_agents(terms, mask):
    return training_loss(terms._replace(kl_local=terms.kl_local / N), mask)


def test_the_training_step_follows_this_gradient() -> None:
    """Adam's first moment after one step is 1 − b1 = .1 times the gradient, here unclipped; training is in float32."""
    choices, data = CONTINUOUS, some_data(CONTINUOUS)
    settings = Train(steps=1, batch=B, steps_per_dispatch=1, eval_every=1, clip=1e9)
    with jax.enable_x64(False):
        scale = Normaliser(*(field.astype(np.float32) for field in data[3:9]))
        schedule = Schedule(*(Cyclical(cycles=1, ratio=0.0, maximum=beta) for beta in BETAS))
        features = FeatureMask(obs=scale.obs_real > 0, actions=scale.action_real > 0)
        task = Task(config_of(choices), dims_of(choices), features, BetaBound(), schedule, settings, "some")
        program = make_program(task, scale, B)
        batch = TrajectoryBatch(jnp.float32(data.obs), jnp.float32(data.actions), jnp.asarray(data.mask))
        (start,) = program.start()
        (after,), _ = program.advance([start], batch, batch)
        rows = np.asarray(epoch_rows(key_of(settings.seed, ORDER), jnp.int32(0), B, B))
        net = nnx.merge(network(choices)[0], start.params)
        noise = make_noise(jax.random.fold_in(key_of(settings.seed, NOISE), 0), net, B)
    moment = nnx.to_pure_dict(after.opt_state[1][0].mu)
    data = data._replace(
        joint_noise=np.asarray(noise.joint)[rows.argsort()], local_noise=np.asarray(noise.local)[rows.argsort()]
    )
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), nnx.to_pure_dict(start.params))
    agree(moment, scaled(loss_and_grads(params, choices, data, *BETAS)[2], 0.1), rtol=1e-3, atol=1e-6)


def test_a_batch_taken_twice_changes_nothing_and_its_sum_doubles() -> None:
    params, data = some_params(CONTINUOUS), some_data(CONTINUOUS)
    for loss, factor in ((training_loss, 1), (sum_over_episodes, 2)):
        once, again = (real_loss(params, CONTINUOUS, d, loss) for d in (data, twice(data)))
        np.testing.assert_allclose(again, factor * once, rtol=1e-12)
        agree(
            real_grads(params, CONTINUOUS, twice(data), loss),
            scaled(real_grads(params, CONTINUOUS, data, loss), factor),
        )
    once, again = (loss_and_grads(params, CONTINUOUS, d, *BETAS) for d in (data, twice(data)))
    np.testing.assert_allclose(again[0], once[0], rtol=1e-12)
    np.testing.assert_allclose(again[1].sum(), 2 * once[1].sum(), rtol=1e-12)
    agree(again[2], once[2])


@pytest.mark.parametrize("loss", [mean_over_episodes, mean_over_padded_steps])
def test_a_wrong_divisor_is_caught_and_is_one_factor(loss) -> None:
    """The right gradient times (real actions) / B or / (B T N): as a learning rate that hangs on the batch."""
    params, data = some_params(CONTINUOUS), some_data(CONTINUOUS)
    found, (_, _, wanted) = real_grads(params, CONTINUOUS, data, loss), loss_and_grads(params, CONTINUOUS, data, *BETAS)
    differ(found, wanted)
    agree(found, scaled(wanted, data.mask.sum() / {mean_over_episodes: B, mean_over_padded_steps: B * T * N}[loss]))


def test_a_mean_of_episodes_means_is_caught_and_is_another_direction() -> None:
    """It weighs an action of a short episode more; where all episodes are equally long it is the right loss."""
    params, data = some_params(CONTINUOUS), some_data(CONTINUOUS)
    found = real_grads(params, CONTINUOUS, data, mean_of_episodes_means)
    _, _, wanted = loss_and_grads(params, CONTINUOUS, data, *BETAS)
    differ(found, wanted)
    a, b = (np.concatenate([np.ravel(x) for x in jax.tree.leaves(grads)]) for grads in (found, wanted))
    nearest = a @ b / (b @ b) * b
    assert np.linalg.norm(a - nearest) > 0.05 * np.linalg.norm(a)
    full = data._replace(mask=np.ones_like(data.mask))
    found = real_grads(params, CONTINUOUS, full, mean_of_episodes_means)
    agree(found, loss_and_grads(params, CONTINUOUS, full, *BETAS)[2])


@pytest.mark.parametrize(
    ("loss", "joint", "local"),
    [(mean_over_joint_dimensions, ZW, 1), (mean_over_local_dimensions, 1, ZA), (mean_over_agents, 1, N)],
)
def test_a_mean_over_latents_or_agents_is_caught_and_is_a_smaller_beta(loss, joint: int, local: int) -> None:
    params, data = some_params(CONTINUOUS), some_data(CONTINUOUS)
    found = real_grads(params, CONTINUOUS, data, loss)
    differ(found, loss_and_grads(params, CONTINUOUS, data, *BETAS)[2])
    agree(found, loss_and_grads(params, CONTINUOUS, data, BETAS[0] / joint, BETAS[1] / local)[2])
