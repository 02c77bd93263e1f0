"""Proximal policy optimisation (Schulman et al. 2017) of independent learners, from transitions to new parameters.

Letters: L learners (one an agent, or one in all where they share), M agents of a learner, E environments, T steps,
K = E · M · T samples of a learner.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int32, Key, Shaped

from data_gen.learners.policy import DISTRIBUTIONS, Params, head_of, init_actor, init_network, network
from data_gen.trajectory import ActionSpec, InputError


@dataclass(unsafe_hash=True)
class PPO:
    """`sharing`: one network for all agents, told who it is. `initial_std`: of a new policy's Gaussian actions.

    An update learns from `envs` environments: from whole episodes where `segment` is 0 (domains on the plane), else
    from the next `segment` steps of each, whether an episode ends in them or not (bodies on an engine).
    """

    sharing: bool = False
    updates: int = 150
    envs: int = 16
    segment: int = 0
    epochs: int = 4
    minibatches: int = 2
    lr: float = 1e-3
    hidden: int = 32
    initial_std: float = 1.0
    gamma: float = 0.95
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.015
    max_grad_norm: float = 0.5

    def __post_init__(self):
        for name in ("updates", "envs", "epochs", "minibatches", "hidden"):
            if getattr(self, name) < 1:
                raise InputError(f"learner: {name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("lr", "clip", "max_grad_norm"):
            if not getattr(self, name) > 0:
                raise InputError(f"learner: {name} is {getattr(self, name)}; it must be positive.")
        if not 0.1 < self.initial_std < 100:
            raise InputError(
                f"learner: initial_std is {self.initial_std}; it must lie above .1, the policies' floor, and below 100."
            )
        if self.segment < 0:
            raise InputError(f"learner: segment is {self.segment}; it must not be negative (0: whole episodes).")
        if not (0 <= self.gamma < 1 and 0 <= self.gae_lambda <= 1 and self.entropy >= 0):
            raise InputError(
                f"learner: gamma {self.gamma} must lie in [0, 1), gae_lambda {self.gae_lambda} in [0, 1], and entropy "
                f"{self.entropy} must not be negative."
            )


class LearnerState(NamedTuple):
    """Of one training seed. Parameters and optimiser have a leading axis L; `number` counts updates."""

    params: dict[str, Params]
    optimiser: optax.OptState
    key: Key[Array, ""]
    number: Int32[Array, ""]


class Transitions(NamedTuple):
    """What a team saw, did and got. `following` is the observation after the step, before any new episode begins.

    `terminated`: nothing follows in this world. `ended`: the next row belongs to another episode, or there is none.
    """

    obs: Float[Array, "E T N Do"]
    actions: Array
    rewards: Float[Array, "E T N"]
    following: Float[Array, "E T N Do"]
    terminated: Bool[Array, "E T"]
    ended: Bool[Array, "E T"]


class Samples(NamedTuple):
    """What one learner's update reads. `real` is 0 where an action's dimension is padding, and counts for nothing."""

    obs: Float[Array, "*S Do"]
    actions: Array
    real: Float[Array, "*S Da"]
    log_prob: Float[Array, "*S"]
    advantage: Float[Array, "*S"]
    target: Float[Array, "*S"]


def check_minibatches(ppo: PPO, n_steps: int, n_agents: int) -> None:
    """Raise InputError where the samples of one update cannot be cut into equal minibatches."""
    samples = ppo.envs * n_steps * (n_agents if ppo.sharing else 1)
    if samples % ppo.minibatches:
        raise InputError(
            f"learner: {samples} samples an update (envs {ppo.envs} x {n_steps} steps) cannot be cut into "
            f"{ppo.minibatches} equal minibatches. Choose a number of minibatches that divides them."
        )


def optimiser_of(ppo: PPO) -> optax.GradientTransformation:
    """Adam after clipping the norm of one learner's gradient."""
    return optax.chain(optax.clip_by_global_norm(ppo.max_grad_norm), optax.adam(ppo.lr))


