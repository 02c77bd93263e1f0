"""One uid of a Flashbax vault: a stream of episodes, read by tensorstore alone.

The folder holds metadata.json and an OCDBT store of one zarr array a leaf, [1, 10^13, …] with time on axis 1, of which
the first `vault_index` steps are real. E episodes, T steps, N agents.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorstore as ts
from jaxtyping import Bool, Int64, Shaped

from data_gen.trajectory import InputError

ENDS = ("terminals", "truncations")
NEEDED = ("observations", "actions", "rewards", "terminals")
READ = (*NEEDED, "truncations")
LEGALS = "infos.legals"
BLOCK_BYTES = 32 * 2**20
CACHE_BYTES = 128 * 2**20  # blocks seldom meet the edges of chunks, and a chunk should be decoded once


class Stream(NamedTuple):
    """A uid: where it lies, its leaves, what else it holds, and the step after the last of each episode."""

    name: str
    root: Path
    leaves: dict[str, Any]
    left_out: tuple[str, ...]
    n_legal: int
    stops: Int64[np.ndarray, " E"]


def open_stream(root: Path) -> Stream:
    """Check the leaves, and find the ends of episodes.

    Raises InputError where a leaf is missing, damaged or of another shape, or where no step was written.
    """
    stored, context = _leaves_of(root), ts.Context({"cache_pool": {"total_bytes_limit": CACHE_BYTES}})
    if lacking := [name for name in NEEDED if name not in stored]:
        raise InputError(f"{root}: there is no leaf {lacking[0]!r}; there are {', '.join(stored)}.")
    leaves = {name: _open_leaf(root, f"{name}.", context) for name in READ if name in stored}
    _check_shapes(root, leaves)
    length = int(np.ravel(values(root, "vault_index", _open_leaf(root, "vault_index", context), slice(0, 1)))[0])
    if length < 1:
        raise InputError(
            f"{root}: vault_index is {length}, so nothing was written. Flashbax 0.1.3 writes no step of a buffer that "
            f"is exactly full: write before it is, and again."
        )
    n_legal = int(_open_leaf(root, f"{LEGALS}.", context).shape[-1]) if LEGALS in stored else 0
    left_out = tuple(sorted(set(stored) - set(READ)))
    return Stream(root.name, root, leaves, left_out, n_legal, _stops(root, leaves, length))


def values(root: Path, name: str, leaf: Any, where: Any) -> Shaped[np.ndarray, "..."]:
    """A part of a leaf. Raises InputError where it cannot be read."""
    try:
        return np.asarray(leaf[where].read().result())
    except ValueError as error:
        raise InputError(f"{root}: leaf {name!r} cannot be read: {_short(error)}. Get the vault again.") from None


def blocks(length: int, most: int) -> Iterator[slice]:
    """Runs of at most so many steps."""
    most = max(1, most)
    return (slice(start, min(start + most, length)) for start in range(0, length, most))


def ended(own: dict[str, np.ndarray]) -> Bool[np.ndarray, "T N"]:
    """Where an agent is terminal or truncated."""
    return np.any(np.stack([own[name] != 0 for name in ENDS if name in own]), axis=0)


def _leaves_of(root: Path) -> list[str]:
    """The paths of leaves that metadata.json names, keys joined with dots."""
    file = root / "metadata.json"
    try:
        return list(_paths(json.loads(file.read_text())["structure_shape"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file} is not that of a vault ({type(error).__name__}: {error}). Get it again.") from None


def _paths(tree: Any, prefix: str = "") -> Iterator[str]:
    for key, part in tree.items():
        if isinstance(part, dict):
            yield from _paths(part, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _open_leaf(root: Path, path: str, context: ts.Context) -> Any:
    base = {"driver": "file", "path": f"{root.resolve()}/"}
    spec = {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": path}}
    try:
        return ts.open(spec, open=True, read=True, context=context).result()
    except ValueError as error:
        name = path.rstrip(".")
        raise InputError(f"{root}: leaf {name!r} cannot be opened: {_short(error)}. Get the vault again.") from None


def _short(error: ValueError) -> str:
    return str(error).split(" [")[0]


def _check_shapes(root: Path, leaves: dict[str, Any]) -> None:
    """Raise InputError where a leaf is no number or its axes are not those of [1, T, N, …]."""
    n_agents = leaves["observations"].shape[2] if leaves["observations"].rank == 4 else None
    for name, leaf in leaves.items():
        if leaf.dtype.numpy_dtype.kind not in ("biuf" if name in ENDS else "fiu"):
            raise InputError(f"{root}: leaf {name!r} holds {leaf.dtype.name}, which it cannot be. Write it anew.")
        more = {"observations": (1,), "actions": (0, 1)}.get(name, (0,))
        if leaf.rank - 3 not in more or leaf.shape[0] != 1 or leaf.shape[2] != n_agents:
            raise InputError(
                f"{root}: leaf {name!r} has shape {list(leaf.shape)}; it must be [1, steps, agents{', …' * max(more)}],"
                f" one stream with as many agents as observations have. Write it anew, or take it apart."
            )


def _stops(root: Path, leaves: dict[str, Any], length: int) -> Int64[np.ndarray, " E"]:
    """Episodes end where every agent is terminal or truncated; the last may have no end."""
    found, before = [], np.zeros((1, leaves["terminals"].shape[2]), bool)
    for steps in blocks(length, BLOCK_BYTES // before.size):
        own = {name: values(root, name, leaves[name], (0, steps)) for name in ENDS if name in leaves}
        for name, flags in own.items():
            if not np.isin(flags, (0, 1)).all():
                raise InputError(f"{root}: leaf {name!r} holds other values than 0 and 1 from step {steps.start} on.")
        flags = np.concatenate([before, ended(own)])
        _check_kept(root, flags, steps.start - 1)
        found.append(steps.start + 1 + np.flatnonzero(flags[1:].all(1)))
        before = flags[-1:]
    stops = np.concatenate(found).astype(np.int64)
    return stops if stops.size and stops[-1] == length else np.append(stops, length)


def _check_kept(root: Path, flags: Bool[np.ndarray, "T N"], start: int) -> None:
    """An agent's end must stand until all have ended, or two episodes would be taken for one."""
    lost = np.argwhere(flags[:-1] & ~flags[1:] & ~flags[:-1].all(1, keepdims=True))
    if len(lost):
        step, agent = lost[0].tolist()
        raise InputError(
            f"{root}: agent {agent} is terminal or truncated at step {start + step} and not at the next, while others "
            f"go on; so where the episode ends cannot be told. Keep an agent's flag up to the end of the episode."
        )
