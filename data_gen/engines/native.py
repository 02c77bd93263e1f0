"""MuJoCo's C engine: one mjData an environment, stepped by a few threads that live as long as the engine.

Each thread calls `mj_step`, which lets go of Python's lock, and `mj_rnePostConstraint` where the body wants contact
forces. `mujoco.rollout` is not used: it returns neither those nor the solver's warm start, without which its steps part
from Gymnasium's (see docs/mujoco.md for its speed).
"""

# pyright: reportAttributeAccessIssue=false
# mujoco is a compiled module without stubs.

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import mujoco
import numpy as np
from jaxtyping import Bool, Float

from data_gen.engines.bodies import Body, Fields
from data_gen.engines.engine import Physics
from data_gen.engines.mjcf import load_model
from data_gen.trajectory import InputError


class Native:
    """A batch of E environments in float64. Not for use from several threads at once."""

    name = "native"
    missing = ()
    xp = np

    def __init__(self, body: Body, model: mujoco.MjModel, n_envs: int, threads: int):
        self.body = body
        self.n_envs = n_envs
        self.notes = {"islands": "off: every body is one, the results are the same bit for bit, and it is faster"}
        self.model = model
        self.model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ISLAND
        self.data = [mujoco.MjData(self.model) for _ in range(n_envs)]
        self.start = (self.data[0].qpos.copy(), self.data[0].qvel.copy())
        self.threads = min(threads, n_envs)
        self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="mujoco")
        # Views of MuJoCo's own memory, made once: an attribute of mjData costs more than the copy of what it shows.
        self.views = {field: [getattr(data, field)[None] for data in self.data] for field in body.fields}
        self.controls = [data.ctrl for data in self.data]
        self.closed = False
        self.warnings = [data.warning.number[None] for data in self.data]

    def begin(self, qpos: Float[np.ndarray, "E Nq"], qvel: Float[np.ndarray, "E Nv"]) -> Physics:
        """All environments in the given states."""
        return self.put(np.ones(self.n_envs, bool), qpos, qvel)

    def reset(
        self,
        physics: Physics,
        where: Bool[np.ndarray, " E"],
        qpos: Float[np.ndarray, "E Nq"],
        qvel: Float[np.ndarray, "E Nv"],
    ) -> Physics:
        """The environments of the mask in the given states, the others as they are."""
        return self.put(where, qpos, qvel)

    def put(
        self, where: Bool[np.ndarray, " E"], qpos: Float[np.ndarray, "E Nq"], qvel: Float[np.ndarray, "E Nv"]
    ) -> Physics:
        """Gymnasium's reset: everything to zero, the state, and the positions that follow from it."""
        for number in np.flatnonzero(where):
            data = self.data[number]
            mujoco.mj_resetData(self.model, data)
            data.qpos[:], data.qvel[:] = qpos[number], qvel[number]
            mujoco.mj_forward(self.model, data)
        return self.read()

    def step(self, physics: Physics, controls: Float[np.ndarray, "E Nu"]) -> Physics:
        """`frame_skip` steps of physics; a control that is not finite (MuJoCo takes 0) breaks its environment.

        Raises InputError after `close`.
        """
        if self.closed:
            raise InputError("engine native: it was closed; open another one with open_engine.")
        turns = iter(range(self.n_envs))  # shared: the thread that is free takes the next environment
        others = [self.pool.submit(self.step_some, turns, controls) for _ in range(self.threads - 1)]
        self.step_some(turns, controls)
        for other in others:
            other.result()
        return self.read()

    def step_some(self, turns: Iterator[int], controls: Float[np.ndarray, "E Nu"]) -> None:
        """One thread's share of a step."""
        model, skip, forces = self.model, self.body.frame_skip, "cfrc_ext" in self.body.fields
        for number in turns:
            data = self.data[number]
            self.controls[number][:] = controls[number]
            mujoco.mj_step(model, data, skip)
            if forces:
                mujoco.mj_rnePostConstraint(model, data)

    def read(self) -> Physics:
        """Copies of the fields. On a failure MuJoCo counts a warning and resets, so that nothing looks wrong."""
        fields: Fields = {name: np.concatenate(views) for name, views in self.views.items()}
        warned = np.concatenate(self.warnings)[:, FAILURES].any(axis=1)
        finite = np.isfinite(np.concatenate([part.reshape(self.n_envs, -1) for part in fields.values()], axis=1))
        return Physics(inner=None, fields=fields, broken=warned | ~finite.all(axis=1))

    def close(self) -> None:
        """End the threads."""
        self.closed = True
        self.pool.shutdown()


FAILURES = [
    int(kind)
    for kind in (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
]


def open_here(body: Body, n_envs: int, threads: int = 0) -> Native:
    """The engine; 0 threads means one a processor that this process may use."""
    if threads < 0:
        raise InputError(f"engine native: threads is {threads}; it must not be negative (0: one a processor).")
    model = load_model(body)
    one = mujoco.MjData(model).nbuffer
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if n_envs * one > memory:
        raise InputError(
            f"engine native: {n_envs} environments of {body.name}, {one / 1e3:.0f} kB each, want more than the "
            f"{memory / 1e9:.0f} GB of memory here. Take fewer: learner.envs a training seed of a shard when learning, "
            f"recording.episodes when recording."
        )
    return Native(body, model, n_envs, threads or len(os.sched_getaffinity(0)))
