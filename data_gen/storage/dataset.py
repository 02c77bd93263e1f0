"""A data set: a directory of shards, one a recording job, written by any number of jobs at once without a lock.

Each shard's manifest says how many shards there are, so nothing has to be written for the set as a whole.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32

from data_gen.storage.feature_mask import feature_mask_of
from data_gen.storage.shard import Shard
from data_gen.storage.split import split_groups
from data_gen.storage.store import AlreadyThere, Arrays, read_group, read_manifest, write_group
from data_gen.trajectory import (
    ActionSpec,
    Dataset,
    Features,
    InputError,
    Labels,
    LabelSpec,
    Outcomes,
    RowIndex,
    TrajectoryBatch,
    check_batch,
    spec_json,
)

BATCH_DIMS = ("episode", "step", "agent")
# What may differ between shards of one data set: which one it is, who made it, and what was thrown away.
OWN = ("index", "provenance", "discarded")


def shard_path(root: Path, index: int) -> Path:
    """Where shard `index` lies."""
    return Path(root) / f"shard-{index:05d}"


def present_shards(root: Path) -> list[int]:
    """Numbers of the shards that are there; temporary names of writers at work do not count."""
    matches = [re.fullmatch(r"shard-(\d{5,})", entry.name) for entry in Path(root).glob("shard-*") if entry.is_dir()]
    return sorted(int(match[1]) for match in matches if match)


class Index(NamedTuple):
    """What a data set says of its episodes beside their steps; small enough to be read whole."""

    rows: RowIndex
    labels: Labels
    split: Int32[np.ndarray, " B"]
    action: ActionSpec
    meta: dict[str, Any]


def write_shard(root: Path, index: int, n_shards: int, shard: Shard, provenance: dict[str, Any]) -> bool:
    """Write one shard; False where another job wrote the same one first, whose copy then stays.

    `provenance` (code revision, versions, times) may differ between shards. Raises InputError where the shard is not
    sound, or where the one already there was made with other settings.
    """
    where = shard_path(root, index)
    if not 0 <= index < n_shards:
        raise InputError(f"{where}: shard {index} is outside 0..{n_shards - 1}.")
    check_batch(shard.batch, shard.action, str(where))
    feature_mask_of(shard.meta, shard.batch, shard.action, str(where))
    _check_states(shard, where)
    attrs = {
        "index": index,
        "n_shards": n_shards,
        "meta": shard.meta,
        "action": shard.action._asdict(),
        "label_specs": [spec_json(spec) for spec in shard.labels.specs],
        "hand_names": list(shard.hand.names),
        "provenance": provenance,
        **({"discarded": list(shard.discarded)} if shard.discarded else {}),
    }
    try:
        write_group(where, _arrays_of(shard), attrs)
    except AlreadyThere:
        _check_agree(where, json.loads(json.dumps(attrs)), where, read_manifest(where)["attrs"])
        return False
    return True


def check_kept(root: Path, index: int, n_shards: int, meta: dict[str, Any]) -> None:
    """Raise InputError where the shard that is there is of another set than the one that is being written."""
    where, wanted = shard_path(root, index), {"n_shards": n_shards, "meta": json.loads(json.dumps(meta))}
    attrs = read_manifest(where)["attrs"]
    _check_agree(Path("this one"), wanted, where, {name: attrs.get(name) for name in wanted})


def read_dataset(root: Path) -> Dataset:
    """Every shard of the set in order, every file checked, split by group as meta["recording"] says.

    meta gains "curves" [S, U], "provenance" (a list, one a shard) and "discarded" (what was thrown away, and why).
    Raises InputError where the set is not there, is not whole, is damaged, or its shards do not belong together.
    """
    indices = whole_set(Path(root))
    paths = [shard_path(root, index) for index in indices]
    parts, attrs = zip(*(read_group(path) for path in paths), strict=True)
    check_alike(paths, attrs)
    arrays = {name: concatenate(name, paths, parts) for name in parts[0]}
    curves = concatenate("curve", paths, [read_group(path, "learner")[0] for path in paths])
    head, found = attrs[0], index_of(root, attrs, arrays)
    batch = TrajectoryBatch(obs=arrays["obs"], actions=arrays["actions"], mask=arrays["mask"])
    check_batch(batch, found.action, str(root))
    _check_finite(root, "rewards", arrays["rewards"][arrays["mask"]])
    for column, name in enumerate(head["hand_names"]):
        _check_finite(root, f"hand feature {name!r}", arrays["hand"][:, column])
    return Dataset(
        batch=batch,
        features=feature_mask_of(found.meta, batch, found.action, str(root)),
        rows=found.rows,
        outcomes=Outcomes(*(arrays[name] for name in Outcomes._fields)),
        labels=found.labels,
        hand=Features(values=arrays["hand"], names=tuple(head["hand_names"])),
        split=found.split,
        action=found.action,
        meta={**found.meta, "curves": curves},
    )


def index_of(root: Path, attrs: Sequence[dict[str, Any]], arrays: dict[str, np.ndarray]) -> Index:
    """What the shards' attributes and the arrays of rows and labels say, split by group. InputError as read_dataset."""
    head, rows = attrs[0], RowIndex(*(arrays[name] for name in RowIndex._fields))
    _check_unique(rows, root)
    labels = _labels_of(arrays, head["label_specs"], root)
    lost = [line for own in attrs for line in own.get("discarded", ())]
    meta = {**head["meta"], "provenance": [own["provenance"] for own in attrs], "discarded": lost}
    split = _split_of(rows, labels, meta, root)
    return Index(rows=rows, labels=labels, split=split, action=ActionSpec(**head["action"]), meta=meta)


