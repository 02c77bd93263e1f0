"""Would other training seeds, or another encoder, have given the same clusters? Adjusted Rand says how nearly.

Letters: f episodes fitted on, Z latent, E encoder seeds.
"""

from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from probes.clusters.agreement import adjusted_rand
from probes.clusters.density import dense_clusters, nearest_labels
from probes.clusters.mixture import fit_mixture


def bootstrap_agreement(
    x: Float[np.ndarray, "f Z"],
    group: Int[np.ndarray, " f"],
    labels: dict[str, Int[np.ndarray, " f"]],
    n_draws: int,
    starts: int,
    density: tuple[float, int],
    rng: np.random.Generator,
) -> dict[str, list[float]]:
    """Draw groups with replacement, cluster their episodes, and compare with `labels` on all episodes.

    The mixture is fitted again with as many components, on episodes as often as their group was drawn; HDBSCAN sees
    each once, since copies would be infinitely dense, and gives the others their nearest one's label.
    """
    found: dict[str, list[float]] = {name: [] for name in labels}
    names = np.unique(group)
    if len(names) < 2:
        return found
    members = [np.flatnonzero(group == name) for name in names]
    k = len(np.unique(labels["mixture"]))
    for _ in range(n_draws):
        drawn = np.concatenate([members[g] for g in rng.integers(len(names), size=len(names))])
        seed, once = int(rng.integers(2**31)), np.unique(drawn)
        again = {"mixture": fit_mixture(x[drawn], min(k, len(once)), starts, seed).predict(x)}
        again["hdbscan"] = nearest_labels(x[once], dense_clusters(x[once], *density), x)
        for name, values in labels.items():
            found[name].append(adjusted_rand(values, again[name]))
    return found


def encoder_agreement(
    z: Float[np.ndarray, "E f Z"],
    labels: dict[str, Int[np.ndarray, " f"]],
    starts: int,
    density: tuple[float, int],
    seed: int,
) -> dict[str, list[float]]:
    """Cluster each encoder seed's latents of the same episodes, and compare every two seeds.

    The mixtures have as many components as the first.
    """
    k = len(np.unique(labels["mixture"]))
    found = {name: [values] for name, values in labels.items()}
    for x in z[1:]:
        found["mixture"].append(fit_mixture(x, k, starts, seed).predict(x))
        found["hdbscan"].append(dense_clusters(x, *density))
    return {name: [adjusted_rand(a, b) for a, b in combinations(parts, 2)] for name, parts in found.items()}


def stability_record(method: str, over: str, values: list[float], trivial: bool) -> dict[str, Any]:
    """Mean and middle 90 % of the agreements; empty where there is one cluster, which always agrees with itself."""
    named = {"method": method, "over": over, "n": len(values)}
    if trivial or not values:
        return named | dict.fromkeys(("mean", "low", "high"), float("nan"))
    low, high = np.quantile(values, (0.05, 0.95))
    return named | {"mean": float(np.mean(values)), "low": float(low), "high": float(high)}
