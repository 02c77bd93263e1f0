"""Layers in NumPy float64, each a forward and a backward function; docs/gradient-from-scratch.md derives them.

Forward: (parameters, input) -> (output, cache). Backward: (cache, dL/d output) -> dL/d input and, where the layer has
parameters, a dict of dL/d parameter under the parameters' own names. Nothing under test is imported.
"""

from typing import NamedTuple

import numpy as np

LOW, HIGH = -6.0, 3.0


class Normal(NamedTuple):
    """Mean and log standard deviation, or the gradients with respect to them."""

    mean: np.ndarray
    log_std: np.ndarray


def linear(params, x):
    """y = x W + b over the last axis; b is optional."""
    y = x @ params["kernel"]
    return y + params["bias"] if "bias" in params else y, (params, x)


def linear_back(cache, grad):
    params, x = cache
    rows, grads = x.reshape(-1, x.shape[-1]), grad.reshape(-1, grad.shape[-1])
    found = {"kernel": rows.T @ grads}
    if "bias" in params:
        found["bias"] = grads.sum(0)
    return grad @ params["kernel"].T, found


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    """x σ(x)."""
    return x * sigmoid(x), x


def silu_back(x, grad):
    s = sigmoid(x)
    return grad * s * (1 + x * (1 - s))


def softplus(x):
    """log(1 + e^x)."""
    return np.logaddexp(0, x), x


def softplus_back(x, grad):
    return grad * sigmoid(x)


def clip(x):
    """min(max(x, LOW), HIGH)."""
    return np.clip(x, LOW, HIGH), x


def clip_back(x, grad):
    """1 inside, 0 outside, and at an edge itself one half: both arguments of max tie, and jnp shares between them."""
    inside, edge = (x > LOW) & (x < HIGH), (x == LOW) | (x == HIGH)
    return grad * (inside + 0.5 * edge)


def lstm(params, x, mask):
    """Rows [R, S, D] to [last→, last←, mean→, mean←], each [R, H], over the steps where the mask is True."""
    ways = [_one_way(params, way, x[:, ::step], mask[:, ::step]) for way, step in enumerate((1, -1))]
    last, mean = ([way[0][k] for way in ways] for k in range(2))
    return np.concatenate([*last, *mean], axis=-1), (x.shape, [way[1] for way in ways])


def lstm_back(cache, grad):
    shape, ways = cache
    forward, backward, forward_mean, backward_mean = np.split(grad, 4, axis=-1)
    dx_forward, grads_forward = _one_way_back(ways[0], shape, forward, forward_mean)
    dx_backward, grads_backward = _one_way_back(ways[1], shape, backward, backward_mean)
    grads = {name: np.stack([grads_forward[name], grads_backward[name]]) for name in grads_forward}
    return dx_forward + dx_backward[:, ::-1], grads


