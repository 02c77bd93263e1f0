"""Concept scores and the discovery objective computed the slow way, row by row."""

import numpy as np


def brute_scores(features: np.ndarray, vectors: np.ndarray, threshold: float) -> np.ndarray:
    """Product, zeroed where the normalised product is at or below the threshold, over the sum."""
    scores = np.zeros((len(features), len(vectors)))
    for i, z in enumerate(features):
        for j, c in enumerate(vectors):
            product = sum(a * b for a, b in zip(c, z, strict=True))
            length = sum(a * a for a in z) ** 0.5
            if length > 0 and product / length > threshold:
                scores[i, j] = product
        if scores[i].sum() > 0:
            scores[i] /= scores[i].sum()
    return scores


def brute_objective(raw, w, b, z, y, weights, kind, config, softness: float, slack: float) -> float:
    """The regularised loss of the map w, b on soft scores of the concepts raw / |raw|."""
    c = np.array([v / np.sqrt((v**2).sum()) for v in raw])
    cosine = np.array([[c_j @ z_i / np.sqrt(z_i @ z_i) for c_j in c] for z_i in z])
    on = 1 / (1 + np.exp(-(cosine - config.threshold) / softness))
    h = softness * np.log1p(np.exp(cosine / softness)) * on
    loss = 0.0
    for i in range(len(z)):
        out = h[i] / (slack + h[i].sum()) @ w + b
        if kind == "class":
            loss += weights[i] * (np.log(np.exp(out).sum()) - out[y[i]])
        else:
            loss += weights[i] * (out[0] - y[i]) ** 2 / 2
    near = np.mean([np.mean(sorted(cosine[:, j])[-config.salient :]) for j in range(len(c))])
    pairs = [(c[j] @ c[k]) ** 2 for j in range(len(c)) for k in range(j)]
    loss += config.strength / 2 * (w**2).sum() - config.salience * near
    return float(loss + config.similarity * (np.mean(pairs) if pairs else 0))
