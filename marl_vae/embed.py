"""Use of a trained model: `load(run)` gives an object with the verbs `embed`, `elbo` and `act`."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from data_gen.trajectory import (
    AnyArray,
    Episodes,
    InputError,
    RowIndex,
    TrajectoryBatch,
    check_batch,
    n_episodes,
    take,
    to_device,
)
from marl_vae.batching import check_episodes, in_pieces
from marl_vae.bound import Drawn, Noise, Terms, draw_terms, log_ratios, make_noise, reconstruction
from marl_vae.checkpoint import Checkpoints, read_description
from marl_vae.decoders import Memory
from marl_vae.latents import Embeddings, Gaussian, draw, point
from marl_vae.model import AUTOENCODER, FLAT, HierarchicalVAE
from marl_vae.normalise import Normaliser, scale_obs
from marl_vae.policy import gaussian_policy


def embeddings(model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch) -> Embeddings:
    """Posterior means and standard deviations of both levels; z_α's at the mean of z_ω."""
    team, own = model.features(scale, batch)
    joint = model.joint(team)
    local = model.local_posterior(own, joint.mean)
    given = model.given(joint.mean, local.mean)
    return Embeddings(
        omega_mean=joint.mean,
        omega_std=jnp.exp(joint.log_std),
        alpha_mean=given,
        alpha_std=jnp.zeros_like(given) if model.config.form == FLAT else jnp.exp(local.log_std),
    )


def _log_weights(
    model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, noise: Noise
) -> Float[Array, "B K"]:
    """`noise` has the axes [B, K, …], so that it is cut into pieces beside the episodes."""
    drawn = draw_terms(model, scale, batch, Noise(*(jnp.moveaxis(part, 1, 0) for part in noise)))
    joint, local = log_ratios(drawn.posteriors, batch.mask.any(1))
    return jnp.moveaxis(drawn.terms.recon + joint + local, 0, 1)


def _crossed(
    model: HierarchicalVAE, scale: Normaliser, batch: TrajectoryBatch, other: TrajectoryBatch, noise: Noise
) -> Float[Array, " B"]:
    found = model.infer(*model.features(scale, other), noise.joint, noise.local)
    return reconstruction(model, scale, batch, model.given(found.z_joint, found.z_local))


