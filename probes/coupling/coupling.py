"""Coupling of a run: which clusters occur together, and how tight a region of one agent is in the others.

Letters: B rows, N agents, G groups, M places, Za local latent.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from data_gen.trajectory import InputError, RowIndex
from probes.bootstrap import draw_weights
from probes.controls import generator
from probes.coupling.alignment import align
from probes.coupling.images import Region, Scene
from probes.coupling.pairs import contingency_table, pair_table
from probes.coupling.regions import region_tables
from probes.levels import JOINT, local_level
from probes.pairings import orders_of
from probes.scores import LEAST_DRAWS


@dataclass
class Coupling:
    """How coupling is tested: permutations of whole groups, bootstrap draws of groups, and their seed."""

    permutations: int = 9999
    bootstrap: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.permutations < 19 or self.bootstrap < LEAST_DRAWS or self.seed < 0:
            raise InputError(
                f"coupling: permutations is {self.permutations}, bootstrap {self.bootstrap} and seed {self.seed}; take "
                f"at least 19 permutations, for a p of .05, at least {LEAST_DRAWS} draws, for a tail of 2.5 %, and a "
                f"seed that is not negative."
            )


class CouplingTables(NamedTuple):
    """`pairs`: NMI of two levels. `contingency`: clusters that meet. `images`: regions of one agent in another's
    latent. `trend`: spread against return over regions. docs/coupling.md says what each column is."""

    pairs: pd.DataFrame
    contingency: pd.DataFrame
    images: pd.DataFrame
    trend: pd.DataFrame


def coupling_tables(
    config: Coupling,
    *,
    joint_clusters: Int[np.ndarray, " B"],
    agent_clusters: Int[np.ndarray, "B N"],
    z_alpha: Float[np.ndarray, "B N Za"],
    present: Bool[np.ndarray, "B N"],
    returns: Float[np.ndarray, " B"],
    rows: RowIndex,
) -> CouplingTables:
    """All tables. Clusters are numbers, -1 for none; `present` says whether an agent has a real step in an episode.

    Raises InputError where no checkpoint is held by every group: nothing could then be held against anything.
    """
    places = align(rows)
    if places.size == 0:
        raise InputError(
            f"coupling: no checkpoint is held by all {len(places)} groups. Choose episodes of checkpoints that every "
            f"group has."
        )
    local = np.where(present, agent_clusters, -1)
    clusters = {JOINT: joint_clusters} | {local_level(i): local[:, i] for i in range(local.shape[1])}
    images, trend = region_tables(regions_of(local), places, scene_of(config, places, z_alpha, present, returns))
    pairs = pair_table(clusters, places, config.permutations, generator(config.seed, "coupling", "pairs"))
    return CouplingTables(pairs, contingency_table(clusters, places), images, trend)


def scene_of(
    config: Coupling,
    places: Int[np.ndarray, "G M"],
    z_alpha: Float[np.ndarray, "B N Za"],
    present: Bool[np.ndarray, "B N"],
    returns: Float[np.ndarray, " B"],
) -> Scene:
    """What `region_tables` needs besides the regions; these may be any, as a brush gives them."""
    return Scene(
        z_alpha=z_alpha[places],
        present=present[places],
        returns=returns[places],
        orders=orders_of(len(places), config.permutations, generator(config.seed, "coupling", "images")),
        weights=draw_weights(config.seed, "coupling", len(places), set(), config.bootstrap).groups,
    )


def regions_of(agent_clusters: Int[np.ndarray, "B N"]) -> list[Region]:
    """Every cluster of every agent as a region."""
    return [
        Region(agent=agent, name=str(cluster), rows=of_agent == cluster)
        for agent, of_agent in enumerate(agent_clusters.T)
        for cluster in np.unique(of_agent[of_agent >= 0]).tolist()
    ]
