"""Linear and shallow probes: what a classifier or a regression can read from given features.

Letters: n rows to fit on, m rows to predict, F features.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.class_weight import compute_sample_weight

from data_gen.trajectory import InputError
from probes.scores import value_of

LBFGS_STEPS = 300
BATCH_ROWS = 256


@dataclass
class Probe:
    """How to probe. Empty `labels` means all; a strength is the L2 penalty on the mean loss; `jobs` 0 is every core.

    `steps` are the MLP's optimiser steps, so that a small data set does not leave it half trained.
    """

    labels: list[str] = field(default_factory=list)
    probes: list[str] = field(default_factory=lambda: ["linear", "mlp"])
    bootstrap: int = 2000
    permutations: int = 20
    mlp_permutations: int = 5
    strengths: list[float] = field(default_factory=lambda: [1.0, 0.1, 0.01, 0.001, 0.0001])
    mlp_strengths: list[float] = field(default_factory=lambda: [0.1, 0.01, 0.001])
    folds: int = 4
    hidden: int = 32
    steps: int = 300
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        unknown = [name for name in self.probes if name not in PROBES]
        if unknown or not self.probes:
            raise InputError(f"probe.probes is {self.probes}; name one or more of {sorted(PROBES)}.")
        for name, least in (
            ("bootstrap", 1),
            ("permutations", 0),
            ("mlp_permutations", 0),
            ("folds", 2),
            ("hidden", 1),
            ("steps", 1),
        ):
            if getattr(self, name) < least:
                raise InputError(f"probe.{name} is {getattr(self, name)}; it must be {least} or more.")
        if self.seed < 0 or self.jobs < 0:
            raise InputError(f"probe.seed is {self.seed} and probe.jobs {self.jobs}; neither may be negative.")
        for name in ("strengths", "mlp_strengths"):
            if not getattr(self, name) or min(getattr(self, name)) <= 0:
                raise InputError(f"probe.{name} is {getattr(self, name)}; give one or more numbers above zero.")

    def permutations_of(self, probe: str) -> int:
        """How many refits the negative control averages; an MLP costs some ten times a linear fit."""
        return self.permutations if probe == "linear" else self.mlp_permutations

    def strengths_of(self, probe: str) -> list[float]:
        """Candidate strengths, the strongest first, so that a tie is won by the simpler probe."""
        return sorted(self.strengths if probe == "linear" else self.mlp_strengths, reverse=True)


class Prediction(NamedTuple):
    """Predicted classes or numbers, and whether the optimiser reached its tolerance."""

    values: np.ndarray
    converged: bool


class Choice(NamedTuple):
    """The strength chosen, and how many of the fits behind the choice did not converge."""

    strength: float
    n_unconverged: int


Folds = list[tuple[np.ndarray, np.ndarray]]


def predict(
    probe: str,
    kind: str,
    x_fit: Float[np.ndarray, "n F"],
    y_fit: Num[np.ndarray, " n"],
    x_score: Float[np.ndarray, "m F"],
    strength: float,
    config: Probe,
) -> Prediction:
    """Fit on the first rows, predict the others; features come standardised.

    Minimises mean loss + strength/2 ||w||^2. Classes weigh equally in the loss, because the score is balanced accuracy;
    a real target is standardised by the rows it is fitted on.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if kind == "class":
            values = PROBES[probe].classify(x_fit, y_fit, x_score, strength, config)
        else:
            mean, scale = y_fit.mean(), y_fit.std()
            values = mean + scale * PROBES[probe].regress(x_fit, (y_fit - mean) / scale, x_score, strength, config)
    # The MLP's number of steps is part of what it is, so only the linear probe can fail to converge.
    return Prediction(values=values, converged=probe != "linear" or not _stopped(caught))


