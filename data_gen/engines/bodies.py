"""What every engine shares: observation, reward and termination of each body, after Gymnasium 1.3.0's v5 environments.

Functions take the engine's fields and an array namespace `xp`, numpy or jax.numpy. E environments.
Fields are MuJoCo's: after its `mj_step` positions of bodies, inertias and forces belong to the last substep's start,
one substep before qpos and qvel. Gymnasium has the same lag.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from data_gen.trajectory import AnyArray

Fields = dict[str, Any]
INSTALL = 'python -m pip install -c constraints.txt -e ".[mujoco]"'  # what brings the engines' packages
N_BODIES = 14  # of Ant and Humanoid, with the world
WIDTHS = {"cinert": 10, "cvel": 6, "cfrc_ext": 6}  # numbers a body; the world's are not observed


class RewardTerms(NamedTuple):
    """reward = forward + healthy − control − contact. `speed` is dx/dt of the body in metres a second."""

    forward: Float[AnyArray, " E"]
    healthy: Float[AnyArray, " E"]
    control: Float[AnyArray, " E"]
    contact: Float[AnyArray, " E"]
    speed: Float[AnyArray, " E"]


class Body(NamedTuple):
    """Constants of Gymnasium's v5 environment.

    `extras` are observed after qpos and qvel; `velocity_clip` bounds qvel in the global state, `local_velocity_clip` in
    what agents see: Gymnasium-Robotics reads Walker2d's velocities past Gymnasium's clip. `bound` limits a control:
    MuJoCo clamps the force, while the control cost charges the action as it was given. `place` gives the x that counts
    as forward.
    """

    name: str
    xml: str
    frame_skip: int
    timestep: float
    nq: int
    nv: int
    nu: int
    skipped: int
    place: Callable
    is_healthy: Callable
    forward_weight: float = 1.0
    control_weight: float = 0.1
    contact_weight: float = 0.0
    contact_cap: float = np.inf
    healthy_reward: float = 0.0
    noise: float = 0.1
    normal_velocity_noise: bool = False
    extras: tuple[str, ...] = ()
    place_field: str = "qpos"
    velocity_clip: float = np.inf
    local_velocity_clip: float = np.inf
    force_clip: float = np.inf
    bound: float = 1.0

    @property
    def dt(self) -> float:
        """Seconds between two actions."""
        return self.frame_skip * self.timestep

    @property
    def fields(self) -> tuple[str, ...]:
        """What an engine has to give."""
        return tuple(dict.fromkeys(("qpos", "qvel", *self.extras, self.place_field)))


def x_of_root(fields: Fields) -> Float[AnyArray, " E"]:
    """Planar bodies: the slide joint."""
    return fields["qpos"][..., 0]


def x_of_torso(fields: Fields) -> Float[AnyArray, " E"]:
    """Ant: the torso's frame."""
    return fields["xpos"][..., 1, 0]


def x_of_centre(fields: Fields) -> Float[AnyArray, " E"]:
    """Humanoid: the centre of mass of everything."""
    return fields["subtree_com"][..., 0, 0]


def always(fields: Fields, xp: Any) -> Bool[AnyArray, " E"]:
    """HalfCheetah never ends an episode."""
    return xp.ones(fields["qpos"].shape[:-1], bool)


def ant_upright(fields: Fields, xp: Any) -> Bool[AnyArray, " E"]:
    qpos, qvel = fields["qpos"], fields["qvel"]
    z = qpos[..., 2]
    finite = xp.all(xp.isfinite(qpos), axis=-1) & xp.all(xp.isfinite(qvel), axis=-1)
    return finite & (z >= 0.2) & (z <= 1.0)


def hopper_upright(fields: Fields, xp: Any) -> Bool[AnyArray, " E"]:
    qpos, qvel = fields["qpos"], fields["qvel"]
    z, angle = qpos[..., 1], qpos[..., 2]
    bounded = xp.all(abs(qpos[..., 2:]) < 100, axis=-1) & xp.all(abs(qvel) < 100, axis=-1)
    return bounded & (z > 0.7) & (abs(angle) < 0.2)


def walker_upright(fields: Fields, xp: Any) -> Bool[AnyArray, " E"]:
    z, angle = fields["qpos"][..., 1], fields["qpos"][..., 2]
    return (z > 0.8) & (z < 2.0) & (abs(angle) < 1.0)


