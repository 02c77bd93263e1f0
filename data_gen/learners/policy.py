"""Actor and critic of one learner: two small networks, and Gaussian or categorical actions."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from data_gen.trajectory import ActionSpec

Params = dict[str, Array]
LOG_STD_FLOOR = math.log(0.1)


class Distribution(NamedTuple):
    """Functions of a `head`: Gaussian means and log standard deviations, or logits."""

    sample: Callable
    log_prob: Callable
    entropy: Callable


def gaussian_sample(head: Float[Array, "*S H"], key: Key[Array, ""]) -> Float[Array, "*S Da"]:
    mean, log_std = jnp.split(head, 2, axis=-1)
    return mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)


def gaussian_log_prob(head: Float[Array, "*S H"], actions: Float[Array, "*S Da"]) -> Float[Array, "*S"]:
    """Σ_d −½((a − μ)/σ)² − log σ − ½ log 2π."""
    mean, log_std = jnp.split(head, 2, axis=-1)
    z = (actions - mean) * jnp.exp(-log_std)
    return jnp.sum(-0.5 * z**2 - log_std - 0.5 * jnp.log(2 * jnp.pi), axis=-1)


def gaussian_entropy(head: Float[Array, "*S H"]) -> Float[Array, "*S"]:
    """Σ_d log σ + ½ log 2πe."""
    return jnp.sum(jnp.split(head, 2, axis=-1)[1] + 0.5 * jnp.log(2 * jnp.pi * jnp.e), axis=-1)


def categorical_sample(head: Float[Array, "*S H"], key: Key[Array, ""]) -> Int[Array, "*S"]:
    return jax.random.categorical(key, head, axis=-1)


def categorical_log_prob(head: Float[Array, "*S H"], actions: Int[Array, "*S"]) -> Float[Array, "*S"]:
    chosen = jax.nn.one_hot(actions, head.shape[-1])
    return jnp.sum(chosen * jax.nn.log_softmax(head), axis=-1)


def categorical_entropy(head: Float[Array, "*S H"]) -> Float[Array, "*S"]:
    log_p = jax.nn.log_softmax(head)
    return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)


DISTRIBUTIONS = {
    "continuous": Distribution(gaussian_sample, gaussian_log_prob, gaussian_entropy),
    "discrete": Distribution(categorical_sample, categorical_log_prob, categorical_entropy),
}


def init_network(key: Key[Array, ""], sizes: tuple[int, ...], last_scale: float) -> Params:
    """Normal weights of standard deviation gain / √fan-in (gain √2, `last_scale` in the last layer), zero biases.

    Orthogonal weights need a QR decomposition, and jaxlib 0.10.2's deadlocks on two cores under vmap.
    """
    params = {}
    for k, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        scale = (last_scale if k == len(sizes) - 2 else 2**0.5) / fan_in**0.5
        params[f"w{k}"] = scale * jax.random.normal(jax.random.fold_in(key, k), (fan_in, fan_out))
        params[f"b{k}"] = jnp.zeros(fan_out)
    return params


def network(params: Params, x: Float[Array, "*S In"]) -> Float[Array, "*S Out"]:
    """Tanh layers, then a linear one. `params` may also hold what is not a layer."""
    n_layers = sum(name.startswith("w") for name in params)
    for k in range(n_layers):
        bias = params[f"b{k}"]
        x = x @ params[f"w{k}"] + bias.reshape((1,) * (x.ndim - 1) + bias.shape)
        x = jnp.tanh(x) if k < n_layers - 1 else x
    return x


def init_actor(key: Key[Array, ""], n_obs: int, hidden: int, action: ActionSpec, initial_std: float = 1.0) -> Params:
    """A small last layer, so that a new policy is nearly N(0, initial_std²) or uniform."""
    params = init_network(key, (n_obs, hidden, hidden, action.size), last_scale=0.01)
    if action.kind == "continuous":
        # A dtype of its own: a weakly typed leaf would come back strong, and every program would compile twice.
        params["raw_std"] = jnp.full(action.size, raw_std(initial_std), jnp.float32)
    return params


def raw_std(std: float) -> float:
    """The parameter at which log σ = log 0.1 + softplus(raw) gives this standard deviation, which is above 0.1."""
    return round(math.log(math.expm1(math.log(std) - LOG_STD_FLOOR)), 6)


def head_of(params: Params, obs: Float[Array, "*S Do"], kind: str) -> Float[Array, "*S H"]:
    """The action distribution's parameters; log σ = log 0.1 + softplus(raw), so the floor has no dead gradient."""
    out = network(params, obs)
    if kind == "discrete":
        return out
    log_std = LOG_STD_FLOOR + jax.nn.softplus(params["raw_std"])
    log_std = jnp.broadcast_to(log_std.reshape((1,) * (out.ndim - 1) + log_std.shape), out.shape)
    return jnp.concatenate([out, log_std], axis=-1)
