"""A Gaussian mixture of latent means whose number of components is chosen by BIC.

Letters: n episodes, Z latent, K components.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

FLOOR = 1.0  # variance added to each component, in squared posterior units: no narrower than one episode's posterior
STEPS = 300
EPISODES_A_COMPONENT = 5


class Chosen(NamedTuple):
    """The mixture of lowest BIC, and a record for each number of components tried."""

    model: GaussianMixture
    tried: list[dict[str, Any]]


def fit_mixture(x: Float[np.ndarray, "n Z"], n_components: int, starts: int, seed: int) -> GaussianMixture:
    """The best of several starts, with full covariances; the heaviest component comes first."""
    model = GaussianMixture(n_components, n_init=starts, random_state=seed, reg_covar=FLOOR, max_iter=STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged_` says it
        model.fit(x)
    order = np.argsort(-np.asarray(model.weights_), kind="stable")
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        setattr(model, name, getattr(model, name)[order])
    return model


def choose_mixture(x: Float[np.ndarray, "n Z"], most: int, patience: int, starts: int, seed: int) -> Chosen:
    """Fit 1, 2, … components until BIC = −2 log L + p log n (Schwarz 1978) has not fallen for `patience` numbers.

    p counts K − 1 weights, K Z means and K Z (Z + 1) / 2 covariances. At most `most` components are tried, and one for
    every five episodes.
    """
    best, tried = None, []
    for k in range(1, min(most, max(len(x) // EPISODES_A_COMPONENT, 1)) + 1):
        model = fit_mixture(x, k, starts, seed)
        tried.append({"n_components": k, "bic": float(model.bic(x)), "converged": bool(model.converged_)})
        lowest = int(np.argmin([one["bic"] for one in tried]))
        if best is None or lowest == len(tried) - 1:
            best = model
        if len(tried) - 1 - lowest >= patience:
            break
    assert best is not None
    chosen = best.n_components
    return Chosen(model=best, tried=[one | {"chosen": one["n_components"] == chosen} for one in tried])


def distance_to_own(
    model: GaussianMixture, x: Float[np.ndarray, "n Z"], labels: Int[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """Mahalanobis distance of each episode to the mean of its component."""
    found, means = np.zeros(len(x)), np.asarray(model.means_)
    for k in np.unique(labels).tolist():
        of_k = labels == k
        found[of_k] = np.linalg.norm((x[of_k] - means[k]) @ model.precisions_cholesky_[k], axis=1)
    return found


def top_two(
    model: GaussianMixture, x: Float[np.ndarray, "n Z"]
) -> tuple[Float[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """The gap between the two largest responsibilities, and the component that has the second; 1 and -1 with K = 1."""
    shares = model.predict_proba(x)
    if shares.shape[1] == 1:
        return np.ones(len(x)), np.full(len(x), -1)
    order = np.argsort(shares, axis=1)[:, -2:]
    low, high = np.take_along_axis(shares, order, 1).T
    return high - low, order[:, 0]
