"""Film strips of a data set whose states were stored, for its report."""

from pathlib import Path

import numpy as np

from data_gen.engines.film import NoRendering, film
from data_gen.engines.scenarios import make_scenario
from data_gen.storage.states import read_states
from data_gen.trajectory import Dataset, RowIndex
from probes.explorer.explorer import Strips, stratified
from probes.report.episodes import Picked
from probes.report.films import Films, Shots, no_films, paint_of, pick_films, shots_of

SIZE = 320  # pixels of a frame's side; twice what the report shows, which smooths edges
SMALL = 176  # where there are hundreds of episodes
AT_ONCE = 20  # episodes that one process draws, which has a limit of time


def films_of(data: Path, found: Dataset) -> Films | None:
    """The report's frames; None where the data set is not of MuJoCo or holds no states."""
    return drawn(data, found, pick_films(found), SIZE)


def strips_of(data: Path, found: Dataset, most: int) -> Strips | None:
    """The explorer's frames of at most so many episodes; None where none are asked for or `films_of` has none."""
    if not most:
        return None
    real = np.flatnonzero(np.any(found.batch.mask, axis=(1, 2)))
    chosen = real[stratified(RowIndex(*(field[real] for field in found.rows)), most)]
    shots = shots_of(found, [Picked(row, str(row)) for row in chosen.tolist()])
    films = drawn(data, found, shots, SMALL)
    return None if films is None else Strips(shots.rows, films)


def drawn(data: Path, found: Dataset, shots: Shots, size: int) -> Films | None:
    """Frames of `size` by `size` pixels; None where the data set is not of MuJoCo or holds no states."""
    domain = found.meta.get("domain", {})
    if domain.get("name") != "mujoco":
        return None
    states = read_states(data, shots.rows)
    if "qpos" not in states:
        return None
    scenario = make_scenario(domain["scenario"])
    qpos = np.take_along_axis(states["qpos"], shots.steps[..., None], axis=1).astype(np.float64)
    owners = scenario.slots // scenario.action_mask.shape[1]
    try:
        paint, starts = paint_of(owners), range(0, len(qpos), AT_ONCE)
        images = np.concatenate([film(scenario.body, qpos[k : k + AT_ONCE], size, size, paint) for k in starts])
    except NoRendering as error:
        return no_films(str(error))
    forward = qpos[..., 0]
    return Films(
        images=images,
        titles=shots.titles,
        seconds=shots.steps * scenario.body.dt,
        metres=forward - forward[:, :1],
    )
