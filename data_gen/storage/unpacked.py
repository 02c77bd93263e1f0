"""A data set that is larger than memory: a copy of its episodes that gives any of them without reading the others.

Shards are compressed by chunks of many episodes, so that one episode costs its whole chunk. <data set>/unpacked/ holds
the same values uncompressed, a file a field, an episode after another, and about.json, which names the data set by its
digest. It is made once, appears only when whole, and may be removed at any time that nothing reads it.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32, Shaped

from data_gen.storage.dataset import Index, check_alike, concatenate, digest, index_of, shard_path, whole_set
from data_gen.storage.feature_mask import feature_mask_of
from data_gen.storage.leftovers import clear_leftovers, temporary
from data_gen.storage.store import names_in, read_arrays, read_chunks, read_manifest
from data_gen.trajectory import Episodes, InputError, OpenDataset, RowIndex, TrajectoryBatch, check_batch

CHECKED = 64  # episodes that are checked at once


class Field(NamedTuple):
    """A file of one field: B episodes of one shape, an episode after another."""

    path: Path
    shape: tuple[int, ...]
    dtype: str

    @property
    def episode_bytes(self) -> int:
        """Bytes of one episode."""
        return int(np.prod(self.shape[1:], dtype=np.int64)) * np.dtype(self.dtype).itemsize


class Unpacked(Episodes):
    """Some episodes of an unpacked copy, read from it when they are asked for."""

    def __init__(self, fields: Sequence[Field], rows: Int32[np.ndarray, " K"]):
        self._fields, self._rows = fields, rows

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, rows: Int32[np.ndarray, " J"]) -> TrajectoryBatch:
        """The given episodes; InputError where the copy was cut after it was made."""
        return TrajectoryBatch(*(_read(field, self._rows[rows]) for field in self._fields))

    def part(self, rows: Int32[np.ndarray, " J"]) -> "Unpacked":
        """The given episodes, unread."""
        return Unpacked(self._fields, self._rows[rows])


def open_dataset(root: Path) -> OpenDataset:
    """The same episodes in the same order as `read_dataset` gives, never more than a chunk of them in memory.

    Makes the unpacked copy where there is none of this data. Raises InputError as `read_dataset`, but for rewards and
    hand features, which are not read; and where the disk has no room for the copy.
    """
    root = Path(root)
    paths = [shard_path(root, index) for index in whole_set(root)]
    manifests = [read_manifest(path) for path in paths]
    attrs = [manifest["attrs"] for manifest in manifests]
    check_alike(paths, attrs)
    parts = [read_arrays(path, _small(manifest)) for path, manifest in zip(paths, manifests, strict=True)]
    found = index_of(root, attrs, {name: concatenate(name, paths, parts) for name in parts[0]})
    wanted, folder = {"data": digest(root), "fields": _shapes(paths, manifests)}, root / "unpacked"
    if _about(folder) != wanted:
        _unpack(paths, folder, wanted, found)
    fields = _fields_of(folder, wanted)
    _check_sizes(fields)
    batch = Unpacked(fields, np.arange(len(found.split), dtype=np.int32))
    features = feature_mask_of(found.meta, batch.take(np.arange(1, dtype=np.int32)), found.action, str(root))
    return OpenDataset(batch=batch, features=features, rows=found.rows, split=found.split, action=found.action)


def _small(manifest: dict[str, Any]) -> list[str]:
    """Names of the arrays of rows and labels."""
    return [name for name in names_in(manifest, "") if name in RowIndex._fields or name.startswith("label_")]


def _shapes(paths: Sequence[Path], manifests: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Shape and dtype of each field over all shards; InputError where they do not fit together."""
    found = {}
    for name in TrajectoryBatch._fields:
        stored = [manifest["arrays"][name] for manifest in manifests]
        for path, one in zip(paths, stored, strict=True):
            if one["shape"][1:] != stored[0]["shape"][1:] or one["dtype"] != stored[0]["dtype"]:
                raise InputError(
                    f"{path}: {name} is {one['dtype']}{one['shape']}, but in {paths[0]} it is {stored[0]['dtype']}"
                    f"{stored[0]['shape']}; only the first axis may differ. Record the shards with one configuration."
                )
        total = sum(one["shape"][0] for one in stored)
        found[name] = {"shape": [total, *stored[0]["shape"][1:]], "dtype": stored[0]["dtype"]}
    return found


