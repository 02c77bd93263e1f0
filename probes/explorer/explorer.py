"""What an explorer page is made from, and how it comes out of a data set and its embeddings.

Letters: B episodes, T steps, N agents, C channels, Zw joint and Za local width, K filmed episodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int32

from data_gen.trajectory import SPLITS, Dataset, InputError, Labels, RowIndex
from probes.groups import group_word
from probes.report.episodes import episode_returns
from probes.report.films import Films
from probes.sampling import draw_evenly

PLANE, ACTIONS = "plane", "actions"
HELD_OUT = "held-out checkpoint"
NO_CLUSTERS: Mapping[str, Int[np.ndarray, " B"]] = {}


class Tracks(NamedTuple):
    """What an episode's player draws: places in a plane or actions, NaN where an agent is not there.

    `marks` are landmarks of the plane with name, x, y, radius and, where they differ, height.
    """

    values: Float[np.ndarray, "B T N C"]
    kind: str
    channels: tuple[str, ...]
    discrete: bool = False
    marks: tuple[Mapping[str, Any], ...] = ()


class Strips(NamedTuple):
    """Film strips of these rows; none, and why, where `films.absent` says so."""

    rows: Int[np.ndarray, " K"]
    films: Films


class Explorer(NamedTuple):
    """A page's content, all in the order of `rows`. z_alpha is NaN where an agent was never there.

    `split` numbers SPLITS, then HELD_OUT, of checkpoints that nothing was fitted on.
    `clusters` are cluster numbers by name: -1 is noise, less is of none. `updates`: the learner's at each checkpoint.
    `group` is that of `group_word`.
    """

    name: str
    rows: RowIndex
    split: Int32[np.ndarray, " B"]
    returns: Float[np.ndarray, " B"]
    labels: Labels
    z_omega: Float[np.ndarray, "B Zw"]
    z_alpha: Float[np.ndarray, "B N Za"]
    tracks: Tracks
    group: str
    clusters: Mapping[str, Int[np.ndarray, " B"]] = NO_CLUSTERS
    updates: tuple[int, ...] = ()
    strips: Strips | None = None


def explorer_of(
    name: str,
    found: Dataset,
    z_omega: Float[np.ndarray, "B Zw"],
    z_alpha: Float[np.ndarray, "B N Za"],
    hold_out: Sequence[int] = (),
    clusters: Mapping[str, Int[np.ndarray, " B"]] = NO_CLUSTERS,
    strips: Strips | None = None,
) -> Explorer:
    """The content of a data set's page. Agents whose latent is but the joint one again get no view.

    InputError where latents or clusters are not one an episode, or not finite.
    """
    given = {"z_omega": z_omega, "z_alpha": z_alpha, **{f"clusters {key!r}": of for key, of in clusters.items()}}
    for what, values in given.items():
        if len(values) != len(found.split):
            raise InputError(
                f"explorer: {what} are of {len(values)} episodes and the data set of {len(found.split)}. Give those "
                f"of the same data set, in its order."
            )
    there = np.any(found.batch.mask, axis=1)[..., None]
    for what, fine in (("z_omega", np.isfinite(z_omega)), ("z_alpha", (np.isfinite(z_alpha) | ~there).all(2))):
        if lost := np.flatnonzero(~fine.all(1)).tolist():
            raise InputError(
                f"explorer: {what} is not finite in {len(lost)} of {len(fine)} episodes, first in row {lost[0]}. Look "
                "for a diverged training run."
            )
    same = z_alpha.shape[2] == z_omega.shape[1] and (z_alpha == z_omega[:, None]).all()
    return Explorer(
        name=name,
        rows=found.rows,
        split=np.where(np.isin(found.rows.checkpoint, hold_out), len(SPLITS), found.split).astype(np.int32),
        returns=episode_returns(found),
        labels=found.labels,
        z_omega=z_omega,
        z_alpha=np.where(there, z_alpha, np.nan)[:, : 0 if same else None],
        tracks=tracks_of(found),
        group=group_word(found.meta),
        clusters=clusters,
        updates=tuple(found.meta.get("updates", ())),
        strips=strips,
    )


def tracks_of(found: Dataset) -> Tracks:
    """Places where the data set says which observations they are, else actions."""
    mask = np.asarray(found.batch.mask)[..., None]
    if "position" in found.meta:
        places = np.asarray(found.batch.obs)[..., list(found.meta["position"])]
        marks = tuple(found.meta.get("landmarks", ()))
        return Tracks(np.where(mask, places, np.nan), PLANE, ("x", "y"), marks=marks)
    actions = np.asarray(found.batch.actions, np.float32)
    if found.action.kind == "discrete":
        return Tracks(np.where(mask, actions[..., None], np.nan), ACTIONS, ("action",), discrete=True)
    real = np.where(mask & found.features.actions[None, None], actions, np.nan)
    return Tracks(real, ACTIONS, tuple(str(k) for k in range(actions.shape[-1])))


def stratified(rows: RowIndex, k: int) -> Int[np.ndarray, " K"]:
    """At most k rows in order, as evenly as can be from every group at every checkpoint; the same each time."""
    cell = np.unique(np.stack([rows.group, rows.checkpoint], 1), axis=0, return_inverse=True)[1].ravel()
    return draw_evenly(cell, k, np.random.default_rng(0))
