"""MuJoCo XLA: MuJoCo's own algorithms in float32, for GPUs and TPUs.

What the next step needs beside qpos and qvel is the solver's warm start; everything else follows from them.
"""

# pyright: reportAttributeAccessIssue=false
# mujoco is a compiled module without stubs.

from functools import partial
from typing import Any

import jax
import mujoco
import mujoco.mjx as mjx
import numpy as np
from jaxtyping import Array, Float

from data_gen.engines.batched import Batched, Single, devices_for, speed_note
from data_gen.engines.bodies import Body, Fields
from data_gen.engines.capsules import capsules_as_in_mujoco
from data_gen.engines.mjcf import load_model

IMPL = "jax"  # else an installed Warp, whose data is another, could be chosen on a GPU
SOLVERS = (mujoco.mjtSolver.mjSOL_CG, mujoco.mjtSolver.mjSOL_NEWTON)
OWN = ("cinert", "cfrc_ext")  # fields that MJX keeps in the part of its data that belongs to the implementation


def accepted_model(body: Body) -> tuple[mujoco.MjModel, dict[str, str]]:
    """The model with the settings that MJX refuses replaced, and what was."""
    model = load_model(body)
    if model.opt.solver in SOLVERS:
        return model, {}
    asked = mujoco.mjtSolver(model.opt.solver).name.removeprefix("mjSOL_")
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return model, {"solver": f"NEWTON in place of the MJCF's {asked}, which MJX does not have"}


def located(model: mjx.Model, qpos: Float[Array, " Nq"], qvel: Float[Array, " Nv"]) -> mjx.Data:
    """The state with the positions, inertias and velocities of bodies that follow from it."""
    data = mjx.make_data(model, impl=IMPL).replace(qpos=qpos, qvel=qvel)
    return mjx.com_vel(model, mjx.com_pos(model, mjx.kinematics(model, data)))


def read(body: Body, data: mjx.Data) -> Fields:
    """What the body reads."""
    # These are named attributes of MJX's data classes; which ones a body reads is known when it is compiled.
    return {name: getattr(data._impl if name in OWN else data, name) for name in body.fields}


def fresh(model: mjx.Model, body: Body, qpos: Float[Array, " Nq"], qvel: Float[Array, " Nv"]) -> tuple[Any, Fields]:
    """Gymnasium's reset: no warm start, and no forces but those that it shows."""
    data = located(model, qpos, qvel)
    return data.qacc_warmstart, read(body, data) | {"qpos": qpos, "qvel": qvel}


def advance(
    model: mjx.Model, body: Body, warm: Float[Array, " Nv"], fields: Fields, controls: Float[Array, " Nu"]
) -> tuple[Any, Fields]:
    """`frame_skip` steps. As in MuJoCo what is not qpos or qvel belongs to the last substep's start."""
    data = mjx.make_data(model, impl=IMPL).replace(
        qpos=fields["qpos"], qvel=fields["qvel"], qacc_warmstart=warm, ctrl=controls
    )
    with capsules_as_in_mujoco():
        data = jax.lax.fori_loop(0, body.frame_skip, lambda _, now: mjx.step(model, now), data)
    if "cfrc_ext" in body.fields:
        data = mjx.rne_postconstraint(model, data)
    return data.qacc_warmstart, read(body, data)


def start_of(model: mujoco.MjModel) -> tuple[Float[np.ndarray, " Nq"], Float[np.ndarray, " Nv"]]:
    """The model's own state."""
    data = mujoco.MjData(model)
    return data.qpos.copy(), data.qvel.copy()


def open_here(body: Body, n_envs: int, device: str | None = None) -> Batched:
    """The engine on all devices of a kind (`cpu`, `gpu`, `tpu`), by default JAX's."""
    devices = devices_for("mjx", n_envs, device)
    host_model, notes = accepted_model(body)
    model = mjx.put_model(host_model, impl=IMPL)
    return Batched(
        *("mjx", body, n_envs),
        single=Single(fresh=partial(fresh, model, body), advance=partial(advance, model, body)),
        start=start_of(host_model),
        devices=devices,
        missing=(),
        notes={"precision": "float32", **notes, **speed_note(devices)},
    )
