"""Named arrays in one directory, whole or absent, every file checked by its SHA-256.

<path>/arrays.zarr is a zarr v3 group with named dimensions; <path>/manifest.json says what must lie in it.
A writer works under a temporary name beside <path> and renames it when all is on disk: no reader sees half of it.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from jaxtyping import Int
from zarr.codecs import ZstdCodec

from data_gen.storage.leftovers import clear_leftovers, temporary
from data_gen.trajectory import InputError

SCHEMA = 1
CHUNK_BYTES = 16 * 2**20
KINDS = "biuf"
COMPRESSOR = ZstdCodec(level=1)  # zarr's usual level takes half as long again, for files at most a twentieth smaller

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]


class AlreadyThere(InputError):
    """Something lies under the name that was to be written."""


def write_group(path: Path, arrays: Arrays, attrs: dict[str, Any], replace: bool = False) -> None:
    """Write arrays (name -> dimensions and values) and JSON attributes to `path`, which appears only when whole.

    A name with slashes, "a/b/c", goes to the subgroup "a/b". Raises AlreadyThere where `path` exists and `replace` is
    false, also where another process got there first; InputError for a dtype or an attribute that cannot be stored.
    """
    path = Path(path)
    if path.exists() and not replace:
        raise AlreadyThere(_already(path))
    _check_arrays(path, arrays)
    text = _to_json(attrs, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    clear_leftovers(path)
    work = temporary(path)
    try:
        work.mkdir()
        _write_arrays(work / "arrays.zarr", arrays, json.loads(text))
        _write_manifest(work, arrays, json.loads(text))
        _sync_tree(work)
        _put_in_place(work, path, replace)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def read_group(path: Path, group: str = "") -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of one (sub)group and the attributes, after every file of the whole store was checked.

    Raises InputError where the path or its manifest is missing or garbled, the schema version is another one, or a file
    is missing, altered or not in the manifest.
    """
    path = Path(path)
    manifest = read_manifest(path)
    _check_files(path, manifest)
    return {name: np.asarray(array[...]) for name, array in _open(path, manifest, group).items()}, manifest["attrs"]


def read_rows(path: Path, group: str, rows: Int[np.ndarray, " K"]) -> dict[str, np.ndarray]:
    """Rows of the first axis of a subgroup's arrays; only the files of that subgroup are read and checked.

    Raises InputError as read_group.
    """
    path = Path(path)
    manifest = read_manifest(path)
    _check_files(path, manifest, f"{group}/")
    return {name: np.asarray(array.oindex[rows]) for name, array in _open(path, manifest, group).items()}


def read_arrays(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    """Only the named arrays; only their files are read and checked. Raises InputError as read_group."""
    path = Path(path)
    manifest = read_manifest(path)
    for name in names:
        _check_files(path, manifest, f"{name}/")
    found = _open(path, manifest, "")
    return {name: np.asarray(found[name][...]) for name in names}


def read_chunks(path: Path, name: str) -> Iterator[np.ndarray]:
    """An array's rows in their order, a chunk at a time, after its files were checked. InputError as read_group."""
    path = Path(path)
    manifest = read_manifest(path)
    _check_files(path, manifest, f"{name}/")
    array = _open(path, manifest, "")[name]
    for start in range(0, array.shape[0], array.chunks[0]):
        yield np.asarray(array[start : start + array.chunks[0]])


def names_in(manifest: dict[str, Any], group: str) -> list[str]:
    """Full names of the arrays that lie directly in one (sub)group."""
    prefix = f"{group}/" if group else ""
    return [name for name in manifest["arrays"] if name.startswith(prefix) and "/" not in name[len(prefix) :]]


def read_manifest(path: Path) -> dict[str, Any]:
    """What a store holds (schema, arrays, attrs, files), without its arrays. Raises InputError as read_group."""
    path, file = Path(path), Path(path) / "manifest.json"
    if not path.is_dir():
        raise InputError(f"{path} does not exist. Check the path, or run the command that writes it.")
    if not file.is_file():
        raise InputError(f"{file} is missing, so what should lie beside it is unknown. {_again(path)}")
    try:
        manifest = json.loads(file.read_text())
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not readable as JSON ({error}). {_again(path)}") from None
    if not isinstance(manifest, dict) or "schema" not in manifest:
        raise InputError(f"{file} names no schema version; it is not a manifest of this store. {_again(path)}")
    if manifest["schema"] != SCHEMA:
        raise InputError(
            f"{file} has schema version {manifest['schema']!r}; this version of marl-vae reads {SCHEMA}. "
            f"Use the version that wrote it, or write it again with this one."
        )
    if manifest.pop("sha256", None) != _digest_of(manifest):
        raise InputError(f"{file} was altered after it was written: its own checksum does not match. {_again(path)}")
    return manifest


def _write_arrays(root: Path, arrays: Arrays, attrs: dict[str, Any]) -> None:
    group = zarr.open_group(str(root), mode="w", zarr_format=3, attributes=attrs)
    for name, (dims, values) in arrays.items():
        values = np.asarray(values)
        stored = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=_chunks(values),
            dimension_names=dims,
            compressors=COMPRESSOR,
            # Every chunk lies on disk, also one of zeros: a chunk that is not there is always damage.
            config={"write_empty_chunks": True},
        )
        stored[...] = values