def by_learner(x: Shaped[Array, "N ..."], sharing: bool) -> Shaped[Array, "L M ..."]:
    """Agents to learners: [N, …] becomes [1, N, …] where they share, else [N, 1, …]."""
    return x[None] if sharing else x[:, None]


def inputs_of(obs: Float[Array, "N *S Do"], sharing: bool) -> Float[Array, "L M *S In"]:
    """What the networks read: the observation, and where agents share, which of them it is."""
    if sharing:
        n = obs.shape[0]
        who = jnp.eye(n).reshape((n,) + (1,) * (obs.ndim - 2) + (n,))
        obs = jnp.concatenate([obs, jnp.broadcast_to(who, (*obs.shape[:-1], n))], axis=-1)
    return by_learner(obs, sharing)


def init_state(n_agents: int, n_obs: int, action: ActionSpec, ppo: PPO, key: Key[Array, ""]) -> LearnerState:
    """New networks for one training seed."""
    n_learners = 1 if ppo.sharing else n_agents
    n_obs = n_obs + (n_agents if ppo.sharing else 0)
    keys = jax.random.split(jax.random.fold_in(key, 0), (n_learners, 2))
    params = {
        "actor": jax.vmap(lambda k: init_actor(k, n_obs, ppo.hidden, action, ppo.initial_std))(keys[:, 0]),
        "critic": jax.vmap(lambda k: init_network(k, (n_obs, ppo.hidden, ppo.hidden, 1), 1.0))(keys[:, 1]),
    }
    optimiser = jax.vmap(optimiser_of(ppo).init)(params)
    return LearnerState(params, optimiser, jax.random.fold_in(key, 1), jnp.zeros((), jnp.int32))


def gae(
    rewards: Float[Array, "*S T"],
    values: Float[Array, "*S T"],
    next_values: Float[Array, "*S T"],
    terminated: Bool[Array, "*S T"],
    ended: Bool[Array, "*S T"],
    discounts: tuple[float, float],
) -> Float[Array, "*S T"]:
    """Generalised advantages (Schulman et al. 2016); `discounts` are γ and λ.

    δ_t = r_t + γ (1 − terminated_t) V'_t − V_t and A_t = δ_t + γλ (1 − ended_t) A_{t+1}. V' is the value of what
    followed the step, also where the episode was cut: a cut is no end of the world.
    """
    gamma, gae_lambda = discounts
    delta = rewards + gamma * jnp.where(terminated, 0.0, next_values) - values
    goes_on = jnp.where(ended, 0.0, gamma * gae_lambda)

    def back(after, now):
        delta_t, goes_on_t = now
        advantage = delta_t + goes_on_t * after
        return advantage, advantage

    over_time = (jnp.moveaxis(delta, -1, 0), jnp.moveaxis(goes_on, -1, 0))
    _, advantage = jax.lax.scan(back, jnp.zeros_like(values[..., 0]), over_time, reverse=True)
    return jnp.moveaxis(advantage, 0, -1)


def value_of(critic: Params, inputs: Float[Array, "*S In"], gamma: float) -> Float[Array, "*S"]:
    """V in units of return; the network's output is in units of reward, (1 − γ)V, so that it is of order one."""
    return network(critic, inputs)[..., 0] / (1 - gamma)


def real_head(head: Float[Array, "*S H"], real: Float[Array, "*S Da"], kind: str) -> Float[Array, "*S H"]:
    """The head with padded dimensions of a continuous action set to N(0, 1): they add a constant and learn nothing."""
    return head if kind == "discrete" else head * jnp.concatenate([real, real], axis=-1)