class TrainedModel:
    """A trained model with its scales. Batches are TrajectoryBatch of NumPy or JAX arrays, unscaled, or Episodes."""

    def __init__(self, model: HierarchicalVAE, scale: Normaliser, name: str):
        self.dims, self.config, self.scale, self._name = model.dims, model.config, scale, name
        graph, params = nnx.split(model)
        self._embed = jax.jit(lambda batch: embeddings(nnx.merge(graph, params), scale, batch))
        self._drawn = jax.jit(lambda batch, noise: draw_terms(nnx.merge(graph, params), scale, batch, noise))
        self._crossed = jax.jit(
            lambda batch, other, noise: _crossed(nnx.merge(graph, params), scale, batch, other, noise)
        )
        self._given = jax.jit(lambda batch, z: reconstruction(nnx.merge(graph, params), scale, batch, z))
        self._weights = jax.jit(lambda batch, noise: _log_weights(nnx.merge(graph, params), scale, batch, noise))
        self._model = model

    @property
    def exchangeable(self) -> bool:
        """Whether the model tells no agent from another, so that it takes any number of them."""
        alike = all((np.asarray(real) == np.asarray(real)[:1]).all() for real in _real_of(self.scale).values())
        return self.config.team == "pool" and not self.config.agent_index and alike

    def for_agents(self, agents: int) -> "TrainedModel":
        """The same weights for another number of agents; InputError where the model tells agents apart."""
        if not self.exchangeable:
            raise InputError(
                f"{self._name} tells its {self.dims.agents} agents apart. Only a model with model.team=pool and "
                "model.agent_index=false, of agents with the same features, takes another number."
            )
        model = HierarchicalVAE(self.config, self.dims._replace(agents=agents), rngs=nnx.Rngs(0))
        nnx.update(model, nnx.split(self._model)[1])
        real = {name: np.repeat(np.asarray(of)[:1], agents, axis=0) for name, of in _real_of(self.scale).items()}
        return TrainedModel(model, self.scale._replace(**real), self._name)

    def embed(self, batch: TrajectoryBatch | Episodes) -> Embeddings:
        """Latents of every episode; InputError where the batch does not fit the model."""
        self._check(batch)
        return in_pieces(self._embed, batch)

    def elbo(self, batch: TrajectoryBatch | Episodes, *, key: PRNGKeyArray, samples: int = 1) -> Terms:
        """Terms of the bound in nats a trajectory, averaged over draws; recon less all KL is the bound.

        InputError for an autoencoder, which has none.
        """
        self._refuse_autoencoder("bound")
        if samples < 1:
            raise InputError(f"elbo: samples={samples}; draw at least one.")
        drawn = [self.drawn(batch, key=jax.random.fold_in(key, i)).terms for i in range(samples)]
        return jax.tree.map(lambda *xs: np.mean(xs, axis=0), *drawn)

    def drawn(self, batch: TrajectoryBatch | Episodes, *, key: PRNGKeyArray) -> Drawn:
        """The terms at one draw of both latents, with the posteriors, the local prior and the draws."""
        self._check(batch)
        return in_pieces(self._drawn, batch, self._noise(key, n_episodes(batch)))

    def cross_log_likelihood(
        self, batch: TrajectoryBatch | Episodes, other: Int[np.ndarray, " B"], *, key: PRNGKeyArray
    ) -> Float[np.ndarray, " B"]:
        """Σ_it log π(a | o, z_α) in nats of each episode, with z_α drawn from the posterior of episode `other`."""
        self._check(batch)

        def crossed(piece: TrajectoryBatch, rows: np.ndarray, noise: Noise) -> Array:
            return self._crossed(piece, to_device(take(batch, rows)), noise)

        return in_pieces(crossed, batch, np.asarray(other, np.int32), self._noise(key, n_episodes(batch)))

    def log_likelihood(
        self, batch: TrajectoryBatch | Episodes, z_local: Float[AnyArray, "B N Za"]
    ) -> Float[np.ndarray, " B"]:
        """Σ_it log π(a | o, z_α) in nats of each episode, with the given local latents."""
        self._check(batch)
        return in_pieces(self._given, batch, np.asarray(z_local, np.float32))

    def log_weights(self, batch: TrajectoryBatch, draws: int, *, key: PRNGKeyArray) -> Float[np.ndarray, "B K"]:
        """log π(a|o, z_α) p(z_α|z_ω) p(z_ω) − log q(z_α|z_ω, τ) q(z_ω|τ) at draws of both posteriors.

        InputError for an autoencoder, whose latents have no density.
        """
        self._refuse_autoencoder("bound")
        self._check(batch)
        keys = jax.random.split(key, draws)
        noise = jax.vmap(lambda one: make_noise(one, self._model, len(batch.mask)), out_axes=1)(keys)
        return in_pieces(self._weights, batch, jax.tree.map(np.asarray, noise))

    def act(
        self, obs: Float[AnyArray, "..."], z: Float[AnyArray, "..."], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "B N Da"] | Int[Array, "B N"]:
        """The action of every agent at one step: the policy's mode, or a draw where a key is given; 0 in padding.

        Takes obs [B, N, Do] and local latents z [B, N, Za] (of a flat model, z_ω for each agent); InputError for other
        shapes (broadcasting would pair episodes with each other's latents), for values that are not finite, and for a
        model whose decoder remembers.
        """
        if self.config.decoder != "feedforward":
            raise InputError(
                f"{self._name}: the decoder remembers what it observed, so one step alone has no action. Take "
                "`memory = model.start(len(obs))` before an episode and `action, memory = model.step(memory, obs, z)` "
                "at each of its steps."
            )
        return self.step((), obs, z, key=key)[0]

    def start(self, episodes: int) -> Memory:
        """What the decoder remembers before the first step of so many episodes; () where it is feed-forward."""
        return self._model.decoder.start(episodes, self.dims.agents)

    def step(
        self,
        memory: Memory,
        obs: Float[AnyArray, "..."],
        z: Float[AnyArray, "..."],
        *,
        present: Bool[AnyArray, "B N"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[Float[Array, "B N Da"] | Int[Array, "B N"], Memory]:
        """`act` with any decoder: the actions, and what is remembered for the next step.

        Agents that are not `present` keep their memory, and their actions mean nothing; none given means all are.
        """
        self._check_step(memory, obs, z)
        here = np.ones(np.shape(obs)[:2], bool) if present is None else present
        scaled = scale_obs(self.scale, jnp.asarray(obs)[:, None])[:, 0]
        out, memory = self._model.decode_step(memory, scaled, jnp.asarray(z), jnp.asarray(here))
        return self._chosen(out, key), memory

    def _chosen(self, out: Float[Array, "B N _"], key: PRNGKeyArray | None) -> Array:
        if self.dims.action.kind == "discrete":
            return jnp.argmax(out, -1) if key is None else jax.random.categorical(key, out)
        policy = gaussian_policy(out, self.scale, self.config.min_std)
        chosen = policy.mean if key is None else draw(policy, jax.random.normal(key, policy.mean.shape))
        return chosen * jnp.asarray(self.scale.action_real)[None]

    def _check_step(self, memory: Memory, obs: Any, z: Any) -> None:
        wanted = {"obs": self.dims.obs, "z": self.config.given_width}
        for name, value in {"obs": obs, "z": z}.items():
            shape = (len(obs), self.dims.agents, wanted[name])
            if np.shape(value) != shape:
                raise InputError(
                    f"{self._name}: act takes one step of every agent; {name} must have shape {shape}, and has "
                    f"{np.shape(value)}."
                )
            if not np.isfinite(value).all():
                raise InputError(f"{self._name}: {name} holds a value that is not finite.")
        fresh = self.start(len(obs))
        if np.shape(memory) != np.shape(fresh):
            raise InputError(
                f"{self._name}: the memory of these episodes has shape {np.shape(fresh)}, and this one "
                f"{np.shape(memory)}; begin with start({len(obs)})."
            )

    def local_prior(self, z_joint: Float[AnyArray, "B Zw"]) -> Gaussian:
        """p(z_α | z_ω) of every agent: of a flat model z_ω itself, with deviation 0; InputError for an autoencoder."""
        self._refuse_autoencoder("prior")
        z_joint = jnp.asarray(z_joint)
        prior = self._model.local_prior(z_joint)
        return point(self._model.given(z_joint, prior.mean)) if self.config.form == FLAT else prior

    def _refuse_autoencoder(self, what: str) -> None:
        if self.config.form == AUTOENCODER:
            raise InputError(
                f"{self._name} is an autoencoder (model.form): its latents are points, and have no {what}."
            )

    def _noise(self, key: PRNGKeyArray, batch: int) -> Noise:
        return jax.tree.map(np.asarray, make_noise(key, self._model, batch))

    def _check(self, batch: Any) -> None:
        if not isinstance(batch, TrajectoryBatch | Episodes):
            raise InputError(f"{self._name} takes a TrajectoryBatch, such as dataset.batch; this is a {type(batch)}.")
        obs = take(batch, np.zeros(1, np.int32)).obs if isinstance(batch, Episodes) else batch.obs
        found = obs.shape[2:]
        if obs.ndim == 4 and found != (self.dims.agents, self.dims.obs):
            raise InputError(
                f"{self._name} was trained on {self.dims.agents} agents with {self.dims.obs} observation features; "
                f"this data set has {' agents with '.join(map(str, found))}. Use a data set of the same domain and "
                "settings."
            )
        check_episodes(lambda piece, where: check_batch(piece, self.dims.action, where), batch, self._name)


def _real_of(scale: Normaliser) -> dict[str, AnyArray]:
    return {"obs_real": scale.obs_real, "action_real": scale.action_real}


def load(run: str | Path) -> TrainedModel:
    """The chosen model of a run directory; InputError where there is none that can be read."""
    graph, params = nnx.split(_fresh_model(Path(run), seed=0))
    params, scale = Checkpoints(Path(run) / "checkpoints").restore_best(params)
    return TrainedModel(nnx.merge(graph, params), scale, str(run))


def load_untrained(run: str | Path, *, seed: int) -> TrainedModel:
    """The same networks and scales with fresh random weights: what a probe compares the trained encoder with."""
    model = _fresh_model(Path(run), seed)
    _, scale = Checkpoints(Path(run) / "checkpoints").restore_best(nnx.split(model)[1])
    return TrainedModel(model, scale, f"{run}, untrained")


def _fresh_model(run: Path, seed: int) -> HierarchicalVAE:
    found = read_description(run / "checkpoints")
    return HierarchicalVAE(found.model, found.dims, rngs=nnx.Rngs(params=jax.random.key(seed)))


def as_arrays(
    latents: Embeddings, rows: RowIndex, split: Int[np.ndarray, " B"]
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Named arrays with their dimensions, as a store takes them: a latent's row says which episode it came from."""
    dims = {"omega": ("episode", "joint_latent"), "alpha": ("episode", "agent", "local_latent")}
    found = {name: (dims[name.split("_")[0]], np.asarray(values)) for name, values in latents._asdict().items()}
    index = {f"row_{name}": (("episode",), values) for name, values in rows._asdict().items()}
    return {**found, **index, "split": (("episode",), np.asarray(split))}
