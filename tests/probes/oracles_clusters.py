"""What clusters are measured by, computed the slow way: pair by pair, cell by cell."""

import math
from itertools import combinations

import numpy as np


def brute_adjusted_rand(first, second) -> float:
    """From the four kinds of pairs: together in both, in one alone, in neither."""
    a = b = c = d = 0
    for i, j in combinations(range(len(first)), 2):
        same, also = first[i] == first[j], second[i] == second[j]
        a, b, c, d = a + (same and also), b + (same and not also), c + (also and not same), d + (not (same or also))
    below = (a + b) * (b + d) + (a + c) * (c + d)
    return 2 * (a * d - b * c) / below if below else 1.0


def textbook_dtw(first: np.ndarray, second: np.ndarray) -> float:
    """The root of the least sum of squared differences along a path, by the O(TT') recursion."""
    n, m = len(first), len(second)
    cost = [[math.inf] * (m + 1) for _ in range(n + 1)]
    cost[0][0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            here = sum((float(x) - float(y)) ** 2 for x, y in zip(first[i - 1], second[j - 1], strict=True))
            cost[i][j] = here + min(cost[i - 1][j], cost[i][j - 1], cost[i - 1][j - 1])
    return math.sqrt(cost[n][m])


def naive_ictd(distance: np.ndarray, labels, first, second) -> float:
    """Mean over pairs of one cluster over mean over pairs of two; pairs with noise or without a distance apart."""
    within, between = [], []
    for d, i, j in zip(distance, first, second, strict=True):
        if labels[i] != -1 and labels[j] != -1 and not math.isnan(d):
            (within if labels[i] == labels[j] else between).append(d)
    return (sum(within) / len(within)) / (sum(between) / len(between)) if within and between else math.nan


def normal_bic(x: np.ndarray, floor: float) -> float:
    """BIC of one Gaussian in closed form: the mean is the sample's, the covariance the sample's plus the floor."""
    n, width = x.shape
    centred = x - x.mean(0)
    covariance = centred.T @ centred / n + floor * np.eye(width)
    quadratic = np.trace(np.linalg.inv(covariance) @ centred.T @ centred)
    loglik = -0.5 * (n * width * math.log(2 * math.pi) + n * math.log(np.linalg.det(covariance)) + quadratic)
    return -2 * loglik + (width + width * (width + 1) / 2) * math.log(n)


def mixture_bic(x: np.ndarray, weights, means, covariances) -> float:
    """BIC of given parameters, density by density."""
    k, width = means.shape
    loglik = 0.0
    for row in x:
        density = 0.0
        for w, m, c in zip(weights, means, covariances, strict=True):
            d = row - m
            scale = math.sqrt((2 * math.pi) ** width * np.linalg.det(c))
            density += w * math.exp(-0.5 * d @ np.linalg.inv(c) @ d) / scale
        loglik += math.log(density)
    return -2 * loglik + (k - 1 + k * width + k * width * (width + 1) / 2) * math.log(len(x))
