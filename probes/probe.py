"""Linear and shallow probes: what a classifier or a regression can read from given features.

Letters: n rows to fit on, m rows to predict, F features.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.class_weight import compute_sample_weight

from data_gen.trajectory import InputError
from probes.concepts.vectors import Concepts
from probes.scores import LEAST_DRAWS, value_of

LBFGS_STEPS = 300
BATCH_ROWS = 256
MOST_SEED = 2**31  # scikit-learn takes seeds of 32 bits, and encoder seeds count up from this one


@dataclass
class Probe:
    """How to probe. Empty `labels` means all; a strength is the L2 penalty on the mean loss; `jobs` 0 is every core.

    `steps` are the MLP's optimiser steps, so that a small data set does not leave it half trained. What takes long is
    off by default: `online_code` (description length), `efficiency` (numbers of training groups to fit on besides all,
    each `efficiency_repeats` times; empty for none), `ceiling` (encoders trained on each label) and `flat_vae` (a VAE
    without levels, trained like the run) and `concepts` (of z_omega, for each team label; none by default). `encoders`
    is how many encoder seeds the table ought to rest on; rows with fewer say so.
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
    encoders: int = 1
    online_code: bool = False
    efficiency: list[int] = field(default_factory=list)
    efficiency_repeats: int = 3
    ceiling: bool = False
    flat_vae: bool = False
    concepts: Concepts | None = None
    seed: int = 0
    jobs: int = 0

    def __post_init__(self) -> None:
        unknown = [name for name in self.probes if name not in PROBES]
        if unknown or not self.probes:
            raise InputError(f"probe.probes is {self.probes}; name one or more of {sorted(PROBES)}.")
        for name, least in (
            ("bootstrap", LEAST_DRAWS),
            ("permutations", 0),
            ("mlp_permutations", 0),
            ("folds", 2),
            ("hidden", 1),
            ("steps", 1),
            ("encoders", 1),
            ("efficiency_repeats", 1),
        ):
            if getattr(self, name) < least:
                raise InputError(f"probe.{name} is {getattr(self, name)}; it must be {least} or more.")
        if not 0 <= self.seed <= MOST_SEED or self.jobs < 0:
            raise InputError(
                f"probe.seed is {self.seed} and probe.jobs {self.jobs}; neither may be negative, nor a seed over "
                f"{MOST_SEED}."
            )
        for name in ("strengths", "mlp_strengths"):
            given = getattr(self, name)
            if not given or not all(0 < strength < math.inf for strength in given):
                raise InputError(f"probe.{name} is {given}; give one or more finite numbers above zero.")
        if self.efficiency and min(self.efficiency) < 2:
            raise InputError(f"probe.efficiency is {self.efficiency}; a probe's strength needs two groups or more.")

    def fit_only(self) -> "Probe":
        """What changes a fit; the rest is set to one value, so that fits kept on disk outlive a change of it."""
        rest = {
            "labels": [],
            "probes": ["linear"],
            "efficiency": [],
            "ceiling": False,
            "flat_vae": False,
            "online_code": False,
            "concepts": None,
        }
        return replace(self, **rest, bootstrap=LEAST_DRAWS, encoders=1, efficiency_repeats=1, jobs=0)

    def permutations_of(self, probe: str) -> int:
        """How many refits the negative control averages; an MLP costs some ten times a linear fit."""
        return self.permutations if probe == "linear" else self.mlp_permutations

    def strengths_of(self, probe: str) -> list[float]:
        """Candidate strengths, the strongest first, so that a tie is won by the simpler probe."""
        return sorted(self.strengths if probe == "linear" else self.mlp_strengths, reverse=True)


class Prediction(NamedTuple):
    """Predicted classes or numbers, and whether the optimiser reached its tolerance.

    `probabilities` are of the K `classes` that were fitted; both are empty for a real target.
    """

    values: Num[np.ndarray, " m"]
    converged: bool
    classes: Int[np.ndarray, " K"]
    probabilities: Float[np.ndarray, "m K"]


Fitted = Callable[[Float[np.ndarray, "m F"]], Prediction]


class Choice(NamedTuple):
    """The strength chosen, its fit of each fold, and how many of the fits behind the choice did not converge."""

    strength: float
    fits: list[Fitted]
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
    balanced: bool = True,
) -> Prediction:
    """`fit` on the first rows, and what it says of the others."""
    return fit(probe, kind, x_fit, y_fit, strength, config, balanced)(x_score)


