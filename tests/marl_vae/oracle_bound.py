"""The whole bound and its gradient in NumPy float64, from scratch; docs/gradient-from-scratch.md explains each step.

Letters: B episodes, T steps, N agents, Do observation, A actions or choices, Zw joint and Za local latent.
"""

from typing import NamedTuple

import numpy as np

from tests.marl_vae import oracle_layers as layers
from tests.marl_vae.oracle_layers import Normal


class Choices(NamedTuple):
    """What the parameters' shapes do not say."""

    discrete: bool
    team: str
    agent_index: bool
    local_sees_joint: bool
    min_std: float


class Data(NamedTuple):
    """A mini-batch [B, T, N, ...], its scales, and the noise of both latents."""

    obs: np.ndarray
    actions: np.ndarray
    mask: np.ndarray
    obs_mean: np.ndarray
    obs_std: np.ndarray
    action_mean: np.ndarray
    action_std: np.ndarray
    obs_real: np.ndarray
    action_real: np.ndarray
    joint_noise: np.ndarray
    local_noise: np.ndarray


def loss_and_grads(params, choices: Choices, data: Data, beta_joint: float, beta_local: float):
    """−Σ_b L_b / (number of real actions), L_b of every episode, and d loss / d parameter under the same names."""
    bounds, caches = forward(params, choices, data, beta_joint, beta_local)
    grads = backward(caches, choices, data, beta_joint, beta_local)
    return -bounds.sum() / data.mask.sum(), bounds, grads


def forward(params, choices, data, beta_joint, beta_local):
    """L_b = recon_b − β_ω KL_ω − β_α Σ_i KL_α^i of each episode, and what backward needs."""
    obs, steps = _scaled(choices, data)
    present = data.mask.any(1)[..., None]
    team, team_cache = _team_features(params, choices, steps, data.mask)
    own, own_cache = _own_features(params, steps, data.mask)

    joint, joint_cache = layers.head(params["joint"], team)
    z_joint, z_joint_cache = layers.draw(joint, data.joint_noise)
    kl_joint, kl_joint_cache = layers.kl(joint, Normal(np.zeros_like(joint.mean), np.zeros_like(joint.mean)))

    each = np.repeat(z_joint[:, None], data.mask.shape[2], axis=1)
    index = _index(choices, data)
    local, local_cache = layers.head(params["local"], _beside(own, *[each] * choices.local_sees_joint, *index))
    prior, prior_cache = layers.head(params["prior"], _beside(each, *index))
    z_local, z_local_cache = layers.draw(local, data.local_noise)
    kl_local, kl_local_cache = layers.kl(local, prior)

    out, decoder_cache = _decoder(params["decoder"], obs, _beside(z_local, *index))
    log_p, policy_cache = _policy(choices, data, out)
    bounds = log_p.sum((1, 2)) - beta_joint * kl_joint.sum(-1) - beta_local * (present * kl_local).sum((1, 2))
    return bounds, {
        "team": team_cache,
        "own": own_cache,
        "joint": joint_cache,
        "z_joint": z_joint_cache,
        "kl_joint": kl_joint_cache,
        "local": local_cache,
        "prior": prior_cache,
        "z_local": z_local_cache,
        "kl_local": kl_local_cache,
        "decoder": decoder_cache,
        "policy": policy_cache,
        "widths": (own.shape[-1], z_joint.shape[-1], z_local.shape[-1], present),
    }


def backward(caches, choices, data, beta_joint, beta_local):
    """From the loss, in which the likelihood weighs −1, KL_ω β_ω and KL_α β_α a real action, to every parameter."""
    real = data.mask.sum()
    own_width, joint_width, local_width, present = caches["widths"]
    out = _policy_back(choices, data, caches["policy"], -1 / real)
    context, d_decoder = _decoder_back(caches["decoder"], out)

    # Local level: z_α comes from the posterior alone; its KL moves posterior and prior.
    sampled = layers.draw_back(caches["z_local"], context[..., :local_width])
    for_local, for_prior = layers.kl_back(caches["kl_local"], beta_local / real * present)
    into_local, d_local = layers.head_back(caches["local"], _added(sampled, for_local))
    into_prior, d_prior = layers.head_back(caches["prior"], for_prior)

    # Joint level: z_ω was read by every agent's prior and, where local_sees_joint, by every agent's posterior.
    z_joint = into_prior[..., :joint_width].sum(1)
    if choices.local_sees_joint:
        z_joint = z_joint + into_local[..., own_width : own_width + joint_width].sum(1)
    sampled = layers.draw_back(caches["z_joint"], z_joint)
    for_joint, _ = layers.kl_back(caches["kl_joint"], beta_joint / real)
    into_team, d_joint = layers.head_back(caches["joint"], _added(sampled, for_joint))

    grads = {"decoder": d_decoder, "local": d_local, "prior": d_prior, "joint": d_joint}
    grads["local_encoder"] = _own_features_back(caches["own"], into_local[..., :own_width])
    return grads | _team_features_back(caches["team"], into_team)


