"""Losses in plain loops over NumPy arrays; nothing here is imported from the packages."""

import math

import numpy as np
import scipy.stats


def free_bits(kl_joint: np.ndarray, kl_local: np.ndarray, present: np.ndarray, joint: float, local: float):
    """What the two levels pay in all episodes together: KLs [B, Zw] and [B, N, Za], presence [B, N]."""
    team = sum(max(joint, kl_joint[:, d].mean()) for d in range(kl_joint.shape[1])) * len(kl_joint)
    agents = present.sum()
    own = sum(
        max(local, sum(kl_local[b, i, d] for b, i in np.argwhere(present)) / agents) for d in range(kl_local.shape[2])
    )
    return team, own * agents


def mmd2(x: np.ndarray, y: np.ndarray) -> float:
    """Biased MMD² with exp(−‖x − y‖² / width)."""

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean([[math.exp(-((p - q) ** 2).sum() / len(p)) for q in b] for p in a]))

    return mean(x, x) - 2 * mean(x, y) + mean(y, y)


def importance(recon: np.ndarray, found: dict[str, np.ndarray], present: np.ndarray, beta: tuple[float, float]):
    """log 1/K Σ_k w_k of every episode, densities by SciPy; `found` holds means, deviations and draws [K, B, …]."""
    draws, episodes = recon.shape
    result = []
    for b in range(episodes):
        logs = []
        for k in range(draws):
            z = found["z_joint"][k, b]
            p = scipy.stats.norm.logpdf(z).sum()
            q = scipy.stats.norm.logpdf(z, found["joint_mean"][k, b], found["joint_std"][k, b]).sum()
            own = 0.0
            for i in np.flatnonzero(present[b]):
                z = found["z_local"][k, b, i]
                own += scipy.stats.norm.logpdf(z, found["prior_mean"][k, b, i], found["prior_std"][k, b, i]).sum()
                own -= scipy.stats.norm.logpdf(z, found["local_mean"][k, b, i], found["local_std"][k, b, i]).sum()
            logs.append(recon[k, b] + beta[0] * (p - q) + beta[1] * own)
        result.append(np.log(np.mean(np.exp(np.array(logs) - max(logs)))) + max(logs))
    return np.array(result)