def _one_way(params, way, x, mask):
    inputs, recurrent, bias = (params[name][way] for name in ("inputs", "recurrent", "bias"))
    h, c, total = (np.zeros((len(x), len(recurrent))) for _ in range(3))
    steps = []
    for s in range(x.shape[1]):
        real = mask[:, s, None]
        i, f, g, o = np.split(x[:, s] @ inputs + h @ recurrent + bias, 4, axis=-1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        new_c = f * c + i * g
        squashed = np.tanh(new_c)
        steps.append((x[:, s], real, h, c, i, f, g, o, squashed))
        h, c = np.where(real, o * squashed, h), np.where(real, new_c, c)
        total = total + real * h
    count = np.maximum(mask.sum(-1), 1)[:, None]
    return (h, total / count), (inputs, recurrent, count, steps)


def _one_way_back(cache, shape, last, mean):
    inputs, recurrent, count, steps = cache
    dx = np.zeros(shape)
    d_inputs, d_recurrent, d_bias = np.zeros_like(inputs), np.zeros_like(recurrent), np.zeros(inputs.shape[1])
    dh, dc, each = last, np.zeros_like(last), mean / count
    for s in reversed(range(len(steps))):
        x, real, old_h, old_c, i, f, g, o, squashed = steps[s]
        # What reaches this step's new state: nothing in padding, where the old state went on instead.
        new_h = real * (dh + each)
        new_c = real * dc + new_h * o * (1 - squashed**2)
        gates = [new_c * g * i * (1 - i), new_c * old_c * f * (1 - f), new_c * i * (1 - g**2)]
        pre = np.concatenate([*gates, new_h * squashed * o * (1 - o)], axis=-1)
        dx[:, s] = pre @ inputs.T
        d_inputs += x.T @ pre
        d_recurrent += old_h.T @ pre
        d_bias += pre.sum(0)
        dh = ~real * dh + pre @ recurrent.T
        dc = ~real * dc + new_c * f
    return dx, {"inputs": d_inputs, "recurrent": d_recurrent, "bias": d_bias}


def head(params, x):
    """A hidden layer with silu, then mean and clipped log standard deviation."""
    pre, first = linear(params["hidden"], x)
    hidden, bent = silu(pre)
    out, second = linear(params["out"], hidden)
    mean, raw = np.split(out, 2, axis=-1)
    log_std, clipped = clip(raw)
    return Normal(mean, log_std), (first, bent, second, clipped)


def head_back(cache, grad):
    first, bent, second, clipped = cache
    out = np.concatenate([grad.mean, clip_back(clipped, grad.log_std)], axis=-1)
    hidden, d_out = linear_back(second, out)
    x, d_hidden = linear_back(first, silu_back(bent, hidden))
    return x, {"hidden": d_hidden, "out": d_out}


def draw(normal, noise):
    """z = μ + σ ε."""
    scaled = np.exp(normal.log_std) * noise
    return normal.mean + scaled, scaled


def draw_back(scaled, grad):
    return Normal(mean=grad, log_std=grad * scaled)


def kl(q, p):
    """KL(q‖p) of each dimension."""
    ratio, gap = np.exp(2 * (q.log_std - p.log_std)), (q.mean - p.mean) * np.exp(-p.log_std)
    return p.log_std - q.log_std + 0.5 * (ratio + gap**2 - 1), (ratio, gap, p)


def kl_back(cache, grad):
    """Gradients with respect to q and to p."""
    ratio, gap, p = cache
    mean = grad * gap * np.exp(-p.log_std)
    return Normal(mean, grad * (ratio - 1)), Normal(-mean, grad * (1 - ratio - gap**2))


def gaussian_policy(out, actions, centre, spread, min_std):
    """log N(a; m + s μ, (s ς)²), ς = exp(floor + softplus(raw − floor)) > min_std, for each action."""
    mean, raw = np.split(out, 2, axis=-1)
    floor = np.log(min_std)
    above, bent = softplus(raw - floor)
    log_std = floor + above + np.log(spread)
    gap = (actions - centre - spread * mean) * np.exp(-log_std)
    return -0.5 * gap**2 - log_std - 0.5 * np.log(2 * np.pi), (gap, log_std, spread, bent)


def gaussian_policy_back(cache, grad):
    gap, log_std, spread, bent = cache
    mean = grad * gap * np.exp(-log_std) * spread
    return np.concatenate([mean, softplus_back(bent, grad * (gap**2 - 1))], axis=-1)


def categorical_policy(out, actions):
    """log softmax(out) at the chosen action."""
    top = out.max(-1, keepdims=True)
    log_p = out - top - np.log(np.exp(out - top).sum(-1, keepdims=True))
    chosen = actions[..., None] == np.arange(out.shape[-1])
    return (log_p * chosen).sum(-1), (log_p, chosen)


def categorical_policy_back(cache, grad):
    log_p, chosen = cache
    return grad[..., None] * (chosen - np.exp(log_p))