def _beside(*parts):
    return np.concatenate(parts, axis=-1)


def _added(a, b):
    return Normal(a.mean + b.mean, a.log_std + b.log_std)


def _index(choices, data):
    b, _, n = data.mask.shape
    return [np.repeat(np.eye(n)[None], b, axis=0)] * choices.agent_index


def _scaled(choices, data):
    """Scaled observations, and beside them scaled actions; both 0 where absent or padding."""
    actions = data.actions
    if choices.discrete:
        actions = (actions[..., None] == np.arange(len(data.action_mean))).astype(float)
    obs = (data.obs - data.obs_mean) / data.obs_std * data.obs_real
    actions = (actions - data.action_mean) / data.action_std * data.action_real
    seen = data.mask[..., None]
    return obs * seen, _beside(obs, actions) * seen


def _team_features(params, choices, steps, mask):
    """One LSTM over what the team shows at each step; a step is real where any agent is present."""
    b, t, n = mask.shape
    present = mask[..., None].astype(float)
    if choices.team == "concat":
        features, lstm_cache = layers.lstm(
            params["team_encoder"], _beside(steps, present).reshape(b, t, -1), mask.any(-1)
        )
        return features, (lstm_cache, None)
    pre, linear_cache = layers.linear(params["member"], steps)
    members, silu_cache = layers.silu(pre)
    share = present / np.maximum(present.sum(2, keepdims=True), 1)
    features, lstm_cache = layers.lstm(params["team_encoder"], (members * share).sum(2), mask.any(-1))
    return features, (lstm_cache, (linear_cache, silu_cache, share))


def _team_features_back(cache, grad):
    lstm_cache, pooled = cache
    mean, d_lstm = layers.lstm_back(lstm_cache, grad)
    if pooled is None:
        return {"team_encoder": d_lstm}
    linear_cache, silu_cache, share = pooled
    members = mean[:, :, None] * share
    _, d_member = layers.linear_back(linear_cache, layers.silu_back(silu_cache, members))
    return {"team_encoder": d_lstm, "member": d_member}


def _own_features(params, steps, mask):
    """The same LSTM over each agent's own steps: a row is an agent of an episode."""
    b, t, n, width = steps.shape
    rows, real = steps.swapaxes(1, 2).reshape(b * n, t, width), mask.swapaxes(1, 2).reshape(b * n, t)
    features, cache = layers.lstm(params["local_encoder"], rows, real)
    return features.reshape(b, n, -1), cache


def _own_features_back(cache, grad):
    return layers.lstm_back(cache, grad.reshape(-1, grad.shape[-1]))[1]


def _decoder(params, obs, context):
    """Two hidden layers over observation and context; the context is constant over time."""
    from_obs, obs_cache = layers.linear(params["from_obs"], obs)
    from_context, context_cache = layers.linear(params["from_context"], context)
    first, first_cache = layers.silu(from_obs + from_context[:, None])
    pre, hidden_cache = layers.linear(params["hidden"], first)
    second, second_cache = layers.silu(pre)
    out, out_cache = layers.linear(params["out"], second)
    return out, (obs_cache, context_cache, first_cache, hidden_cache, second_cache, out_cache)


def _decoder_back(cache, grad):
    obs_cache, context_cache, first_cache, hidden_cache, second_cache, out_cache = cache
    second, d_out = layers.linear_back(out_cache, grad)
    first, d_hidden = layers.linear_back(hidden_cache, layers.silu_back(second_cache, second))
    pre = layers.silu_back(first_cache, first)
    _, d_obs = layers.linear_back(obs_cache, pre)
    context, d_context = layers.linear_back(context_cache, pre.sum(1))
    return context, {"from_obs": d_obs, "from_context": d_context, "hidden": d_hidden, "out": d_out}


def _policy(choices, data, out):
    """log π of each real agent step, summed over the agent's real actions."""
    if choices.discrete:
        log_p, cache = layers.categorical_policy(out, data.actions)
        return log_p * data.mask, cache
    scale = (data.action_mean, data.action_std, choices.min_std)
    log_p, cache = layers.gaussian_policy(out, data.actions, *scale)
    return (log_p * data.action_real).sum(-1) * data.mask, cache


def _policy_back(choices, data, cache, weight):
    if choices.discrete:
        return layers.categorical_policy_back(cache, weight * data.mask)
    return layers.gaussian_policy_back(cache, weight * data.mask[..., None] * data.action_real)
