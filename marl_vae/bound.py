"""The bound on log p(a | o), kept as separate unweighted terms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from data_gen.trajectory import AnyArray, TrajectoryBatch
from marl_vae.dynamics import change_log_likelihood
from marl_vae.latents import Posteriors, kl, log_density, standard_normal
from marl_vae.model import AUTOENCODER, HierarchicalVAE
from marl_vae.normalise import Normaliser, scaled_actions, scaled_obs
from marl_vae.policy import action_log_likelihood


class Terms(NamedTuple):
    """Per trajectory, in nats: Σ_it log π, KL of z_ω by dimension, and KL of each present agent's z_α by dimension.

    A level that has no KL has width 0 here: z_α of a flat model, both levels of an autoencoder.
    `state` is Σ_it log p(o_{t+1} − o_t) in scaled units, 0 where the model predicts none; it is no part of the bound.
    """

    recon: Float[AnyArray, " B"]
    kl_joint: Float[AnyArray, "B Zw"]
    kl_local: Float[AnyArray, "B N Za"]
    state: Float[AnyArray, " B"]


class Noise(NamedTuple):
    """Standard normal draws for both reparameterisations."""

    joint: Float[Array, "B Zw"]
    local: Float[Array, "B N Za"]


def make_noise(key: PRNGKeyArray, model: HierarchicalVAE, batch: int) -> Noise:
    """Noise for one sample of both latents a trajectory."""
    joint, local = (jax.random.fold_in(key, level) for level in range(2))
    config = model.config
    return Noise(
        joint=jax.random.normal(joint, (batch, config.joint_width)),
        local=jax.random.normal(local, (batch, model.dims.agents, config.own_width)),
    )


def reconstruction(
    model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, z_local: Float[Array, "B N Za"]
) -> Float[Array, " B"]:
    """Σ_it log π(a_t^i | o_t^i, z_α^i) in nats of each trajectory."""
    out = model.decode(scaled_obs(scale, batch), z_local, batch.mask)
    return action_log_likelihood(out, batch, model.dims.action, scale, model.config.min_std).sum((1, 2))


def state_prediction(
    model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, z_local: Float[Array, "B N Za"]
) -> Float[Array, " B"]:
    """Σ_it log p(o_{t+1}^i − o_t^i | o_t^i, z_α^i, a_t^i) of each trajectory, in nats of scaled units."""
    if not model.config.predict_state:
        return jnp.zeros(len(batch.mask))
    obs = scaled_obs(scale, batch)
    out = model.predict_change(obs, scaled_actions(scale, batch), z_local, batch.mask)
    return change_log_likelihood(out, obs, batch.mask, scale, model.config.min_std).sum((1, 2))


class Drawn(NamedTuple):
    """The terms at one draw of both latents, and what they were computed from."""

    terms: Terms
    posteriors: Posteriors


def draw_terms(model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, noise: Noise) -> Drawn:
    """One-sample estimates of the terms of design.md §2 (after Tang et al. 2022); both KLs in closed form.

    `noise` may have a leading axis of K draws; every field then has it too, and the encoders run once.
    """
    features = model.features(scale, batch)
    present = batch.mask.any(1)[..., None]

    def one(noise: Noise) -> Drawn:
        found = model.infer(*features, noise.joint, noise.local)
        given = model.given(found.z_joint, found.z_local)
        random = model.config.form != AUTOENCODER
        terms = Terms(
            recon=reconstruction(model, scale, batch, given),
            kl_joint=kl(found.joint, standard_normal(found.joint)) if random else found.z_joint[..., :0],
            kl_local=jnp.where(present, kl(found.local, found.local_prior), 0.0) if random else found.z_local[..., :0],
            state=state_prediction(model, scale, batch, given),
        )
        return Drawn(terms=terms, posteriors=found)

    return one(noise) if noise.joint.ndim == 2 else jax.vmap(one)(noise)


def bound_terms(model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, noise: Noise) -> Terms:
    """The terms alone."""
    return draw_terms(model, scale, batch, noise).terms


def log_ratios(found: Posteriors, present: Bool[Array, "B N"]) -> tuple[Float[Array, "K B"], Float[Array, "K B"]]:
    """log p − log q of both latents at each of K draws; of z_α summed over the agents that are present."""
    joint = log_density(standard_normal(found.joint), found.z_joint) - log_density(found.joint, found.z_joint)
    local = log_density(found.local_prior, found.z_local) - log_density(found.local, found.z_local)
    return joint.sum(-1), jnp.where(present[None, :, :, None], local, 0.0).sum((-2, -1))


def bound(
    terms: Terms, beta_joint: Float[Array, ""] | float, beta_local: Float[Array, ""] | float
) -> Float[AnyArray, " B"]:
    """L = recon − β_ω KL_ω − β_α Σ_i KL_α^i, per trajectory; a lower bound of log p(a | o) where both β are 1."""
    return terms.recon - beta_joint * terms.kl_joint.sum(-1) - beta_local * terms.kl_local.sum((-2, -1))
