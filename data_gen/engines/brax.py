"""Brax's spring backend on Gymnasium's bodies: fast and approximate. Links are held together by springs.

The MJCF is the other engines' without what Brax refuses (`system_of`); constants of the springs and substeps are those
of Brax's own environments. q is MuJoCo's qpos without the joints' reference positions. Brax's qd of joints that share a
link is not qvel, and its velocities of links are wrong where joints do not lie at a link's origin: both are taken from
MuJoCo's kinematics here.
"""

# pyright: reportAttributeAccessIssue=false
# mujoco is a compiled module without stubs.

import warnings
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import brax
import jax
import jax.numpy as jnp
import mujoco
import mujoco.mjx as mjx
import numpy as np
from brax import com, kinematics
from brax.base import Motion, System, Transform
from brax.io import mjcf as brax_mjcf
from brax.spring import pipeline
from brax.spring.base import State
from jaxtyping import Array, Float, Int

from data_gen.engines.batched import Batched, Single, devices_for, speed_note
from data_gen.engines.bodies import Body, Fields
from data_gen.engines.mjcf import path_of
from data_gen.engines.mjx import IMPL, accepted_model, located, read, start_of

# Steps of physics an action, at which the springs are stable: Brax's own environments'.
SUBSTEPS = {"HalfCheetah": 16, "Ant": 10, "Hopper": 4, "Walker2d": 4, "Humanoid": 10}
NOTES = {
    "physics": "Brax's spring backend: fast, approximate, other dynamics than MuJoCo's",
    "precision": "float32",
    "model": "Euler integration; bodies without joints merged into their parents; spring constants, damping and "
    "substeps of Brax's own environments; stiffness of joints as a servo",
    "time": "positions of bodies are those of qpos, not one substep older",
}
SHARED = {"joints": "torques of joints that share a link act along axes that turn with the link, not as in MuJoCo"}
NO_FORCES = {"contact cost": "left out of the reward: Brax gives no contact forces"}


def constants_of(body: Body) -> dict[str, list[float]]:
    """Brax's constants for its own version of the body, in the `custom` part of its MJCF file."""
    path = Path(brax.__file__).parent / "envs" / "assets" / body.xml.replace("_v5", "")
    found = {item.attrib["name"]: item.attrib["data"] for item in ElementTree.parse(path).iter("numeric")}
    return {name: [float(x) for x in data.split()] for name, data in found.items() if name != "init_qpos"}


def system_of(body: Body) -> System:
    """Brax's model of Gymnasium's MJCF file.

    Slides lose their anchor, which moves nothing, and their reference, which `offset_of` gives back. The backend
    knows no stiffness of joints, so it comes in as a servo about 0; their damping is Brax's constant.
    """
    spec = mujoco.MjSpec.from_file(str(path_of(body)))
    spec.compiler.fusestatic = True
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_EULER
    spec.option.solver = mujoco.mjtSolver.mjSOL_NEWTON  # never called, but MJX reads the model
    spec.option.timestep = body.dt / SUBSTEPS[body.name]
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            joint.pos, joint.ref = np.zeros(3), 0.0
    for name, values in constants_of(body).items():
        spec.add_numeric(name=name, data=values, size=len(values))
    with warnings.catch_warnings():
        # Brax that it is not maintained, MuJoCo that an attribute of half_cheetah.xml is deprecated.
        warnings.simplefilter("ignore")
        system = brax_mjcf.load_model(spec.compile())
    motors = system.actuator
    stiffness = system.dof.stiffness[motors.qd_id] / motors.gear**2  # Brax multiplies by the gear twice
    return system.replace(actuator=motors.replace(bias_q=-stiffness))


def offset_of(body: Body, model: mujoco.MjModel) -> Float[np.ndarray, " Nq"]:
    """qpos − q: MuJoCo's reference positions of slides and hinges; a free joint has none."""
    return np.zeros(body.nq) if body.nq > body.nv else model.qpos0.copy()


def links_of(model: mujoco.MjModel) -> list[int]:
    """For each link the body of the MJCF: those that have joints, in their order."""
    return [number for number in range(model.nbody) if model.body_jntnum[number]]


def motion_of(data: mjx.Data, links: Int[Array, " L"]) -> Motion:
    """Velocities of the links' origins in the world: MuJoCo gives those of points that move with the root's centre."""
    velocity, arm = data.cvel[links], data.xpos[links] - data.subtree_com[links[0]]
    return Motion(ang=velocity[:, :3], vel=velocity[:, 3:] + jnp.cross(velocity[:, :3], arm))


