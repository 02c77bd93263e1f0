"""A contact of MJX 3.17.0 put right: a capsule that leans more than 60° from a plane (google-deepmind/mujoco#2774).

MuJoCo's pyramid of friction has an edge along the capsule. MJX turns it to the world's y axis where the capsule's
shadow on the plane is shorter than half of it, so that Ant's legs slide otherwise.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from mujoco.mjx import Data, GeomType, Model
from mujoco.mjx._src import collision_driver

PAIR = (GeomType.PLANE, GeomType.CAPSULE)


@contextmanager
def capsules_as_in_mujoco() -> Iterator[None]:
    """What is traced inside has MuJoCo's frames; MJX's own table of functions is as it was afterwards."""
    table = collision_driver._COLLISION_FUNC  # MJX has no public place for a collision function
    theirs = table[PAIR]
    ours = partial(collide, theirs)
    ours.ncon = theirs.ncon  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
    table[PAIR] = ours  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        table[PAIR] = theirs


def collide(
    theirs: Callable, model: Model, data: Data, key: Any, pairs: Int[Array, "P 2"]
) -> tuple[Float[Array, " C"], Float[Array, "C 3"], Float[Array, "C 3 3"]]:
    """MJX's distances and points, two contacts a capsule, and MuJoCo's frames."""
    distance, point, frame = theirs(model, data, key, pairs)
    plane, capsule = pairs.T
    normal, axis = data.geom_xmat[plane][..., 2], data.geom_xmat[capsule][..., 2]
    ours = frames(normal, axis)
    return distance, point, jnp.repeat(ours, frame.shape[0] // ours.shape[0], axis=0)


def frames(normal: Float[Array, "P 3"], axis: Float[Array, "P 3"]) -> Float[Array, "P 3 3"]:
    """Rows: the plane's normal, the capsule's shadow on it (x where there is none), and what is orthogonal to both."""
    shadow = axis - normal * jnp.sum(normal * axis, axis=-1, keepdims=True)
    length = jnp.sqrt(jnp.sum(shadow**2, axis=-1, keepdims=True))
    none = length < 1e-6
    first = jnp.where(none, jnp.array([[1.0, 0.0, 0.0]]), shadow / jnp.where(none, 1.0, length))
    return jnp.stack([normal, first, jnp.cross(normal, first)], axis=1)
