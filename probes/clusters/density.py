"""Clusters as dense regions (HDBSCAN, Campello et al. 2013); what lies in none of them is noise, -1.

Letters: n episodes, m further episodes, Z latent.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from sklearn.cluster import HDBSCAN

NOISE = -1


def dense_clusters(x: Float[np.ndarray, "n Z"], share: float, neighbours: int) -> Int[np.ndarray, " n"]:
    """Clusters of at least `share` of the episodes and at least five, numbered by size, the largest first.

    `neighbours` is HDBSCAN's min_samples: how many episodes lie within the distance that tells dense from sparse.
    """
    smallest = max(int(np.ceil(share * len(x))), 5)
    model = HDBSCAN(min_cluster_size=min(smallest, len(x)), min_samples=min(neighbours, len(x))).set_params(copy=True)
    return by_size(model.fit_predict(x).astype(int))


def by_size(labels: Int[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """The same clusters numbered from the largest to the smallest; noise stays noise."""
    counts = np.bincount(labels[labels != NOISE], minlength=1)
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    return np.where(labels == NOISE, NOISE, rank[np.maximum(labels, 0)])


def nearest_labels(
    x: Float[np.ndarray, "n Z"], labels: Int[np.ndarray, " n"], others: Float[np.ndarray, "m Z"]
) -> Int[np.ndarray, " m"]:
    """The label of the nearest fitted episode, noise included."""
    return labels[KDTree(x).query(others)[1]]