def loss(params: dict[str, Params], samples: Samples, kind: str, ppo: PPO) -> Float[Array, ""]:
    """Of one learner: clipped surrogate, squared error of (1 − γ)V, and entropy bonus."""
    distribution = DISTRIBUTIONS[kind]
    head = real_head(head_of(params["actor"], samples.obs, kind), samples.real, kind)
    ratio = jnp.exp(distribution.log_prob(head, samples.actions) - samples.log_prob)
    advantage = (samples.advantage - jnp.mean(samples.advantage)) / (jnp.std(samples.advantage) + 1e-6)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - ppo.clip, 1 + ppo.clip) * advantage)
    error = (1 - ppo.gamma) * (value_of(params["critic"], samples.obs, ppo.gamma) - samples.target)
    return -jnp.mean(gain) + 0.5 * jnp.mean(error**2) - ppo.entropy * jnp.mean(distribution.entropy(head))


def learn_from(params, optimiser, samples: Samples, key: Key[Array, ""], kind: str, ppo: PPO):
    """All epochs of one learner's update on its K samples."""
    n_samples = samples.advantage.shape[0]
    orders = jax.vmap(lambda k: jax.random.permutation(k, n_samples))(jax.random.split(key, ppo.epochs))

    def minibatch(carry, rows):
        params, optimiser = carry
        chosen = jax.tree.map(lambda x: x[rows], samples)
        gradient = jax.grad(loss)(params, chosen, kind, ppo)
        change, optimiser = optimiser_of(ppo).update(gradient, optimiser, params)
        return (jax.tree.map(jnp.add, params, change), optimiser), None

    rows = orders.reshape(ppo.epochs * ppo.minibatches, n_samples // ppo.minibatches)
    (params, optimiser), _ = jax.lax.scan(minibatch, (params, optimiser), rows)
    return params, optimiser


def samples_of(
    action_real: Bool[Array, "N Da"], kind: str, ppo: PPO, params: dict[str, Params], seen: Transitions
) -> Samples:
    """Transitions [E, T, N, …] to samples [L, K, …]: advantages, value targets and the old log-probabilities."""
    inputs, after = (inputs_of(jnp.moveaxis(obs, 2, 0), ppo.sharing) for obs in (seen.obs, seen.following))
    actions = by_learner(jnp.moveaxis(seen.actions, 2, 0), ppo.sharing)
    rewards = by_learner(jnp.moveaxis(seen.rewards, 2, 0), ppo.sharing)
    value = jax.vmap(partial(value_of, gamma=ppo.gamma))
    values = value(params["critic"], inputs)
    terminated, ended = (jnp.broadcast_to(flag[None, None], rewards.shape) for flag in (seen.terminated, seen.ended))
    following = value(params["critic"], after)
    advantage = gae(rewards, values, following, terminated, ended, (ppo.gamma, ppo.gae_lambda))
    real = by_learner(action_real.astype(jnp.float32), ppo.sharing)[:, :, None, None]
    real = jnp.broadcast_to(real, (*rewards.shape, real.shape[-1]))
    heads = real_head(jax.vmap(partial(head_of, kind=kind))(params["actor"], inputs), real, kind)
    samples = Samples(
        obs=inputs,
        actions=actions,
        real=real,
        log_prob=DISTRIBUTIONS[kind].log_prob(heads, actions),
        advantage=advantage,
        target=advantage + values,
    )
    n_learners, count = rewards.shape[0], rewards[0].size
    return jax.tree.map(lambda x: x.reshape(n_learners, count, *x.shape[4:]), samples)


def improve(
    action_real: Bool[Array, "N Da"], kind: str, ppo: PPO, state: LearnerState, seen: Transitions, key: Key[Array, ""]
) -> tuple[LearnerState, Bool[Array, ""]]:
    """Each learner improves its own networks on what the team saw; False where a parameter is no longer finite."""
    samples = samples_of(action_real, kind, ppo, state.params, seen)
    keys = jax.random.split(key, samples.advantage.shape[0])
    learn = jax.vmap(partial(learn_from, kind=kind, ppo=ppo))
    params, optimiser = learn(state.params, state.optimiser, samples, keys)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)]))
    return LearnerState(params, optimiser, state.key, state.number + 1), finite
