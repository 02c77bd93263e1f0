"""The hierarchical VAE: z_ω ~ N(0, I), z_α^i | z_ω, and a policy that sees z_ω only through z_α^i.

Two simpler forms stand beside it as baselines: a flat VAE, and a deterministic autoencoder.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float

from data_gen.trajectory import ActionSpec, Dataset, InputError, OpenDataset, TrajectoryBatch
from marl_vae.decoders import DECODERS, Decoder, FeedForward, Memory
from marl_vae.encoders import ENCODERS
from marl_vae.latents import Gaussian, Posteriors, draw
from marl_vae.modules import GaussianHead, PointHead
from marl_vae.normalise import Normaliser, scaled_actions, scaled_obs

TEAM_ENCODERS = ("concat", "pool")
HIERARCHICAL, FLAT, AUTOENCODER = FORMS = ("hierarchical", "flat", "autoencoder")


@dataclass(unsafe_hash=True)
class Model:
    """Widths and choices. In the `form` flat the policy is given z_ω itself, and there are no local latents.

    The form autoencoder has both levels, but latents are points: there is no noise, no prior and no KL.

    `team` joins agents by concatenation, or by a mean that is blind to their order. `encoder` is what reads the steps
    of the team, and those of each agent; `decoder` the policy, which may remember what the agent has observed.

    `agent_index` tells local posterior, local prior and decoder which agent they serve; without it agents are
    exchangeable. `local_sees_joint` feeds z_ω to the posterior of z_α; without it z_ω learns through the two KLs alone.
    `min_std` bounds the policy's standard deviation, in units of the actions' own, from below.
    `predict_state` weighs the log-likelihood of each agent's next observation beside that of its actions in what
    training maximises; at 0 there is no network for it.
    """

    form: str = HIERARCHICAL
    joint_width: int = 8
    local_width: int = 4
    hidden: int = 48
    decoder_hidden: int = 64
    encoder: str = "lstm"
    decoder: str = "feedforward"
    team: str = "concat"
    agent_index: bool = True
    local_sees_joint: bool = True
    min_std: float = 0.05
    predict_state: float = 0.0

    def __post_init__(self) -> None:
        for name, known in {"form": FORMS, "team": TEAM_ENCODERS, "encoder": ENCODERS, "decoder": DECODERS}.items():
            if getattr(self, name) not in known:
                raise InputError(f"model.{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(known)}.")
        if self.form != HIERARCHICAL and not self.local_sees_joint:
            raise InputError(
                f"model.local_sees_joint=false is a choice of the hierarchical form alone: with model.form={self.form} "
                "the joint level has nothing else to learn from, or there is no local posterior."
            )
        widths = (self.joint_width, self.local_width, self.hidden, self.decoder_hidden)
        if min(widths) < 1 or not 0 < self.min_std < math.inf:
            raise InputError(f"model widths must be at least 1 and min_std above 0; got {widths}, {self.min_std}.")
        if not 0 <= self.predict_state < math.inf:
            raise InputError(f"model.predict_state={self.predict_state} is a weight: it must be finite and at least 0.")

    @property
    def random_levels(self) -> tuple[str, ...]:
        """The levels whose latents are random, and so have a KL."""
        return {HIERARCHICAL: ("omega", "alpha"), FLAT: ("omega",), AUTOENCODER: ()}[self.form]

    @property
    def own_width(self) -> int:
        """Width of an agent's own latents."""
        return 0 if self.form == FLAT else self.local_width

    @property
    def given_width(self) -> int:
        """Width of the latents that the policy is given."""
        return self.joint_width if self.form == FLAT else self.local_width


class Dims(NamedTuple):
    """What the data fix: N agents, Do observation features, and the actions."""

    agents: int
    obs: int
    action: ActionSpec


def dims_of(found: Dataset | OpenDataset) -> Dims:
    """The dimensions of a data set."""
    agents, obs = found.features.obs.shape
    return Dims(agents=agents, obs=obs, action=found.action)


