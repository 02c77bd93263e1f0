"""Stored simulator states of a few episodes, read from the shards that hold them. K rows."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from data_gen.storage.dataset import shard_path, whole_set
from data_gen.storage.store import names_in, read_manifest, read_rows
from data_gen.trajectory import InputError

GROUP = "states"


def read_states(root: Path, rows: Int[np.ndarray, " K"]) -> dict[str, np.ndarray]:
    """States [K, T, ...] of rows numbered as `read_dataset` numbers them; {} where the data set holds none.

    Raises InputError where a row is out of range, the set is not whole, what is read is damaged, or shards disagree.
    """
    paths = [shard_path(root, index) for index in whole_set(root)]
    manifests = [read_manifest(path) for path in paths]
    ends = np.cumsum([manifest["arrays"]["mask"]["shape"][0] for manifest in manifests])
    wrong = rows[(rows < 0) | (rows >= ends[-1])]
    if len(wrong):
        raise InputError(f"{root}: there is no episode {wrong[0]}; the data set has {ends[-1]}, numbered from 0.")
    kinds = _kinds(paths, manifests)
    states = {name: np.empty((len(rows), *shape), dtype) for name, (shape, dtype) in kinds.items()}
    shards = np.searchsorted(ends, rows, side="right")
    for shard in np.unique(shards) if states else ():
        places = np.flatnonzero(shards == shard)
        before = ends[shard - 1] if shard else 0
        for name, values in read_rows(paths[shard], GROUP, rows[places] - before).items():
            states[name][places] = values
    return states


def _kinds(paths: list[Path], manifests: list[dict[str, Any]]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape of a row and dtype of each state, the same in every shard."""
    kinds = []
    for manifest in manifests:
        stored = {name.rpartition("/")[2]: manifest["arrays"][name] for name in names_in(manifest, GROUP)}
        kinds.append({name: (tuple(array["shape"][1:]), array["dtype"]) for name, array in stored.items()})
    for path, other in zip(paths, kinds, strict=True):
        if other != kinds[0]:
            raise InputError(
                f"{path} and {paths[0]} do not hold the same states: {other} and {kinds[0]}. Record the shards with "
                f"one configuration."
            )
    return kinds[0]
