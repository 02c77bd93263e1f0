"""An engine out of functions of one environment in JAX: vmapped, compiled, and spread over devices. E environments.

Each device steps a share of the environments of its own (`shard_map`). Left to the compiler, every iteration of a
contact solver would ask all devices whether any environment still needs one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Bool, Float

from data_gen.engines.bodies import Body
from data_gen.engines.engine import LIMIT, Physics
from data_gen.trajectory import AnyArray, InputError

AXIS = "env"


class Single(NamedTuple):
    """One environment: `fresh(qpos, qvel)` and `advance(inner, fields, controls)` give (inner, fields)."""

    fresh: Callable
    advance: Callable


class Batched:
    """Float32, and pure: a Physics may be used again, and every method under `jax.jit` and `lax.scan`.

    A broken environment stands still with the values that it had before, so that nothing not finite gets out.
    """

    xp = jnp

    def __init__(
        self,
        name: str,
        body: Body,
        n_envs: int,
        single: Single,
        start: tuple[Float[np.ndarray, " Nq"], Float[np.ndarray, " Nv"]],
        devices: list[Any],
        missing: tuple[str, ...],
        notes: dict[str, str],
    ):
        self.name, self.body, self.n_envs, self.start = name, body, n_envs, start
        self.missing, self.notes = missing, notes
        mesh = Mesh(np.array(devices), (AXIS,))
        self.begin_all = spread(partial(begin_one, single.fresh), mesh)
        self.reset_all = spread(partial(reset_one, single.fresh), mesh)
        self.step_all = spread(partial(step_one, single.advance), mesh)

    def begin(self, qpos: Float[AnyArray, "E Nq"], qvel: Float[AnyArray, "E Nv"]) -> Physics:
        """All environments in the given states."""
        return self.begin_all(jnp.asarray(qpos, jnp.float32), jnp.asarray(qvel, jnp.float32))

    def reset(
        self,
        physics: Physics,
        where: Bool[AnyArray, " E"],
        qpos: Float[AnyArray, "E Nq"],
        qvel: Float[AnyArray, "E Nv"],
    ) -> Physics:
        """The environments of the mask in the given states, the others as they are."""
        return self.reset_all(
            physics, jnp.asarray(where), jnp.asarray(qpos, jnp.float32), jnp.asarray(qvel, jnp.float32)
        )

    def step(self, physics: Physics, controls: Float[AnyArray, "E Nu"]) -> Physics:
        """`frame_skip` steps of physics under constant controls; one that is not finite breaks its environment."""
        return self.step_all(physics, jnp.asarray(controls, jnp.float32))

    def close(self) -> None:
        """Nothing to give up."""


def spread(function: Callable, mesh: Mesh) -> Callable:
    """`function` of one environment for all of them, each device with its share."""
    part = PartitionSpec(AXIS)
    # Without the check of replication: MJX's loops start from constants, which it takes for another type.
    shared = jax.shard_map(jax.vmap(function), mesh=mesh, in_specs=part, out_specs=part, check_vma=False)
    return jax.jit(shared)


def begin_one(fresh: Callable, qpos: Float[AnyArray, " Nq"], qvel: Float[AnyArray, " Nv"]) -> Physics:
    """An environment from a state; broken, and all zeros, where the state is not a sound one."""
    inner, fields = allowing_promotion(fresh, qpos, qvel)
    broken = ~is_sound((inner, fields))
    inner, fields = jax.tree.map(lambda x: jnp.where(broken, jnp.zeros_like(x), x), (inner, fields))
    return Physics(inner=inner, fields=fields, broken=broken)


def reset_one(
    fresh: Callable,
    physics: Physics,
    where: Bool[AnyArray, ""],
    qpos: Float[AnyArray, " Nq"],
    qvel: Float[AnyArray, " Nv"],
) -> Physics:
    """`begin_one` where the mask is True."""
    return jax.tree.map(partial(jnp.where, where), begin_one(fresh, qpos, qvel), physics)


def step_one(advance: Callable, physics: Physics, controls: Float[AnyArray, " Nu"]) -> Physics:
    """One action. What is broken stays so, and as it was, until it is reset."""
    after = allowing_promotion(advance, physics.inner, physics.fields, controls)
    broken = physics.broken | ~is_sound(after)
    inner, fields = jax.tree.map(partial(jnp.where, broken), (physics.inner, physics.fields), after)
    return Physics(inner=inner, fields=fields, broken=broken)


def allowing_promotion(function: Callable, *arguments: Any) -> Any:
    """Other people's code adds arrays of different ranks, which our tests forbid."""
    with jax.numpy_rank_promotion("allow"):
        return function(*arguments)


def is_sound(values: Any) -> Bool[AnyArray, ""]:
    """Every number finite and below MuJoCo's limit; NaN is not below it."""
    return jnp.all(jnp.stack([jnp.all(abs(leaf) < LIMIT) for leaf in jax.tree.leaves(values)]))


def devices_for(name: str, n_envs: int, device: str | None) -> list[Any]:
    """All devices of a kind, JAX's default one where `device` is None.

    Raises InputError where there is none, or where they cannot share the environments evenly.
    """
    try:
        devices = jax.devices(device)
    except RuntimeError as error:
        here = ", ".join(sorted({f"{found.platform} ({found.device_kind})" for found in jax.devices()}))
        raise InputError(
            f"engine {name}: there is no device {device!r}; JAX sees {here}. Leave engine.device out, or install the "
            f"JAX for it."
        ) from error
    count = len(devices)
    if n_envs % count:
        below = n_envs // count * count
        near = f"{below} or {below + count}" if below else f"{count}"
        raise InputError(
            f"engine {name}: n_envs is {n_envs}, which {count} {devices[0].platform} devices cannot share evenly; "
            f"use {near}."
        )
    return devices


def speed_note(devices: list[Any]) -> dict[str, str]:
    """Says so where the engine runs on what it is not for."""
    if devices[0].platform != "cpu":
        return {}
    return {"device": "on the CPU it compiles long and is slower than native"}