def humanoid_upright(fields: Fields, xp: Any) -> Bool[AnyArray, " E"]:
    z = fields["qpos"][..., 2]
    return (z > 1.0) & (z < 2.0)


BODIES = {
    body.name: body
    for body in (
        Body(
            *("HalfCheetah", "half_cheetah.xml", 5, 0.01, 9, 9, 6, 1, x_of_root, always),
            normal_velocity_noise=True,
        ),
        Body(
            *("Ant", "ant.xml", 5, 0.01, 15, 14, 8, 2, x_of_torso, ant_upright),
            control_weight=0.5,
            contact_weight=5e-4,
            healthy_reward=1.0,
            normal_velocity_noise=True,
            extras=("cfrc_ext",),
            place_field="xpos",
            force_clip=1.0,
        ),
        Body(
            *("Hopper", "hopper.xml", 4, 0.002, 6, 6, 3, 1, x_of_root, hopper_upright),
            control_weight=1e-3,
            healthy_reward=1.0,
            noise=5e-3,
            velocity_clip=10.0,
            local_velocity_clip=10.0,
        ),
        Body(
            *("Walker2d", "walker2d_v5.xml", 4, 0.002, 9, 9, 6, 1, x_of_root, walker_upright),
            control_weight=1e-3,
            healthy_reward=1.0,
            noise=5e-3,
            velocity_clip=10.0,
        ),
        Body(
            *("Humanoid", "humanoid.xml", 5, 0.003, 24, 23, 17, 2, x_of_centre, humanoid_upright),
            forward_weight=1.25,
            contact_weight=5e-7,
            contact_cap=10.0,
            healthy_reward=5.0,
            noise=0.01,
            extras=("cinert", "cvel", "qfrc_actuator", "cfrc_ext"),
            place_field="subtree_com",
            bound=0.4,
        ),
    )
}


def layout(body: Body) -> dict[str, tuple[int, int]]:
    """Where each field begins in the global state, and how many numbers it has there."""
    sizes = {"qpos": body.nq - body.skipped, "qvel": body.nv}
    for name in body.extras:
        sizes[name] = WIDTHS[name] * (N_BODIES - 1) if name in WIDTHS else body.nu
    starts = np.cumsum([0, *sizes.values()]).tolist()
    return {name: (start, size) for (name, size), start in zip(sizes.items(), starts, strict=False)}


def global_state(body: Body, fields: Fields, xp: Any, velocity_clip: float) -> Float[AnyArray, "E G"]:
    """Gymnasium's observation of the whole body: qpos without the forward position(s), qvel, then the extras."""
    parts = [fields["qpos"][..., body.skipped :], xp.clip(fields["qvel"], -velocity_clip, velocity_clip)]
    for name in body.extras:
        values = fields[name]
        if name == "cfrc_ext":
            values = xp.clip(values, -body.force_clip, body.force_clip)
        values = values[..., 1:, :] if name in WIDTHS else values[..., body.nv - body.nu :]
        parts.append(values.reshape(*parts[0].shape[:-1], -1))
    return xp.concatenate(parts, axis=-1)


def reward_terms(body: Body, before: Fields, after: Fields, controls: Float[AnyArray, "E Nu"], xp: Any) -> RewardTerms:
    """The terms of one step's reward.

    Contact costs (Ant with clipped forces, Humanoid with a cap) sum over all bodies, the world's row with them.
    """
    speed = (body.place(after) - body.place(before)) / body.dt
    contact = xp.zeros_like(speed)
    if body.contact_weight:
        forces = xp.clip(after["cfrc_ext"], -body.force_clip, body.force_clip)
        contact = xp.minimum(body.contact_weight * xp.sum(forces**2, axis=(-2, -1)), body.contact_cap)
    return RewardTerms(
        forward=body.forward_weight * speed,
        healthy=body.healthy_reward * body.is_healthy(after, xp),
        control=body.control_weight * xp.sum(controls**2, axis=-1),
        contact=contact,
        speed=speed,
    )


def reward_of(terms: RewardTerms) -> Float[AnyArray, " E"]:
    """The team's reward."""
    return terms.forward + terms.healthy - terms.control - terms.contact
