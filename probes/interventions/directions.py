"""The direction that a linear probe reads from z_omega, and latents moved along it.

Letters: B rows, R latents to move, K classes (1 for a number), Zw joint latent.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32

from data_gen.trajectory import SPLITS, RowIndex
from probes.features import standardise
from probes.labels import Target
from probes.probe import Probe, choose_strength, linear_weights
from probes.table.exam import group_folds


class Axes(NamedTuple):
    """A unit direction a class, in z_omega divided by its deviations `spread`: the probe is fitted there.

    `along` is the standard deviation of the training rows along each direction, in those coordinates. Moved there and
    not in z_omega itself, a collapsed dimension goes no further than its own deviation allows.
    """

    unit: Float[np.ndarray, "K Zw"]
    along: Float[np.ndarray, " K"]
    spread: Float[np.ndarray, " Zw"]
    converged: bool


def probe_axes(
    target: Target,
    z_omega: Float[np.ndarray, "B Zw"],
    rows: RowIndex,
    split: Int32[np.ndarray, " B"],
    config: Probe,
) -> Axes:
    """Weights of the linear probe of the table: the same training rows, scale, folds and choice of strength."""
    training = split == SPLITS.index("train")
    fitted = np.flatnonzero(target.keep & training)
    x, y = standardise(z_omega, training, False), target.values
    folds = group_folds(fitted, rows.group[fitted], config.folds)
    strength = choose_strength("linear", target.kind, x, y, folds, config).strength
    weights, converged = linear_weights(target.kind, x[fitted], y[fitted], strength, config)
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = np.divide(weights, length, out=np.zeros_like(weights), where=length > 0)
    along = (x[training] @ unit.T).std(0)
    return Axes(unit=unit, along=along, spread=z_omega[training].std(0, dtype=float), converged=converged)


def moved(
    z: Float[np.ndarray, "R Zw"], axes: Axes, which: Int[np.ndarray, " R"], shift: float
) -> Float[np.ndarray, "R Zw"]:
    """Each latent, `shift` training deviations further along the direction `which`."""
    return z + shift * axes.along[which, None] * axes.unit[which] * axes.spread[None]


def random_axes(axes: Axes, which: Int[np.ndarray, " R"], rng: np.random.Generator) -> Axes:
    """A random direction for each of the R latents, along which `moved` takes steps as long as along `which`."""
    drawn = rng.normal(size=(len(which), axes.unit.shape[1]))
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return axes._replace(unit=unit, along=axes.along[which])