def fit(
    probe: str,
    kind: str,
    x_fit: Float[np.ndarray, "n F"],
    y_fit: Num[np.ndarray, " n"],
    strength: float,
    config: Probe,
    balanced: bool = True,
) -> Fitted:
    """Minimise mean loss + strength/2 ||w||^2; features come standardised.

    Where `balanced`, classes weigh equally in the loss, because the score is balanced accuracy; a code needs the rows'
    own frequencies. A real target is standardised by the rows fitted on.
    """
    family = PROBES[probe]
    x_fit, real = x_fit.astype(family.dtype, copy=False), kind != "class"
    mean, scale = (y_fit.mean(), y_fit.std()) if real else (0, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if real:
            model = family.regressor(x_fit, (y_fit - mean) / scale, strength, config)
        else:
            model = family.classifier(x_fit, y_fit, strength, config, balanced)
    # The MLP's number of steps is part of what it is, so only the linear probe can fail to converge.
    converged = probe != "linear" or not _stopped(caught)

    def fitted(x_score: Float[np.ndarray, "m F"]) -> Prediction:
        x_score = x_score.astype(family.dtype, copy=False)
        values = model.predict(x_score)
        if real:
            return Prediction(
                np.asarray(mean + scale * values), converged, np.zeros(0, int), np.zeros((len(x_score), 0))
            )
        return Prediction(np.asarray(values), converged, np.asarray(model.classes_), model.predict_proba(x_score))

    return fitted


def linear_weights(
    kind: str, x_fit: Float[np.ndarray, "n F"], y_fit: Num[np.ndarray, " n"], strength: float, config: Probe
) -> tuple[Float[np.ndarray, "K F"], bool]:
    """The weights of the linear probe that `predict` fits, and whether it converged: a row a class, or one a number."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        if kind == "class":
            weights = np.atleast_2d(_logistic(x_fit, y_fit, strength, config, True).coef_)
            weights = np.concatenate([-weights, weights]) if len(weights) == 1 else weights
        else:
            weights = np.atleast_2d(_ridge(x_fit, (y_fit - y_fit.mean()) / y_fit.std(), strength, config).coef_)
    return weights, not _stopped(caught)


def _stopped(caught: list[warnings.WarningMessage]) -> bool:
    return any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def _logistic(x_fit, y_fit, strength: float, config: Probe, balanced: bool) -> LogisticRegression:
    weight = "balanced" if balanced else None
    return LogisticRegression(C=1 / (strength * len(x_fit)), class_weight=weight, max_iter=LBFGS_STEPS).fit(
        x_fit, y_fit
    )


def _ridge(x_fit, y_fit, strength: float, config: Probe) -> Ridge:
    return Ridge(alpha=strength * len(x_fit)).fit(x_fit, y_fit)


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


def _mlp_classes(x_fit, y_fit, strength: float, config: Probe, balanced: bool) -> MLPClassifier:
    weight = compute_sample_weight("balanced", y_fit) if balanced else None
    return MLPClassifier(**_mlp_settings(len(x_fit), strength, config)).fit(x_fit, y_fit, sample_weight=weight)


def _mlp_real(x_fit, y_fit, strength: float, config: Probe) -> MLPRegressor:
    return MLPRegressor(**_mlp_settings(len(x_fit), strength, config)).fit(x_fit, y_fit.astype(np.float32))


class Family(NamedTuple):
    """One kind of probe: how it fits classes and how a number, and the precision it works in."""

    classifier: Callable[..., Any]
    regressor: Callable[..., Any]
    dtype: type


PROBES = {"linear": Family(_logistic, _ridge, np.float64), "mlp": Family(_mlp_classes, _mlp_real, np.float32)}


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
    usable = [(rows, score) for rows, score in folds if len(np.unique(y[rows])) > 1 and len(np.unique(y[score])) > 1]
    best, best_fits, best_value, n_unconverged = candidates[0], [], -np.inf, 0
    for strength in candidates:
        fits = [fit(probe, kind, x[rows], y[rows], strength, config) for rows, _ in usable]
        guesses = [fitted(x[score]) for fitted, (_, score) in zip(fits, usable, strict=True)]
        n_unconverged += sum(not guess.converged for guess in guesses)
        values = [
            value_of(kind, y[score], guess.values, float(y[rows].mean()))
            for guess, (rows, score) in zip(guesses, usable, strict=True)
        ]
        if values and np.mean(values) > best_value:
            best, best_fits, best_value = strength, fits, float(np.mean(values))
    return Choice(strength=best, fits=best_fits, n_unconverged=n_unconverged)