def _fields_of(folder: Path, about: dict[str, Any]) -> list[Field]:
    """The files of a copy, as TrajectoryBatch has them."""
    return [Field(folder / name, tuple(one["shape"]), one["dtype"]) for name, one in about["fields"].items()]


def _check_sizes(fields: Sequence[Field]) -> None:
    """Raise InputError where a file has another size than when the copy was made."""
    for field in fields:
        size, wanted = field.path.stat().st_size if field.path.is_file() else 0, field.shape[0] * field.episode_bytes
        if size != wanted:
            raise InputError(f"{field.path} has {size} bytes and must have {wanted}. {_again(field.path.parent)}")


def _about(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "about.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}


def _unpack(paths: Sequence[Path], folder: Path, about: dict[str, Any], found: Index) -> None:
    """Write the copy beside `folder`, check its values, and put it in place."""
    clear_leftovers(folder)
    work = temporary(folder)
    try:
        work.mkdir()
        _check_room(work, about)
        for name in about["fields"]:
            with (work / name).open("wb") as file:
                for path in paths:
                    for chunk in read_chunks(path, name):
                        file.write(np.ascontiguousarray(chunk).data)
        (work / "about.json").write_text(json.dumps(about))
        _check_values(Unpacked(_fields_of(work, about), np.arange(len(found.split), dtype=np.int32)), found, folder)
        _put_in_place(work, folder, about)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written ({error}). Training from disk needs room for an uncompressed copy of the "
            f"episodes beside the data set: give it room and the right to write, or train with train.stream=false."
        ) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put_in_place(work: Path, folder: Path, about: dict[str, Any]) -> None:
    """Rename, in place of a copy of other data; one of the same data, which another process made first, stays."""
    if _about(folder) != about:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        work.rename(folder)
    except OSError:
        if _about(folder) != about:
            raise


def _check_room(work: Path, about: dict[str, Any]) -> None:
    needed, free = (
        sum(field.shape[0] * field.episode_bytes for field in _fields_of(work, about)),
        shutil.disk_usage(work).free,
    )
    if needed > free:
        raise OSError(f"it takes {needed / 2**30:.1f} GiB and {free / 2**30:.1f} GiB are free")


def _check_values(batch: Unpacked, found: Index, folder: Path) -> None:
    """Raise InputError as `read_dataset` where a value is unusable."""
    some = False
    for start in range(0, len(batch), CHECKED):
        piece = batch.take(np.arange(start, min(start + CHECKED, len(batch)), dtype=np.int32))
        if piece.mask.any():
            where = f"{folder.parent} from episode {start}"
            check_batch(piece, found.action, where)
            feature_mask_of(found.meta, piece, found.action, where)
            some = True
    if not some:
        raise InputError(f"{folder.parent}: there is no episode with a real step; nothing could be learned.")


def _read(field: Field, rows: Int32[np.ndarray, " K"]) -> Shaped[np.ndarray, "K ..."]:
    values = np.empty((len(rows), *field.shape[1:]), field.dtype)
    # Read, not mapped, so that what the system keeps of the file does not count as this process's memory.
    with field.path.open("rb", buffering=0) as file:
        for row, place in zip(rows, values, strict=True):
            if os.preadv(file.fileno(), [place.data], int(row) * field.episode_bytes) != field.episode_bytes:
                raise InputError(f"{field.path} ends before episode {row}. {_again(field.path.parent)}")
    return values


def _again(folder: Path) -> str:
    return f"It was cut after it was written: remove {folder}, and the next training makes it again."
