"""The two-level form: validation episodes tune the weights of the training loss.

One step of gradient descent on the inner loss is differentiated, as in Shu et al. (2019) and Ren et al. (2018): with
network θ, weights w and step size η, w follows −∇_w outer(θ − η ∇_θ inner(θ, w)).
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree, Scalar

from data_gen.trajectory import InputError
from marl_vae.model import AUTOENCODER
from marl_vae.objectives.objective import Objective, Sample, Tuned, at_least

TUNED = ("levels", "episodes")


@dataclass
class TwoLevel(Objective):
    """The weighted bound as inner loss and the plain bound (both β 1) of validation episodes as outer loss.

    `tune` levels: a factor on each level's β. `tune` episodes: a confidence in (0, 2) for every training episode, 1 at
    first, by which its loss counts.
    """

    tune: str = "levels"
    inner_rate: float = 0.05
    outer_rate: float = 0.02

    def __post_init__(self) -> None:
        if self.tune not in TUNED:
            raise InputError(f"objective.tune={self.tune!r} is unknown; choose one of {', '.join(TUNED)}.")
        at_least(self, 1e-12, "inner_rate", "outer_rate")

    def tuned(self, episodes: int) -> Tuned:
        if self.tune == "levels":
            return {"joint": jnp.zeros(()), "local": jnp.zeros(())}
        return {"confidence": jnp.zeros(episodes)}

    def why_not(self, form: str) -> str:
        nothing = form == AUTOENCODER and self.tune == "levels"
        return "it has no KL whose weight could be tuned; objective.tune=episodes works" if nothing else ""

    def inner_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        terms, factor = sample.terms, factors(tuned)
        joint = sample.beta.joint * factor.get("joint", 1.0) * terms.kl_joint.sum(-1)
        local = sample.beta.local * factor.get("local", 1.0) * terms.kl_local.sum((-2, -1))
        loss = (joint + local - sample.likelihood).mean(0)
        return loss * factor["confidence"][sample.rows] if "confidence" in factor else loss

    def outer_loss(self, sample: Sample, tuned: Tuned) -> Float[Array, " B"]:
        terms = sample.terms
        return (terms.kl_joint.sum(-1) + terms.kl_local.sum((-2, -1)) - sample.likelihood).mean(0)

    def watched(self, tuned: Tuned) -> dict[str, Scalar]:
        found = factors(tuned)
        if "confidence" in found:
            values = found["confidence"]
            return {"confidence_low": values.min(), "confidence_mean": values.mean(), "confidence_high": values.max()}
        return {f"factor_{level}": value for level, value in found.items()}


def factors(tuned: Tuned) -> dict[str, Array]:
    """What the tuned numbers stand for: 1 at 0, never negative."""
    makers = {"joint": jnp.exp, "local": jnp.exp, "confidence": lambda x: 2 * jax.nn.sigmoid(x)}
    return {name: makers[name](value) for name, value in tuned.items()}


def outer_gradient(
    inner: Callable[[PyTree, PyTree], Scalar], outer: Callable[[PyTree, PyTree], Scalar], rate: float
) -> Callable[[PyTree, PyTree], PyTree]:
    """∇_w outer(θ − η ∇_θ inner(θ, w), w), a function of θ and w."""

    def after_a_step(tuned: PyTree, params: PyTree) -> Scalar:
        grads = jax.grad(inner)(params, tuned)
        return outer(jax.tree.map(lambda p, g: p - rate * g, params, grads), tuned)

    return lambda params, tuned: jax.grad(after_a_step)(tuned, params)
