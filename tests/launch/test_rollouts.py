"""A decoder in the simulator: the same scales, starts and steps that recording has."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from data_gen.domains import coordination
from data_gen.keys import named_key
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import act_scripted, play
from data_gen.recording.plane_world import PlaneWorld
from data_gen.trajectory import all_real
from launch.rollouts import rollouts_of
from marl_vae.decoders import FeedForward
from marl_vae.embed import TrainedModel
from marl_vae.latents import Gaussian
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import Normaliser

MEETING = coordination.make(coordination.Coordination())
WORLD = PlaneWorld(MEETING, PPO(updates=2, envs=8, hidden=8))
DIMS = Dims(agents=2, obs=5, action=MEETING.action)
CONFIG = Model(joint_width=3, local_width=2, hidden=8, decoder_hidden=8)


def scale() -> Normaliser:
    """Nothing at zero mean or unit scale, so that a decoder that is given raw observations sees another world."""
    rng, real = np.random.default_rng(0), all_real(2, 5, MEETING.action)
    mean, std = rng.normal(size=5).astype(np.float32), rng.uniform(0.2, 3, 5).astype(np.float32)
    nothing = np.zeros(9, np.float32)
    return Normaliser(mean, std, nothing, nothing + 1, real.obs.astype(np.float32), real.actions.astype(np.float32))


class ToGoal(HierarchicalVAE):
    """A decoder that is sure: both agents walk to the goal whose number is their first local latent."""

    def __init__(self):
        self.config, self.dims = CONFIG, DIMS
        self.decoder = FeedForward(1, 1, 1, 1, rngs=nnx.Rngs(0))  # only its empty memory is used

    def decode_step(self, memory, obs, z_local, present):
        position = (obs * scale().obs_std[None, None] + scale().obs_mean[None, None])[..., :2]
        goals = jnp.asarray(coordination.goal_places(MEETING.config))[jnp.round(z_local[..., 0]).astype(int)]
        offset = (goals - position) / MEETING.config.max_step
        after = offset[..., None, :] - jnp.asarray(coordination.plane.DIRECTIONS)[None, None]
        return -1e6 * jnp.sum(after**2, axis=-1), memory

    def local_prior(self, z_joint):
        """Every agent's first latent is the team's first."""
        mean = jnp.repeat(z_joint[:, None, :2], 2, axis=1)
        return Gaussian(mean=mean, log_std=jnp.full(mean.shape, -20.0))


@pytest.fixture(scope="module")
def scripted():
    return rollouts_of(TrainedModel(ToGoal(), scale(), "scripted"), WORLD)


def test_a_scripted_decoder_plays_what_the_scripted_team_plays(scripted) -> None:
    behaviour = scripted.local(np.zeros((6, 2, 2), np.float32), 3)
    want = jax.jit(jax.vmap(partial(play, MEETING, partial(act_scripted, MEETING))))(starts(6, 3))
    np.testing.assert_allclose(behaviour.batch.obs, want.obs, atol=1e-6)
    np.testing.assert_array_equal(behaviour.batch.actions, want.actions)
    np.testing.assert_allclose(behaviour.returns, np.asarray(want.rewards).mean(2).sum(1))
    assert (behaviour.labels.values["goal"] == 0).all() and not behaviour.failed.any()


def starts(n: int, seed: int):
    return jax.random.split(named_key(seed, "coordination", "rollout", "starts"), n)


def test_the_goal_follows_the_joint_latent_and_the_start_does_not(scripted) -> None:
    goals = np.array([0, 1, 2, 3, 2], np.float32)
    z = np.stack([goals, np.zeros(5), np.ones(5)], axis=1).astype(np.float32)
    one, other, elsewhere = scripted.joint(z, 0), scripted.joint(z[::-1].copy(), 0), scripted.joint(z, 1)
    np.testing.assert_array_equal(one.labels.values["goal"], goals)
    np.testing.assert_array_equal(other.labels.values["goal"], goals[::-1])
    np.testing.assert_array_equal(one.batch.obs[:, 0], other.batch.obs[:, 0])
    assert np.abs(one.batch.obs[:, 0] - elsewhere.batch.obs[:, 0]).max() > 1e-3
    assert not {"progress", "convention"} & set(one.labels.values)


def test_a_models_own_draws_are_the_same_for_every_arm_of_a_seed() -> None:
    model = TrainedModel(HierarchicalVAE(CONFIG, DIMS, rngs=nnx.Rngs(params=jax.random.key(0))), scale(), "random")
    rollouts = rollouts_of(model, WORLD)
    z = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    one, again = rollouts.joint(z, 0), rollouts.joint(z, 0)
    np.testing.assert_array_equal(one.batch.actions, again.batch.actions)
    other = z.copy()
    other[1] += 1e5  # a new decoder hardly listens
    changed = rollouts.joint(other, 0)
    for row in (0, 2, 3):
        np.testing.assert_array_equal(one.batch.actions[row], changed.batch.actions[row])
    assert (one.batch.actions[1] != changed.batch.actions[1]).any()
    # Draws, anew at every step, of a policy that is nearly uniform.
    assert len(np.unique(one.batch.actions)) > 5 and (np.ptp(one.batch.actions, axis=1) > 0).all()