class HierarchicalVAE(nnx.Module):
    """Encoders of both levels, the conditional local prior, and the policy decoder; other forms lack some."""

    def __init__(self, config: Model, dims: Dims, *, rngs: nnx.Rngs):
        self.config, self.dims = config, dims
        step = dims.obs + dims.action.size
        index = dims.agents if config.agent_index else 0
        team = dims.agents * (step + 1) if config.team == "concat" else config.hidden
        if config.team == "pool":
            self.member = nnx.Linear(step, config.hidden, rngs=rngs)
        encoder = ENCODERS[config.encoder]
        self.team_encoder = encoder(team, config.hidden, rngs=rngs)
        if config.form != FLAT:
            self.local_encoder = encoder(step, config.hidden, rngs=rngs)
        seen = config.joint_width if config.local_sees_joint else 0
        local = encoder.width * config.hidden + seen + index
        head = PointHead if config.form == AUTOENCODER else GaussianHead
        self.joint = head(encoder.width * config.hidden, config.hidden, config.joint_width, rngs=rngs)
        if config.form != FLAT:
            self.local = head(local, config.hidden, config.local_width, rngs=rngs)
        if config.form == HIERARCHICAL:
            self.prior = head(config.joint_width + index, config.hidden, config.local_width, rngs=rngs)
        self.decoder = make_decoder(config, dims, config.given_width, rngs=rngs)
        if config.predict_state:
            seen, context = dims.obs + dims.action.size, config.given_width + index
            self.dynamics = FeedForward(seen, context, config.decoder_hidden, 2 * dims.obs, rngs=rngs)

    def features(self, scale: Normaliser, batch: TrajectoryBatch) -> tuple[Float[Array, "B F"], Float[Array, "B N G"]]:
        """What the encoders keep of the team and of each agent; nothing of the agents in the flat form."""
        b, t, n = batch.mask.shape
        if self.config.form == FLAT:
            return self.team_features(scale, batch), jnp.zeros((b, n, 0))
        step = jnp.concatenate([scaled_obs(scale, batch), scaled_actions(scale, batch)], axis=-1)
        own = step.swapaxes(1, 2).reshape(b * n, t, -1)
        own_mask = batch.mask.swapaxes(1, 2).reshape(b * n, t)
        joint, local = ENCODERS[self.config.encoder].together(
            [self.team_encoder, self.local_encoder],
            [self._team_input(step, batch.mask), own],
            [batch.mask.any(-1), own_mask],
        )
        return joint, local.reshape(b, n, -1)

    def team_features(self, scale: Normaliser, batch: TrajectoryBatch) -> Float[Array, "B F"]:
        """What the team's encoder alone keeps; the first of `features`."""
        step = jnp.concatenate([scaled_obs(scale, batch), scaled_actions(scale, batch)], axis=-1)
        return self.team_encoder(self._team_input(step, batch.mask), batch.mask.any(-1))

    def _team_input(self, step: Float[Array, "B T N D"], mask) -> Float[Array, "B T _"]:
        present = mask[..., None].astype(step.dtype)
        if self.config.team == "concat":
            return jnp.concatenate([step, present], axis=-1).reshape(*step.shape[:2], -1)
        members = jax.nn.silu(self.member(step)) * present
        return members.sum(2) / jnp.maximum(present.sum(2), 1.0)

    def local_posterior(self, features: Float[Array, "B N F"], z_joint: Float[Array, "B Zw"]) -> Gaussian:
        """q(z_α^i | z_ω, τ^i)."""
        if self.config.form == FLAT:
            return _nothing(len(features), self.dims.agents)
        seen = [_for_each_agent(z_joint, self.dims.agents)] if self.config.local_sees_joint else []
        return self.local(jnp.concatenate([features, *seen, *self._index(len(features))], axis=-1))

    def local_prior(self, z_joint: Float[Array, "B Zw"]) -> Gaussian:
        """p(z_α^i | z_ω)."""
        if self.config.form != HIERARCHICAL:
            return _nothing(len(z_joint), self.dims.agents)
        each = _for_each_agent(z_joint, self.dims.agents)
        return self.prior(jnp.concatenate([each, *self._index(len(z_joint))], axis=-1))

    def given(self, z_joint: Float[Array, "B Zw"], z_local: Float[Array, "B N _"]) -> Float[Array, "B N Za"]:
        """The latents that the policy is given: z_α^i, or z_ω itself where there are no local ones."""
        return _for_each_agent(z_joint, self.dims.agents) if self.config.form == FLAT else z_local

    def decode(
        self, obs: Float[Array, "B T N Do"], z_local: Float[Array, "B N Za"], mask: Bool[Array, "B T N"]
    ) -> Float[Array, "B T N _"]:
        """Parameters of π(a_t^i | o_t^i, z_α^i), for scaled observations; z_ω is not an argument.

        A recurrent decoder sees o_1^i to o_t^i of the steps at which the agent is present.
        """
        return self.decoder(obs, self._context(z_local), mask)

    def decode_step(
        self,
        memory: Memory,
        obs: Float[Array, "B N Do"],
        z_local: Float[Array, "B N Za"],
        present: Bool[Array, "B N"],
    ) -> tuple[Float[Array, "B N _"], Memory]:
        """The same for one step, and what the decoder remembers after it."""
        return self.decoder.step(memory, obs, self._context(z_local), present)

    def infer(
        self,
        team: Float[Array, "B F"],
        own: Float[Array, "B N G"],
        joint_noise: Float[Array, "B Zw"],
        local_noise: Float[Array, "B N Za"],
    ) -> Posteriors:
        """Both posteriors and the local prior at one reparameterised draw of z_ω, from `features`."""
        joint = self.joint(team)
        z_joint = draw(joint, joint_noise)
        local = self.local_posterior(own, z_joint)
        return Posteriors(
            joint=joint,
            local=local,
            local_prior=self.local_prior(z_joint),
            z_joint=z_joint,
            z_local=draw(local, local_noise),
        )

    def predict_change(
        self,
        obs: Float[Array, "B T N Do"],
        actions: Float[Array, "B T N A"],
        z_local: Float[Array, "B N Za"],
        mask: Bool[Array, "B T N"],
    ) -> Float[Array, "B T N _"]:
        """Parameters of p(o_{t+1}^i − o_t^i | o_t^i, a_t^i, z_α^i), all scaled; only where `predict_state` is set."""
        return self.dynamics(jnp.concatenate([obs, actions], axis=-1), self._context(z_local), mask)

    def _context(self, z_local: Float[Array, "B N Za"]) -> Float[Array, "B N C"]:
        return jnp.concatenate([z_local, *self._index(len(z_local))], axis=-1)

    def _index(self, batch: int) -> list[Float[Array, "B N N"]]:
        return [agent_index(batch, self.dims.agents)] if self.config.agent_index else []


def make_decoder(config: Model, dims: Dims, latent: int, *, rngs: nnx.Rngs) -> Decoder:
    """A policy that also sees `latent` numbers an agent; loc and scale, or logits, come out."""
    out = 2 * dims.action.size if dims.action.kind == "continuous" else dims.action.size
    context = latent + (dims.agents if config.agent_index else 0)
    return DECODERS[config.decoder](dims.obs, context, config.decoder_hidden, out, rngs=rngs)


def agent_index(batch: int, agents: int) -> Float[Array, "B N N"]:
    """One-hot number of each agent."""
    return jnp.broadcast_to(jnp.eye(agents)[None], (batch, agents, agents))


def _nothing(batch: int, agents: int) -> Gaussian:
    empty = jnp.zeros((batch, agents, 0))
    return Gaussian(mean=empty, log_std=empty)


def _for_each_agent(z: Float[Array, "B Z"], agents: int) -> Float[Array, "B N Z"]:
    return jnp.broadcast_to(z[:, None], (z.shape[0], agents, z.shape[1]))