def fresh(
    system: System, model: mjx.Model, body: Body, links: list[int], offset: Float[np.ndarray, " Nq"], qpos, qvel
) -> tuple[State, Fields]:
    """Brax's `pipeline.init` with MuJoCo's places and velocities of links."""
    data = located(model, qpos, qvel)
    chosen = jnp.array(links)
    place, motion = Transform(pos=data.xpos[chosen], rot=data.xquat[chosen]), motion_of(data, chosen)
    joint, joint_motion, anchor, child_anchor = kinematics.world_to_joint(system, place, motion)
    centre, motion_of_centre = com.from_world(system, place, motion)
    state = State(
        q=qpos - offset,
        qd=qvel,
        x=place,
        xd=motion,
        contact=None,
        x_i=centre,
        xd_i=motion_of_centre,
        j=joint,
        jd=joint_motion,
        a_p=anchor,
        a_c=child_anchor,
        i_inv=com.inv_inertia(system, place),
        mass=system.link.inertia.mass ** (1 - system.spring_mass_scale),
    )
    return state, read(body, data) | {"qpos": qpos, "qvel": qvel}


def advance(
    system: System,
    model: mjx.Model,
    body: Body,
    offset: Float[np.ndarray, " Nq"],
    state: State,
    fields: Fields,
    controls: Float[Array, " Nu"],
) -> tuple[State, Fields]:
    """As many steps as make an action; fields follow from Brax's q and velocities of links."""
    substeps = SUBSTEPS[body.name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Brax reads an attribute of MJX's data by its old name
        state = jax.lax.fori_loop(0, substeps, lambda _, now: pipeline.step(system, now, controls), state)
    qpos = state.q + offset
    if body.nq == body.nv:  # the root's angle is not limited, and Brax gives it within ±π
        turns = jnp.round((fields["qpos"][2] - qpos[2]) / (2 * jnp.pi))
        qpos = qpos.at[2].add(2 * jnp.pi * turns)
    qvel = velocities(system, state, located(model, qpos, jnp.zeros(body.nv)).xaxis)
    given = {"qpos": qpos, "qvel": qvel, "qfrc_actuator": torques(system, controls)}
    found = read(body, located(model, qpos, qvel))
    return state, found | {name: given[name] for name in given if name in found}


def velocities(system: System, state: State, axes: Float[Array, "Nj 3"]) -> Float[Array, " Nv"]:
    """MuJoCo's qvel. Brax gives the share of a link's turning along each axis; with axes a that are not orthogonal
    the joints' own rates are (a aᵀ)⁻¹ a ω, where ω is the turning against the parent link.
    """
    qvel, joint, place = state.qd, 0, 0
    for link, (kind, parent) in enumerate(zip(system.link_types, system.link_parents, strict=True)):
        count, width = (1, 6) if kind == "f" else (int(kind), int(kind))
        if is_shared(kind, int(parent)):
            here = axes[joint : joint + count]
            turning = here @ (state.xd.ang[link] - state.xd.ang[parent])
            qvel = qvel.at[place : place + count].set(jnp.linalg.solve(here @ here.T, turning))
        joint, place = joint + count, place + width
    return qvel


def is_shared(kind: str, parent: int) -> bool:
    """Whether hinges share the link; the slides and the hinge of a planar root do too, but are orthogonal."""
    return kind in "23" and parent >= 0


def torques(system: System, controls: Float[Array, " Nu"]) -> Float[Array, " Nv"]:
    """MuJoCo's qfrc_actuator of motors."""
    low, high = system.actuator.ctrl_range.T
    force = system.actuator.gear * jnp.clip(controls, low, high)
    return jnp.zeros(system.qd_size()).at[system.actuator.qd_id].add(force)


def open_here(body: Body, n_envs: int, device: str | None = None) -> Batched:
    """The engine on all devices of a kind (`cpu`, `gpu`, `tpu`), by default JAX's."""
    devices = devices_for("brax", n_envs, device)
    host_model, _ = accepted_model(body)  # for kinematics alone
    model, system, offset = mjx.put_model(host_model, impl=IMPL), system_of(body), offset_of(body, host_model)
    single = Single(
        fresh=partial(fresh, system, model, body, links_of(host_model), offset),
        advance=partial(advance, system, model, body, offset),
    )
    missing = tuple(name for name in ("cfrc_ext",) if name in body.fields)
    shared = any(is_shared(*link) for link in zip(system.link_types, map(int, system.link_parents), strict=True))
    return Batched(
        *("brax", body, n_envs),
        single=single,
        start=start_of(host_model),
        devices=devices,
        missing=missing,
        notes={**NOTES, **(SHARED if shared else {}), **(NO_FORCES if missing else {}), **speed_note(devices)},
    )
