"""Scores computed the slow way, row by row."""

import numpy as np


def balanced_accuracy(y: np.ndarray, predicted: np.ndarray) -> float:
    """Mean recall over the classes that occur in y."""
    recalls = []
    for label in sorted(set(y.tolist())):
        of_class = [p == label for t, p in zip(y, predicted, strict=True) if t == label]
        recalls.append(sum(of_class) / len(of_class))
    return sum(recalls) / len(recalls)


def skill(y: np.ndarray, predicted: np.ndarray, constant: float) -> float:
    """One minus the ratio of squared errors."""
    return 1 - sum((y - predicted) ** 2) / sum((y - constant) ** 2)


def resample(groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Row numbers of one bootstrap draw: every group's rows as often as the group was drawn."""
    rows = [np.flatnonzero(groups == g) for g, count in enumerate(counts) for _ in range(int(count))]
    return np.concatenate(rows)