def check_alike(paths: list[Path], attrs: Sequence[dict[str, Any]]) -> None:
    """Raise InputError where a shard was recorded with other settings than the first."""
    for path, other in zip(paths[1:], attrs[1:], strict=True):
        _check_agree(paths[0], attrs[0], path, other)


def digest(root: Path) -> str:
    """SHA-256 over the shards' manifests without their provenance: the same for the same data, recorded anywhere."""
    total = hashlib.sha256()
    for index in whole_set(Path(root)):
        total.update(identity_of(shard_path(root, index)))
    return total.hexdigest()


def identity_of(path: Path) -> bytes:
    """What is to be hashed for a digest of a store: the same for the same content, written by any command anywhere.

    That is its manifest, which holds a checksum of every file, without the provenance. Raises InputError as read_group.
    """
    manifest = read_manifest(path)
    manifest["attrs"].pop("provenance", None)
    # The group's own metadata repeats the attributes, provenance included.
    manifest["files"].pop("zarr.json", None)
    return json.dumps(manifest, sort_keys=True).encode()


def whole_set(root: Path) -> list[int]:
    """The shard numbers of a complete set, from manifests alone."""
    present = present_shards(root)
    if not present:
        raise InputError(f"{root} holds no data set (no shard-* directory). Check the path, or run generate first.")
    first = shard_path(root, present[0])
    n_shards = read_manifest(first)["attrs"].get("n_shards")
    if not isinstance(n_shards, int):
        raise InputError(f"{first} is not a shard of a data set: its manifest names no number of shards.")
    missing = sorted(set(range(n_shards)) - set(present))
    if missing:
        raise InputError(
            f"{root} is not complete: {n_shards - len(missing)} of {n_shards} shards are there; missing "
            f"{', '.join(shard_path(root, index).name for index in missing)}. Run generate again to finish it."
        )
    extra = [shard_path(root, index).name for index in present if index >= n_shards]
    if extra:
        raise InputError(
            f"{first} is one of {n_shards} shards, but {root} also holds {', '.join(extra)}, left from another "
            f"recording. Keep the shards of one recording in a directory."
        )
    return present


def _arrays_of(shard: Shard) -> Arrays:
    actions = (*BATCH_DIMS, "action_dim") if shard.action.kind == "continuous" else BATCH_DIMS
    arrays: Arrays = {
        "obs": ((*BATCH_DIMS, "obs_dim"), np.asarray(shard.batch.obs)),
        "actions": (actions, np.asarray(shard.batch.actions)),
        "mask": (BATCH_DIMS, np.asarray(shard.batch.mask)),
        **{name: (("episode",), values) for name, values in shard.rows._asdict().items()},
        "rewards": (BATCH_DIMS, shard.outcomes.rewards),
        "terminated": (("episode", "step"), shard.outcomes.terminated),
        "truncated": (("episode", "step"), shard.outcomes.truncated),
        "hand": (("episode", "hand_feature"), shard.hand.values),
    }
    for name, values in shard.labels.values.items():
        arrays[f"label_{name}"] = (("episode", "agent")[: np.ndim(values)], values)
    # In subgroups, which xarray leaves alone: they have no episode axis, and readers of trajectories do not want them.
    arrays["learner/curve"] = (("seed", "update"), shard.curve)
    for name, values in shard.policies.items():
        rest = tuple(f"{name.replace('/', '_')}_{k}" for k in range(np.ndim(values) - 2))
        arrays[f"policies/{name}"] = (("seed", "snapshot", *rest), values)
    for name, values in shard.states.items():
        arrays[f"states/{name}"] = (("episode", "step", *(f"{name}_{k}" for k in range(np.ndim(values) - 2))), values)
    return arrays