def _check_arrays(path: Path, arrays: Arrays) -> None:
    sizes: dict[tuple[str, str], tuple[int, str]] = {}
    for name, (dims, values) in arrays.items():
        _check_array(path, name, dims, np.asarray(values))
        _check_sizes(path, name, dict(zip(dims, np.shape(values), strict=True)), sizes)


def _check_array(path: Path, name: str, dims: tuple[str, ...], values: np.ndarray) -> None:
    if values.dtype.kind not in KINDS:
        raise InputError(
            f"{path}: array {name!r} has dtype {values.dtype}; the store holds booleans, integers and floats. "
            f"Code strings as integers and put their names into the attributes."
        )
    if len(dims) != values.ndim:
        raise InputError(f"{path}: array {name!r} has {values.ndim} axes but {len(dims)} dimension names {dims}.")


def _check_sizes(path: Path, name: str, own: dict[str, int], known: dict[tuple[str, str], tuple[int, str]]) -> None:
    """Within one (sub)group a dimension has one size, or xarray cannot open it; `known` gains what `name` adds."""
    for dim, size in own.items():
        first, other = known.setdefault((name.rpartition("/")[0], dim), (size, name))
        if first != size:
            raise InputError(
                f"{path}: dimension {dim!r} has size {size} in array {name!r} but {first} in {other!r}. Give "
                f"dimensions of different sizes different names."
            )


def _chunks(values: np.ndarray) -> tuple[int, ...]:
    """Whole rows of the first axis, as many as fit into CHUNK_BYTES, so that a shard is a few files."""
    if values.ndim == 0:
        return ()
    row = max(1, values.itemsize * int(np.prod(values.shape[1:], dtype=np.int64)))
    rows = max(1, min(values.shape[0], CHUNK_BYTES // row))
    return (rows, *(max(1, size) for size in values.shape[1:]))


def _write_manifest(work: Path, arrays: Arrays, attrs: dict[str, Any]) -> None:
    manifest = {
        "schema": SCHEMA,
        "arrays": {
            name: {"dims": list(dims), "shape": list(np.shape(values)), "dtype": str(np.asarray(values).dtype)}
            for name, (dims, values) in arrays.items()
        },
        "attrs": attrs,
        "files": {name: sha256_of(work / "arrays.zarr" / name) for name in _files(work / "arrays.zarr")},
    }
    manifest["sha256"] = _digest_of(manifest)
    (work / "manifest.json").write_text(json.dumps(manifest, indent=1))


def _open(path: Path, manifest: dict[str, Any], group: str) -> dict[str, zarr.Array]:
    """The arrays of a (sub)group by their names in it; nothing of their values is read yet."""
    root = str(path / "arrays.zarr")
    arrays = {name: zarr.open_array(root, path=name, mode="r", zarr_format=3) for name in names_in(manifest, group)}
    return {name.rpartition("/")[2]: array for name, array in arrays.items()}


def _check_files(path: Path, manifest: dict[str, Any], prefix: str = "") -> None:
    """Every file whose name begins with `prefix` is there and as it was written, and no other is."""
    root = path / "arrays.zarr"
    expected = {name: sha for name, sha in manifest["files"].items() if name.startswith(prefix)}
    found = {name for name in _files(root) if name.startswith(prefix)}
    for name in sorted(expected.keys() - found):
        raise InputError(f"{root / name} is missing ({_owner(name, manifest)}); it would read as zeros. {_again(path)}")
    for name in sorted(found - expected.keys()):
        raise InputError(f"{root / name} is not in the manifest ({_owner(name, manifest)}). {_again(path)}")
    for name, sha in expected.items():
        if sha256_of(root / name) != sha:
            raise InputError(
                f"{root / name} was altered after it was written ({_owner(name, manifest)}): "
                f"its SHA-256 is not the one in the manifest. {_again(path)}"
            )


def _owner(file: str, manifest: dict[str, Any]) -> str:
    owners = [name for name in manifest["arrays"] if file.startswith(f"{name}/")]
    return f"array {owners[0]!r}" if owners else "part of no array"


def _files(root: Path) -> list[str]:
    return sorted(str(file.relative_to(root)) for file in root.rglob("*") if not file.is_dir())


def sha256_of(file: Path) -> str:
    """SHA-256 of a file's content."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _to_json(attrs: dict[str, Any], path: Path) -> str:
    try:
        return json.dumps(attrs, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: the attributes are not JSON ({error}). Use plain numbers, strings, lists.") from None


def _sync_tree(root: Path) -> None:
    """Force files and directory entries to disk, so that the rename cannot reach it before them."""
    for entry in [root, *root.rglob("*")]:
        _sync(entry)


def _sync(entry: Path) -> None:
    handle = os.open(entry, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put_in_place(work: Path, path: Path, replace: bool) -> None:
    old = temporary(path)
    if replace and path.exists():
        path.rename(old)
    try:
        work.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise AlreadyThere(_already(path)) from None
        raise
    _sync(path.parent)
    if old.exists():
        shutil.rmtree(old)


def _already(path: Path) -> str:
    return f"{path} already exists; it was left as it is. Remove it or choose another name to write it anew."


def _again(path: Path) -> str:
    return f"Remove {path} and run the command that wrote it again."