def linear_weights(
    kind: str, x_fit: Float[np.ndarray, "n F"], y_fit: Num[np.ndarray, " n"], strength: float
) -> tuple[Float[np.ndarray, "K F"], bool]:
    """The weights of the linear probe that `predict` fits, and whether it converged: a row a class, or one a number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if kind == "class":
            weights = np.atleast_2d(_fit_logistic(x_fit, y_fit, strength).coef_)
            weights = np.concatenate([-weights, weights]) if len(weights) == 1 else weights
        else:
            weights = np.atleast_2d(_fit_ridge(x_fit, (y_fit - y_fit.mean()) / y_fit.std(), strength).coef_)
    return weights, not _stopped(caught)


def _stopped(caught: list[warnings.WarningMessage]) -> bool:
    return any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _fit_logistic(x_fit, y_fit, strength: float) -> LogisticRegression:
    model = LogisticRegression(C=1 / (strength * len(x_fit)), class_weight="balanced", max_iter=LBFGS_STEPS)
    return model.fit(x_fit, y_fit)


def _fit_ridge(x_fit, y_fit, strength: float) -> Ridge:
    return Ridge(alpha=strength * len(x_fit)).fit(x_fit, y_fit)


def _logistic(x_fit, y_fit, x_score, strength: float, config: Probe) -> np.ndarray:
    return np.asarray(_fit_logistic(x_fit, y_fit, strength).predict(x_score))


def _ridge(x_fit, y_fit, x_score, strength: float, config: Probe) -> np.ndarray:
    return np.asarray(_fit_ridge(x_fit, y_fit, strength).predict(x_score))


def _mlp_settings(n_rows: int, strength: float, config: Probe) -> dict:
    batch = min(BATCH_ROWS, n_rows)
    epochs = math.ceil(config.steps / math.ceil(n_rows / batch))
    return {
        "hidden_layer_sizes": (config.hidden,),
        "alpha": strength * batch,  # scikit-learn divides its penalty by the rows of a minibatch
        "batch_size": batch,
        "max_iter": epochs,
        "n_iter_no_change": epochs,
        "learning_rate_init": 3e-3,
        "random_state": config.seed,
    }


def _mlp_classes(x_fit, y_fit, x_score, strength: float, config: Probe) -> np.ndarray:
    model = MLPClassifier(**_mlp_settings(len(x_fit), strength, config))
    model.fit(x_fit.astype(np.float32), y_fit, sample_weight=compute_sample_weight("balanced", y_fit))
    return np.asarray(model.predict(x_score.astype(np.float32)))


def _mlp_real(x_fit, y_fit, x_score, strength: float, config: Probe) -> np.ndarray:
    model = MLPRegressor(**_mlp_settings(len(x_fit), strength, config))
    model.fit(x_fit.astype(np.float32), y_fit.astype(np.float32))
    return np.asarray(model.predict(x_score.astype(np.float32)))


class Family(NamedTuple):
    """One kind of probe: how it predicts classes and how it predicts a number."""

    classify: Callable[..., np.ndarray]
    regress: Callable[..., np.ndarray]


PROBES = {"linear": Family(_logistic, _ridge), "mlp": Family(_mlp_classes, _mlp_real)}


def choose_strength(
    probe: str,
    kind: str,
    x: Float[np.ndarray, "B F"],
    y: Num[np.ndarray, " B"],
    folds: Folds,
    config: Probe,
) -> Choice:
    """The strength with the best mean score over the folds, each a pair of (rows to fit on, rows to score).

    A fold whose fitted rows hold one value cannot be fitted and is left out; with none left the strongest is taken.
    """
    candidates = config.strengths_of(probe)
    usable = [(fit, score) for fit, score in folds if len(np.unique(y[fit])) > 1 and len(np.unique(y[score])) > 1]
    best, best_value, n_unconverged = candidates[0], -np.inf, 0
    for strength in candidates:
        values = []
        for fit, score in usable:
            guess = predict(probe, kind, x[fit], y[fit], x[score], strength, config)
            values.append(value_of(kind, y[score], guess.values, float(y[fit].mean())))
            n_unconverged += not guess.converged
        if values and np.mean(values) > best_value:
            best, best_value = strength, float(np.mean(values))
    return Choice(strength=best, n_unconverged=n_unconverged)
