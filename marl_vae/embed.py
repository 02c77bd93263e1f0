"""Use of a trained model: `load(run)` gives an object with the verbs `embed`, `elbo` and `act`."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from data_gen.trajectory import InputError, TrajectoryBatch, check_batch
from marl_vae.batching import in_pieces
from marl_vae.checkpoint import Checkpoints, read_description
from marl_vae.latents import Embeddings, Gaussian, draw
from marl_vae.model import HierarchicalVAE
from marl_vae.normalise import Normaliser
from marl_vae.objective import Noise, Terms, bound_terms, make_noise
from marl_vae.policy import gaussian_policy


def embeddings(model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch) -> Embeddings:
    """Posterior means and standard deviations of both levels; z_α's at the mean of z_ω."""
    team, own = model.features(scale, batch)
    joint = model.joint(team)
    local = model.local_posterior(own, joint.mean)
    return Embeddings(
        omega_mean=joint.mean,
        omega_std=jnp.exp(joint.log_std),
        alpha_mean=local.mean,
        alpha_std=jnp.exp(local.log_std),
    )


class TrainedModel:
    """A trained model with its scales. Batches are TrajectoryBatch of NumPy or JAX arrays, unscaled."""

    def __init__(self, model: HierarchicalVAE, scale: Normaliser, name: str):
        self.dims, self.config, self._scale, self._name = model.dims, model.config, scale, name
        graph, params = nnx.split(model)
        self._embed = jax.jit(lambda batch: embeddings(nnx.merge(graph, params), scale, batch))
        self._terms = jax.jit(lambda batch, noise: bound_terms(nnx.merge(graph, params), scale, batch, noise))
        self._model = model

    def embed(self, batch: TrajectoryBatch) -> Embeddings:
        """Latents of every episode; InputError where the batch does not fit the model."""
        self._check(batch)
        return in_pieces(self._embed, batch)

    def elbo(self, batch: TrajectoryBatch, *, key: PRNGKeyArray, samples: int = 1) -> Terms:
        """Terms of the bound in nats a trajectory, averaged over draws; recon less all KL is the bound."""
        self._check(batch)
        drawn = [
            in_pieces(self._terms, batch, self._noise(jax.random.fold_in(key, i), len(batch.mask)))
            for i in range(samples)
        ]
        return jax.tree.map(lambda *xs: np.mean(xs, axis=0), *drawn)

    def act(
        self, obs: Float[Array, "B N Do"], z: Float[Array, "B N Za"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "B N Da"] | Int[Array, "B N"]:
        """The action of every agent for local latents z: the policy's mode, or a draw where a key is given."""
        if obs.shape[-2:] != (self.dims.agents, self.dims.obs):
            raise InputError(
                f"{self._name}: obs ends in {obs.shape[-2:]}; this model has {self.dims.agents} agents with "
                f"{self.dims.obs} features."
            )
        scaled = (jnp.asarray(obs) - jnp.asarray(self._scale.obs_mean)[None, None]) / jnp.asarray(self._scale.obs_std)[
            None, None
        ]
        out = self._model.decode(scaled[:, None], jnp.asarray(z))[:, 0]
        if self.dims.action.kind == "discrete":
            return jnp.argmax(out, -1) if key is None else jax.random.categorical(key, out)
        policy = gaussian_policy(out, self._scale, self.config.min_std)
        return policy.mean if key is None else draw(policy, jax.random.normal(key, policy.mean.shape))

    def local_prior(self, z_joint: Float[Array, "B Zw"]) -> Gaussian:
        """p(z_α | z_ω) of every agent."""
        return self._model.local_prior(jnp.asarray(z_joint))

    def _noise(self, key: PRNGKeyArray, batch: int) -> Noise:
        return jax.tree.map(np.asarray, make_noise(key, self._model, batch))

    def _check(self, batch: TrajectoryBatch) -> None:
        check_batch(batch, self.dims.action, self._name)
        found = (batch.obs.shape[2], batch.obs.shape[3])
        if found != (self.dims.agents, self.dims.obs):
            raise InputError(
                f"{self._name} was trained on {self.dims.agents} agents with {self.dims.obs} observation features; "
                f"this data set has {found[0]} agents with {found[1]}. Use a data set of the same domain and settings."
            )


def load(run: str | Path) -> TrainedModel:
    """The chosen model of a run directory; InputError where there is none that can be read."""
    directory = Path(run) / "checkpoints"
    found = read_description(directory)
    model = HierarchicalVAE(found.model, found.dims, rngs=nnx.Rngs(0))
    graph, params = nnx.split(model)
    params, scale = Checkpoints(directory).restore_best(params)
    return TrainedModel(nnx.merge(graph, params), scale, str(run))
