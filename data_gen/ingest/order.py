"""Which slot of an episode an agent stands in. A recording's agent keeps its slot however often it comes and goes.

Letters: T steps, N agents of the recording, A slots of the episode.
"""

import hashlib

import numpy as np
from jaxtyping import Bool, Int, Shaped

from data_gen.ingest.recording import Layout, Recording
from data_gen.trajectory import InputError


def slots_in(
    recording: Recording, layout: Layout, real: Bool[np.ndarray, " N"], n_agents: int, seed: int | None, t0: int
) -> Int[np.ndarray, " N"]:
    """The slot of each agent in the window from t0, -1 for those without one.

    A role has its own slot. Agents without roles that are `real` in the window take the first slots: in an order drawn
    from `seed`, the recording's name and t0 alone (whatever order the file has them in), or in the file's order where
    the seed is None. Raises InputError where there are more of them than slots, or where an agent has no role.
    """
    if layout.agents:
        return np.array([role_of(recording, layout, name) for name in recording.agents], int)
    who = np.flatnonzero(real)
    if len(who) > n_agents:
        raise InputError(
            f"{recording.file}: recording {recording.name!r} has {len(who)} agents in the window from step {t0}, more "
            f"than the {n_agents} that an episode has room for. Ask for more agents, or take shorter windows."
        )
    if seed is not None:
        who = np.array(sorted(who.tolist(), key=lambda n: recording.agents[n]), int)
        name = int.from_bytes(hashlib.sha256(recording.name.encode()).digest()[:8], "big")
        who = np.random.default_rng([seed, name, t0]).permutation(who)
    slots = np.full(len(real), -1)
    slots[who] = np.arange(len(who))
    return slots


def role_of(recording: Recording, layout: Layout, name: str) -> int:
    """The place of an agent among the roles; InputError where it has none."""
    if name not in layout.agents:
        raise InputError(
            f"{recording.file}: recording {recording.name!r} has an agent {name!r}, which is none of the roles "
            f"{', '.join(layout.agents)}. Name every role, or none."
        )
    return layout.agents.index(name)


def put(
    values: Shaped[np.ndarray, "T N ..."], slots: Int[np.ndarray, " N"], n_agents: int
) -> Shaped[np.ndarray, "T A ..."]:
    """Each agent's values in its slot, zeros in slots without one."""
    if len(slots) == n_agents and (slots >= 0).all():
        return np.take(values, np.argsort(slots), axis=1)
    found = np.zeros((len(values), n_agents, *values.shape[2:]), values.dtype)
    placed = slots >= 0
    found[:, slots[placed]] = values[:, placed]
    return found
