"""NumPy references for the domains on the plane, written from docs/domains.md without importing them."""

from itertools import product

import numpy as np


def hill_reward(position, hills, width, crowding):
    """Team reward of one step, agent by agent and hill by hill."""
    n, total = len(position), 0.0
    for i in range(n):
        for x, y, height in hills:
            bump = [np.exp(-((px - x) ** 2 + (py - y) ** 2) / (2 * width**2)) for px, py in position]
            total += height * bump[i] / (1 + crowding * (sum(bump) - bump[i]))
    return total / n


def walk(position, target, max_step):
    """One straight step of each agent to its target, without passing it."""
    after = []
    for p, q in zip(np.asarray(position, float), np.asarray(target, float), strict=True):
        gap = np.hypot(*(q - p))
        after.append(q if gap <= max_step else p + (q - p) * max_step / gap)
    return np.array(after)


def best_assignment(start, hills, width, crowding, max_step, horizon):
    """The best return of all teams that each walk straight to a hill and stay: brute force."""
    best = -np.inf
    for hill_of in product(range(len(hills)), repeat=len(start)):
        position, total = np.array(start, float), 0.0
        for _ in range(horizon):
            position = walk(position, [hills[k][:2] for k in hill_of], max_step)
            total += hill_reward(position, hills, width, crowding)
        best = max(best, total)
    return best


def advantages(rewards, values, last_value, gamma, gae_lambda):
    """A_t = Σ_k (γλ)^k δ_{t+k}, summed term by term."""
    steps, following = len(rewards), [*values[1:], last_value]
    delta = [rewards[t] + gamma * following[t] - values[t] for t in range(steps)]
    return np.array([sum((gamma * gae_lambda) ** k * delta[t + k] for k in range(steps - t)) for t in range(steps)])


def mlp(params, x):
    """Tanh layers w0, b0, w1, b1, … and a linear last one."""
    n_layers = sum(name.startswith("w") for name in params)
    for k in range(n_layers):
        x = x @ np.asarray(params[f"w{k}"], float) + np.asarray(params[f"b{k}"], float)
        x = np.tanh(x) if k < n_layers - 1 else x
    return x