def _labels_of(arrays: dict[str, np.ndarray], specs: list[dict[str, Any]], root: Path) -> Labels:
    prefix = "label_"
    values = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    for spec in specs:
        for source in (spec["source"], spec.get("within") or spec["source"]):
            if source not in values:
                raise InputError(
                    f"{root}: label {spec['name']!r} is made from {source!r}, which is not stored. "
                    f"Stored are: {', '.join(sorted(values))}."
                )
    return Labels(values=values, specs=tuple(LabelSpec(**{**s, "classes": tuple(s["classes"])}) for s in specs))


def _split_of(rows: RowIndex, labels: Labels, meta: dict[str, Any], root: Path) -> Int32[np.ndarray, " B"]:
    recording = meta.get("recording", {})
    if "split" not in recording or "seed" not in recording:
        raise InputError(
            f"{root}: the shards' meta names no split; it must hold recording.split (three numbers of groups) and "
            f"recording.seed. Record the data set again with this version."
        )
    return split_groups(rows.group, labels, recording["split"], recording["seed"])


def concatenate(name: str, paths: list[Path], parts: Any) -> np.ndarray:
    """One array of all shards; InputError where they do not hold the same, or of another shape or dtype."""
    for path, part in zip(paths, parts, strict=True):
        if name not in part or part.keys() != parts[0].keys():
            differ = sorted(part.keys() ^ parts[0].keys()) or [name]
            raise InputError(f"{path} and {paths[0]} do not hold the same arrays: {', '.join(differ)}.")
        if part[name].shape[1:] != parts[0][name].shape[1:] or part[name].dtype != parts[0][name].dtype:
            raise InputError(
                f"{path}: {name} is {part[name].dtype}{list(part[name].shape)}, but in {paths[0]} it is "
                f"{parts[0][name].dtype}{list(parts[0][name].shape)}; only the first axis may differ. "
                f"Record the shards with one configuration."
            )
    return np.concatenate([part[name] for part in parts])


def _check_states(shard: Shard, where: Path) -> None:
    wanted = np.shape(shard.batch.mask)[:2]
    for name, values in shard.states.items():
        if "/" in name or np.shape(values)[:2] != wanted:
            raise InputError(
                f"{where}: state {name!r} has shape {np.shape(values)}; it must begin with {wanted}, the episodes and "
                f"steps of the batch, and its name must have no slash."
            )


def _check_agree(path: Path, attrs: dict[str, Any], other: Path, others: dict[str, Any]) -> None:
    found = _difference(
        {k: v for k, v in attrs.items() if k not in OWN}, {k: v for k, v in others.items() if k not in OWN}
    )
    if found:
        where, a, b = found
        raise InputError(
            f"{other} was recorded with other settings than {path}: {where} is {b} and {a}. Remove the shards of "
            f"one of the two recordings, or write to another directory."
        )


def _difference(a: Any, b: Any, where: str = "") -> tuple[str, Any, Any] | None:
    """The first place where two JSON values differ, as a dotted path with both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(a.keys() | b.keys()):
            found = _difference(a.get(key), b.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return None
    return None if a == b else (where, a, b)


def _check_finite(root: Path, what: str, values: np.ndarray) -> None:
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        raise InputError(
            f"{root}: {what} is {values[wrong[0]]} in {len(wrong)} of {len(values)} places. Repair the values, or "
            f"record the data set again."
        )


def _check_unique(rows: RowIndex, root: Path) -> None:
    pairs, counts = np.unique(np.stack([rows.episode, rows.t0]), axis=1, return_counts=True)
    if (counts > 1).any():
        episode, t0 = pairs[:, counts.argmax()]
        raise InputError(
            f"{root}: episode {episode} from step {t0} is stored {counts.max()} times, and {(counts > 1).sum()} "
            f"episode(s) more than once in all. A recording must not enter a data set twice: it could train and test."
        )
