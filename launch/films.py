"""Film strips of a data set whose states were stored, for its report."""

from pathlib import Path

import numpy as np

from data_gen.engines.film import NoRendering, film
from data_gen.engines.scenarios import make_scenario
from data_gen.storage.states import read_states
from data_gen.trajectory import Dataset
from probes.report.films import Films, no_films, paint_of, pick_films

SIZE = 320  # pixels of a frame's side; twice what the report shows, which smooths edges


def films_of(data: Path, found: Dataset) -> Films | None:
    """Frames of representative episodes; None where the data set is not of MuJoCo or holds no states."""
    domain = found.meta.get("domain", {})
    if domain.get("name") != "mujoco":
        return None
    shots = pick_films(found)
    states = read_states(data, shots.rows)
    if "qpos" not in states:
        return None
    scenario = make_scenario(domain["scenario"])
    qpos = np.take_along_axis(states["qpos"], shots.steps[..., None], axis=1).astype(np.float64)
    owners = scenario.slots // scenario.action_mask.shape[1]
    try:
        images = film(scenario.body, qpos, SIZE, SIZE, paint_of(owners))
    except NoRendering as error:
        return no_films(str(error))
    forward = qpos[..., 0]
    return Films(
        images=images,
        titles=shots.titles,
        seconds=shots.steps * scenario.body.dt,
        metres=forward - forward[:, :1],
    )
