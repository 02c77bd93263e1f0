"""Independent PPO for any domain and both kinds of action: rollout and update are one program, vmapped over seeds.

Letters: S training seeds, L learners (one an agent, or one in all where they share), M agents of a learner,
E environments, T steps, K = E · M · T samples of a learner.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Float32, Int32, Key, Shaped

from data_gen.domains.domain import Domain
from data_gen.policy import DISTRIBUTIONS, Params, head_of, init_actor, init_network, network
from data_gen.rollout import play, team_return
from data_gen.trajectory import InputError


@dataclass(unsafe_hash=True)
class PPO:
    """Proximal policy optimisation (Schulman et al. 2017). `sharing`: one network for all agents, told who it is."""

    sharing: bool = False
    updates: int = 150
    envs: int = 16
    epochs: int = 4
    minibatches: int = 2
    lr: float = 1e-3
    hidden: int = 32
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


class Progress(NamedTuple):
    """Of one update: mean team return of its episodes, and whether all parameters are finite after it."""

    team_return: Float32[Array, ""]
    finite: Bool[Array, ""]


class Samples(NamedTuple):
    """What one learner's update reads."""

    obs: Float[Array, "*S Do"]
    actions: Array
    log_prob: Float[Array, "*S"]
    advantage: Float[Array, "*S"]
    target: Float[Array, "*S"]


