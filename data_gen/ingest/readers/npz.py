"""Arrays of an .npz archive, read a row of their first axis at a time: a whole one may be larger than memory."""

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from jaxtyping import Shaped

from data_gen.trajectory import InputError

HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Member(NamedTuple):
    """What the header of an array says."""

    shape: tuple[int, ...]
    dtype: np.dtype


def members(path: Path) -> dict[str, Member]:
    """The arrays of an archive, from their headers. Raises InputError where it is no archive, or would need pickle."""
    found = {}
    with _opened(path) as archive:
        for entry in archive.namelist():
            name = entry.removesuffix(".npy")
            with _stream(path, archive, name) as stream:
                found[name] = _header(path, name, stream)
    return found


def rows(path: Path, names: Sequence[str]) -> Iterator[Mapping[str, Shaped[np.ndarray, "..."]]]:
    """Row after row of the named arrays, which have equally many. Raises InputError where the archive is damaged."""
    with ExitStack() as stack:
        archive = stack.enter_context(_opened(path))
        streams = {name: stack.enter_context(_stream(path, archive, name)) for name in names}
        heads = {name: _header(path, name, stream) for name, stream in streams.items()}
        for number in range(heads[names[0]].shape[0]):
            yield {name: _row(path, name, stream, heads[name], number) for name, stream in streams.items()}
        for name, stream in streams.items():
            if _read(path, name, stream, 1, heads[name].shape[0]):
                raise InputError(f"{path}: array {name!r} is longer than its header says. Save it again.")


def _opened(path: Path) -> zipfile.ZipFile:
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path.")
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{path} is not an .npz archive, or is cut short ({error}). Save it again.") from None


def _stream(path: Path, archive: zipfile.ZipFile, name: str) -> zipfile.ZipExtFile:
    try:
        return cast(zipfile.ZipExtFile, archive.open(f"{name}.npy"))
    except (KeyError, zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path}: array {name!r} cannot be opened ({error}). Save it with numpy.savez.") from None


def _header(path: Path, name: str, stream: zipfile.ZipExtFile) -> Member:
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, dtype = HEADERS[version](stream)
    except (KeyError, ValueError, EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: array {name!r} has no header that NumPy knows ({error}). Save it again.") from None
    if dtype.hasobject:
        raise InputError(
            f"{path}: array {name!r} holds Python objects, which only pickle could load and which could run any code. "
            f"Save it as numbers, truth values or text of one width: numpy.asarray(values, str)."
        )
    if fortran and len(shape) > 1:
        raise InputError(
            f"{path}: array {name!r} is stored in Fortran's order, so its first axis cannot be read by itself. Save "
            f"numpy.ascontiguousarray of it."
        )
    return Member(shape=tuple(shape), dtype=dtype)


def _row(path: Path, name: str, stream: zipfile.ZipExtFile, head: Member, number: int) -> Shaped[np.ndarray, "..."]:
    shape = head.shape[1:]
    size = head.dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    data = _read(path, name, stream, size, number) if size else b""
    if len(data) != size:
        raise InputError(f"{path}: array {name!r} ends at row {number} of {head.shape[0]}. Save it again.")
    return np.frombuffer(data, head.dtype).reshape(shape)


def _read(path: Path, name: str, stream: zipfile.ZipExtFile, size: int, number: int) -> bytes:
    """Up to `size` bytes; at the end of an array its checksum is compared."""
    try:
        return stream.read(size)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: array {name!r} is damaged at row {number} ({error}). Save it again.") from None
