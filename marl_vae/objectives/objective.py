"""What training minimises: an inner loss about the agents and an outer loss about the team.

B episodes, N agents, Zw joint and Za local width, K draws of both latents.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, Scalar

from data_gen.trajectory import InputError, TrajectoryBatch
from marl_vae.bound import Noise, Terms, draw_terms, make_noise
from marl_vae.latents import Posteriors
from marl_vae.model import HierarchicalVAE, Model
from marl_vae.normalise import Normaliser

FRESH = 2  # after the two levels of make_noise
Tuned = dict[str, Array]  # weights by name; none where nothing is tuned


class Beta(NamedTuple):
    """The schedule's weights of both KL terms at a step."""

    joint: Float[Array, ""]
    local: Float[Array, ""]


class Sample(NamedTuple):
    """What a loss reads of a mini-batch. `terms`, `posteriors` and `likelihood` have a leading axis of K draws.

    `likelihood` is what the latents are to explain, in nats an episode: the bound's recon, and beside it
    model.predict_state times the state term. `fresh` are standard normal draws that no latent was made from; `rows`
    numbers the episodes within their split.
    """

    terms: Terms
    posteriors: Posteriors
    likelihood: Float[Array, "K B"]
    fresh: Noise
    present: Bool[Array, "B N"]
    rows: Int[Array, " B"]
    beta: Beta


class Objective:
    """Abstract: a loss of two levels, in nats an episode. A subclass supplies either or both; what it leaves out is 0.

    `inner_loss` is about the agents: reconstruction and local terms. `outer_loss` is about the team: joint terms; they
    are added, and one gradient step minimises both. Where `tuned` gives weights, the outer loss is instead taken on
    validation episodes, after a step on the inner one, and the weights follow its gradient (`two_level.py`).
    """

    draws: int = 1  # of both latents, a mini-batch
    inner_rate: float = 0.05  # of the step that is differentiated where weights are tuned
    outer_rate: float = 0.02  # of the weights' own steps, by Adam

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.inner_loss is Objective.inner_loss and cls.outer_loss is Objective.outer_loss:
            raise TypeError(f"{cls.__name__} supplies neither inner_loss nor outer_loss: there is nothing to minimise.")

    def __new__(cls, *args: Any, **settings: Any) -> "Objective":
        if cls is Objective:
            raise TypeError("Objective is abstract; make one of its subclasses.")
        return super().__new__(cls)

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        """The agents' part, for each episode."""
        return jnp.zeros(len(sample.rows))

    def outer_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        """The team's part, for each episode."""
        return jnp.zeros(len(sample.rows))

    def why_not(self, form: str) -> str:
        """Why this loss makes no sense for a model of that form; empty where it does."""
        return ""

    def tuned(self, episodes: int) -> Tuned:
        """Weights of the inner loss that validation episodes tune, as they are first; none by default."""
        return {}

    def watched(self, tuned: Tuned) -> dict[str, Scalar]:
        """Figures about the tuned weights for the log."""
        return {}


def sampled(
    objective: Objective,
    model: HierarchicalVAE,
    scale: Normaliser,
    batch: TrajectoryBatch,
    rows: Int[Array, " B"],
    *,
    beta: Beta,
    key: PRNGKeyArray,
) -> Sample:
    """The objective's draws for a mini-batch."""
    size, draws = len(batch.mask), objective.draws
    keys = key[None] if draws == 1 else jax.random.split(jax.random.fold_in(key, FRESH + 1), draws)
    noise = jax.vmap(lambda key: make_noise(key, model, size))(keys)
    drawn = draw_terms(model, scale, batch, noise)
    recon, state, weight = drawn.terms.recon, drawn.terms.state, model.config.predict_state
    return Sample(
        terms=drawn.terms,
        posteriors=drawn.posteriors,
        likelihood=recon + weight * state if weight else recon,
        fresh=make_noise(jax.random.fold_in(key, FRESH), model, size),
        present=batch.mask.any(1),
        rows=rows,
        beta=beta,
    )


def in_nats_an_action(loss: Float[Array, " B"], batch: TrajectoryBatch) -> Scalar:
    """The sum over episodes by the number of real actions, so that the gradient's size does not hang on lengths."""
    return loss.sum() / batch.mask.sum()


def check_form(objective: Objective, model: Model) -> None:
    """Raise InputError where the objective makes no sense for the model's form."""
    if why := objective.why_not(model.form):
        raise InputError(f"objective {type(objective).__name__} cannot train model.form={model.form}: {why}.")


def at_least(objective: Objective, least: float, *names: str) -> None:
    """Raise InputError unless these settings are finite and at least `least`."""
    for name in names:
        value: Any = getattr(objective, name)
        if not least <= value < math.inf:
            raise InputError(f"objective.{name}={value} must be finite and at least {least:g}.")
