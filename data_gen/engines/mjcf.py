"""The bodies' MJCF files, from the installed Gymnasium, and MuJoCo's model of them."""

# pyright: reportAttributeAccessIssue=false
# mujoco is a compiled module without stubs.

import logging
from importlib.util import find_spec
from pathlib import Path

import mujoco

from data_gen.engines.bodies import INSTALL, Body
from data_gen.trajectory import InputError

LOG = logging.getLogger(__name__)


def path_of(body: Body) -> Path:
    """Where the MJCF file is. Raises InputError where Gymnasium or the file is not installed."""
    spec = find_spec("gymnasium")  # finds without importing
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"mujoco: the bodies come with Gymnasium, which is missing. Run: {INSTALL}")
    path = Path(spec.submodule_search_locations[0]) / "envs" / "mujoco" / "assets" / body.xml
    if not path.exists():
        raise InputError(f"mujoco: the installed Gymnasium has no {path}. Install the version in constraints.txt.")
    return path


def load_model(body: Body) -> mujoco.MjModel:
    """The compiled model. Raises InputError where its sizes or time step are not those our definitions are for."""
    # Else MuJoCo writes MUJOCO_LOG.TXT into the working folder. What matters is counted and reported by the engine.
    mujoco.set_mju_user_warning(LOG.info)
    model = mujoco.MjModel.from_xml_path(str(path_of(body)))
    found = (model.nq, model.nv, model.nu, model.opt.timestep)
    wanted = (body.nq, body.nv, body.nu, body.timestep)
    if found != wanted:
        raise InputError(
            f"mujoco: {path_of(body)} has nq, nv, nu, timestep {found}, and {body.name} needs {wanted}. Install the "
            f"Gymnasium version in constraints.txt."
        )
    return model
