"""What a physics engine is: a batch of E environments of one body that can be put into a state and moved on."""

import difflib
import io
import os
from contextlib import redirect_stdout
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Key

from data_gen.engines.bodies import BODIES, INSTALL, Body, Fields
from data_gen.trajectory import AnyArray, InputError

ENGINES = ("native", "mjx", "brax")
LIMIT = 1e10  # MuJoCo's own (mjMAXVAL): what is larger is a failure, though it be finite
AUTO = "auto"  # native on CPUs, mjx on GPUs and TPUs


class Physics(NamedTuple):
    """`inner` is the engine's own, `fields` hold what the body reads, and `broken` is True where physics failed.

    All other values of a broken environment mean nothing until it is reset.
    """

    inner: Any
    fields: Fields
    broken: Bool[AnyArray, " E"]


@runtime_checkable
class Engine(Protocol):
    """`missing` names the fields that the engine cannot give, `notes` what it changed: both belong in the metadata.

    `xp` is the array namespace of the fields. An engine that keeps its state outside the arrays (native) changes it in
    place, so a Physics is used once.
    """

    name: str
    body: Body
    n_envs: int
    xp: Any
    missing: tuple[str, ...]
    notes: dict[str, str]
    start: tuple[Float[np.ndarray, " Nq"], Float[np.ndarray, " Nv"]]

    def begin(self, qpos: Float[AnyArray, "E Nq"], qvel: Float[AnyArray, "E Nv"]) -> Physics:
        """All environments in the given states."""
        ...

    def reset(
        self,
        physics: Physics,
        where: Bool[AnyArray, " E"],
        qpos: Float[AnyArray, "E Nq"],
        qvel: Float[AnyArray, "E Nv"],
    ) -> Physics:
        """The environments of the mask in the given states, the others as they are."""
        ...

    def step(self, physics: Physics, controls: Float[AnyArray, "E Nu"]) -> Physics:
        """`frame_skip` steps of physics under constant controls."""
        ...

    def close(self) -> None:
        """Give up threads or buffers."""
        ...


def choose_engine(name: str, backend: str) -> str:
    """The engine of this name; `auto` means native where JAX's backend is the CPU, else mjx. Raises InputError."""
    if name == AUTO:
        return "native" if backend == "cpu" else "mjx"
    if name not in ENGINES:
        near = difflib.get_close_matches(str(name), (*ENGINES, AUTO), n=1, cutoff=0.0)[0]
        raise InputError(
            f"engine: there is no engine {name!r}; did you mean {near!r}? The engines are {', '.join(ENGINES)}, and "
            f"{AUTO}."
        )
    return name


def open_engine(name: str, body: Body, n_envs: int, **settings: Any) -> Engine:
    """The engine of this name. Raises InputError where it, or a setting, is unknown or its packages are missing."""
    chosen = " (which auto stands for here)" if name == AUTO else ""
    name = choose_engine(name, jax.default_backend())
    if not isinstance(n_envs, int) or n_envs < 1:
        raise InputError(f"engine: n_envs is {n_envs!r}; it must be a whole number of at least 1.")
    module = import_engine(name)
    known = list(signature(module.open_here).parameters)[2:]
    for setting in settings:
        if setting not in known:
            raise InputError(
                f"engine {name}{chosen}: there is no setting {setting!r}. Its settings are {', '.join(known)}."
            )
    return module.open_here(body, n_envs, **settings)


def import_engine(name: str) -> ModuleType:
    """The engine's module, also where MUJOCO_GL names graphics that do not work here: physics draws nothing."""
    try:
        return import_quietly(name)
    except ModuleNotFoundError as error:
        raise InputError(f"engine {name}: the package {error.name!r} is not installed. Run: {INSTALL}") from error
    except Exception as error:  # whatever a graphics library raises while mujoco loads it
        asked = os.environ.get("MUJOCO_GL")
        if asked is None:
            raise
        os.environ["MUJOCO_GL"] = "disable"
        try:
            return import_quietly(name)
        except Exception:
            raise error from None
        finally:
            os.environ["MUJOCO_GL"] = asked


def import_quietly(name: str) -> ModuleType:
    """mujoco.mjx prints that Warp, which nobody asked for, is not installed."""
    with redirect_stdout(io.StringIO()):
        return import_module(f"data_gen.engines.{name}")


def start_states(
    body_name: str,
    start: tuple[Float[AnyArray, " Nq"], Float[AnyArray, " Nv"]],
    keys: Key[Array, " E"],
) -> tuple[Float32[Array, "E Nq"], Float32[Array, "E Nv"]]:
    """Gymnasium's noise about the model's own state, a key an environment, the same for every engine.

    qpos + U(−s, s); qvel + s·N(0, 1) for HalfCheetah and Ant, else qvel + U(−s, s).
    """
    body = BODIES[body_name]
    qpos, qvel = (jnp.asarray(part, jnp.float32) for part in start)

    def one(key):
        first, second = jax.random.split(key)
        around = jax.random.uniform(first, qpos.shape, minval=-body.noise, maxval=body.noise)
        if body.normal_velocity_noise:
            return qpos + around, qvel + body.noise * jax.random.normal(second, qvel.shape)
        return qpos + around, qvel + jax.random.uniform(second, qvel.shape, minval=-body.noise, maxval=body.noise)

    return jax.vmap(one)(keys)