def check_fit(domain: Domain, ppo: PPO) -> None:
    """Raise InputError where the samples of one update cannot be cut into equal minibatches."""
    samples = ppo.envs * domain.horizon * (domain.n_agents if ppo.sharing else 1)
    if samples % ppo.minibatches:
        raise InputError(
            f"learner: {samples} samples an update (envs {ppo.envs} x horizon {domain.horizon}) cannot be cut into "
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


def init_learner(domain: Domain, ppo: PPO, key: Key[Array, ""]) -> LearnerState:
    """New networks for one training seed."""
    n_learners = 1 if ppo.sharing else domain.n_agents
    n_obs = len(domain.obs_names) + (domain.n_agents if ppo.sharing else 0)
    keys = jax.random.split(jax.random.fold_in(key, 0), (n_learners, 2))
    params = {
        "actor": jax.vmap(lambda k: init_actor(k, n_obs, ppo.hidden, domain.action))(keys[:, 0]),
        "critic": jax.vmap(lambda k: init_network(k, (n_obs, ppo.hidden, ppo.hidden, 1), 1.0))(keys[:, 1]),
    }
    optimiser = jax.vmap(optimiser_of(ppo).init)(params)
    return LearnerState(params, optimiser, jax.random.fold_in(key, 1), jnp.zeros((), jnp.int32))


def act_policy(domain: Domain, sharing: bool, actors: Params, state, obs: Float[Array, "N Do"], key) -> Array:
    """The stochastic policies' actions, for `rollout.play`; `state` is not looked at."""
    heads = jax.vmap(partial(head_of, kind=domain.action.kind))(actors, inputs_of(obs, sharing))
    return DISTRIBUTIONS[domain.action.kind].sample(heads.reshape(domain.n_agents, -1), key)


def gae(
    rewards: Float[Array, "*S T"],
    values: Float[Array, "*S T"],
    last_value: Float[Array, "*S"],
    gamma: float,
    gae_lambda: float,
) -> Float[Array, "*S T"]:
    """Generalised advantages of episodes that are truncated after step T (Schulman et al. 2016).

    δ_t = r_t + γ V_{t+1} − V_t and A_t = δ_t + γλ A_{t+1}, with V_T = `last_value`: the cut is no end of the world.
    """
    following = jnp.concatenate([values[..., 1:], last_value[..., None]], axis=-1)
    delta = jnp.moveaxis(rewards + gamma * following - values, -1, 0)

    def back(after, delta_t):
        now = delta_t + gamma * gae_lambda * after
        return now, now

    _, advantage = jax.lax.scan(back, jnp.zeros_like(last_value), delta, reverse=True)
    return jnp.moveaxis(advantage, 0, -1)


def value_of(critic: Params, inputs: Float[Array, "*S In"], gamma: float) -> Float[Array, "*S"]:
    """V in units of return; the network's output is in units of reward, (1 − γ)V, so that it is of order one."""
    return network(critic, inputs)[..., 0] / (1 - gamma)


def loss(params: dict[str, Params], samples: Samples, kind: str, ppo: PPO) -> Float[Array, ""]:
    """Of one learner: clipped surrogate, squared error of (1 − γ)V, and entropy bonus."""
    distribution = DISTRIBUTIONS[kind]
    head = head_of(params["actor"], samples.obs, kind)
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


def samples_of(domain: Domain, ppo: PPO, params: dict[str, Params], episodes) -> Samples:
    """Episodes [E, T, N, …] to samples [L, K, …]: advantages, value targets and the old log-probabilities."""
    obs = jnp.concatenate([episodes.obs, episodes.last_obs[:, None]], axis=1)
    inputs = inputs_of(jnp.moveaxis(obs, 2, 0), ppo.sharing)
    actions = by_learner(jnp.moveaxis(episodes.actions, 2, 0), ppo.sharing)
    rewards = by_learner(jnp.moveaxis(episodes.rewards, 2, 0), ppo.sharing)
    values = jax.vmap(partial(value_of, gamma=ppo.gamma))(params["critic"], inputs)
    advantage = gae(rewards, values[..., :-1], values[..., -1], ppo.gamma, ppo.gae_lambda)
    heads = jax.vmap(partial(head_of, kind=domain.action.kind))(params["actor"], inputs[..., :-1, :])
    samples = Samples(
        obs=inputs[..., :-1, :],
        actions=actions,
        log_prob=DISTRIBUTIONS[domain.action.kind].log_prob(heads, actions),
        advantage=advantage,
        target=advantage + values[..., :-1],
    )
    n_learners, count = rewards.shape[0], rewards[0].size
    return jax.tree.map(lambda x: x.reshape(n_learners, count, *x.shape[4:]), samples)


def update(domain: Domain, ppo: PPO, state: LearnerState) -> tuple[LearnerState, Progress]:
    """Play `envs` episodes with one seed's policies, then let each learner improve its own networks on them."""
    play_key, learn_key = jax.random.split(jax.random.fold_in(state.key, state.number))
    act = partial(act_policy, domain, ppo.sharing, state.params["actor"])
    episodes = jax.vmap(partial(play, domain, act))(jax.random.split(play_key, ppo.envs))
    samples = samples_of(domain, ppo, state.params, episodes)
    keys = jax.random.split(learn_key, samples.advantage.shape[0])
    improve = jax.vmap(partial(learn_from, kind=domain.action.kind, ppo=ppo))
    params, optimiser = improve(state.params, state.optimiser, samples, keys)
    finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)]))
    progress = Progress(team_return=jnp.mean(team_return(episodes.rewards)), finite=finite)
    return LearnerState(params, optimiser, state.key, state.number + 1), progress


@partial(jax.jit, static_argnums=(0, 1))
def init_seeds(domain: Domain, ppo: PPO, keys: Key[Array, " S"]) -> LearnerState:
    """New learners, one training seed a key."""
    return jax.vmap(partial(init_learner, domain, ppo))(keys)


@partial(jax.jit, static_argnums=(0, 1, 3), donate_argnums=(2,))
def train_seeds(domain: Domain, ppo: PPO, state: LearnerState, n_updates: int) -> tuple[LearnerState, Progress]:
    """`n_updates` updates of every seed; Progress has the axes [S, U]."""
    step = jax.vmap(partial(update, domain, ppo))
    state, progress = jax.lax.scan(lambda s, _: step(s), state, None, length=n_updates)
    return state, Progress(*(jnp.moveaxis(field, 0, 1) for field in progress))
