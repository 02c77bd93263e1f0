"""Vaults for tests, written by Flashbax itself."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flashbax.buffers.trajectory_buffer import TrajectoryBufferState
from flashbax.vault import Vault

LENGTHS, N_AGENTS, N_OBS = (4, 6, 9, 1, 5), 3, 4


def stream(seed: int, discrete: bool = True, steps: int = sum(LENGTHS)) -> dict[str, Any]:
    """Five episodes in OG-MARL's leaves, [T, N, …]; see `test_ends_and_presence` for how they end."""
    rng = np.random.default_rng(seed)
    stops = np.cumsum(LENGTHS)
    terminals, truncations = np.zeros((2, steps, N_AGENTS), bool)
    terminals[stops[0] - 1] = terminals[stops[3] - 1] = True
    truncations[stops[1] - 1] = truncations[stops[2] - 1] = True
    terminals[stops[1] + 2 : stops[2], 1] = True
    truncations[stops[2] - 1, 1] = False
    actions = rng.integers(0, 5, (steps, N_AGENTS)).astype(np.int32)
    return {
        "observations": rng.normal(size=(steps, N_AGENTS, N_OBS)).astype(np.float32),
        "actions": actions if discrete else rng.normal(size=(steps, N_AGENTS, 2)).astype(np.float32),
        "rewards": rng.normal(size=(steps, N_AGENTS)).astype(np.float32),
        "terminals": terminals,
        "truncations": truncations,
        "infos": {
            "state": rng.normal(size=(steps, 7)).astype(np.float32),
            "legals": rng.random((steps, N_AGENTS, 5)) < 0.5,
        },
    }


def write_vault(root: Path, uid: str, leaves: dict[str, Any], length: int | None = None) -> None:
    """Write the first `length` steps of `leaves`, in two goes as a run does."""
    experience = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], leaves)
    steps = jax.tree.leaves(experience)[0].shape[1]
    length = steps if length is None else length
    vault = Vault(root.name, experience, rel_dir=str(root.parent), vault_uid=uid)
    for index in (length // 2, length):
        full = jnp.asarray(False)
        vault.write(TrajectoryBufferState(experience=experience, current_index=jnp.asarray(index), is_full=full))
