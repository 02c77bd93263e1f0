"""What is clustered: one level's latent means, in units of the encoder's own uncertainty.

Letters: B episodes, N agents, E encoder seeds, Zw joint latent, Za local latent, Z either, n episodes of a
level, f episodes fitted on.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from data_gen.trajectory import RowIndex
from probes.controls import generator
from probes.features import Encoded, check_values
from probes.levels import ACTIVE, JOINT, local_level
from probes.sampling import draw_evenly

FEWEST = 10  # episodes; with fewer there is nothing to cluster


class Deviations(NamedTuple):
    """Posterior standard deviations, row for row beside the means of `Encoded`."""

    z_omega: Float[np.ndarray, "E B Zw"]
    z_alpha: Float[np.ndarray, "E B N Za"]


class Level(NamedTuple):
    """One latent of some episodes. `agents` are those whose trajectories and labels belong to it.

    `here` numbers its episodes in the data set; `fitted` are the places within `here` that clusters are fitted on, the
    rest is assigned. `z` is in units of the posterior. `verdict` is empty, "collapsed: one cluster" or why there are
    no clusters.
    """

    name: str
    agents: tuple[int, ...]
    here: Int[np.ndarray, " n"]
    fitted: Int[np.ndarray, " f"]
    z: Float[np.ndarray, "E n Z"]
    verdict: str


COLLAPSED = "collapsed: one cluster"


def make_levels(
    encoded: Encoded,
    deviations: Deviations,
    present: Bool[np.ndarray, "B N"],
    rows: RowIndex,
    order: Int[np.ndarray, " B"],
    n_fitted: int,
    seed: int,
) -> tuple[Level, ...]:
    """z_omega of every episode and of the last checkpoint's alone, and z_alpha of each agent where it is `present`.

    Episodes are taken in the given `order`. Raises InputError where lengths differ or a number is not finite.
    """
    n, n_seeds = len(rows.group), len(encoded.z_omega)
    for name, values in (("z_omega", encoded.z_omega), ("z_alpha", encoded.z_alpha)):
        check_values(name, values.reshape(*values.shape[:2], -1), n, n_seeds)
    for name, values in (("z_omega", deviations.z_omega), ("z_alpha", deviations.z_alpha)):
        check_values(f"the deviation of {name}", values.reshape(*values.shape[:2], -1), n, n_seeds)
    agents = tuple(range(present.shape[1]))
    last = rows.checkpoint == rows.checkpoint.max()
    chosen = {JOINT: (agents, np.ones(n, bool))}
    if not last.all():
        chosen["z_omega_last"] = (agents, last)
    chosen |= {local_level(i): ((i,), present[:, i]) for i in agents}
    levels = []
    for name, (whose, keep) in chosen.items():
        means, stds = encoded.z_omega, deviations.z_omega
        if name.startswith("z_alpha"):
            means, stds = encoded.z_alpha[:, :, whose[0]], deviations.z_alpha[:, :, whose[0]]
        here = order[keep[order]]
        rng = generator(seed, name, "episodes fitted on")
        fitted = draw_evenly(rows.group[here], n_fitted, rng, by_size=True)
        z, verdict = in_posterior_units(means[:, here], stds[:, here]), verdict_of(means[0, here])
        levels.append(Level(name=name, agents=whose, here=here, fitted=fitted, z=z, verdict=verdict))
    return tuple(levels)


def in_posterior_units(
    means: Float[np.ndarray, "E n Z"], stds: Float[np.ndarray, "E n Z"]
) -> Float[np.ndarray, "E n Z"]:
    """Means divided by the root mean square of each dimension's posterior deviation, or by .1 where that is larger.

    Two episodes that lie closer than one unit are one episode to the encoder. A dimension that has collapsed to the
    prior has deviation 1 and shrinks to nothing, where scaling it to variance 1 would blow its remains up. The .1 is
    the root of `ACTIVE`, for encoders without a deviation.
    """
    if means.shape[1] == 0:
        return means.astype(float)
    unit = np.sqrt(np.square(stds.astype(float)).mean(1, keepdims=True))
    return means.astype(float) / np.maximum(unit, np.sqrt(ACTIVE))


def verdict_of(means: Float[np.ndarray, "n Z"]) -> str:
    """Empty where there is something to cluster."""
    if len(means) < FEWEST:
        return f"not clustered: {len(means)} episode(s), {FEWEST} needed"
    return COLLAPSED if (means.var(0, dtype=float) <= ACTIVE).all() else ""
