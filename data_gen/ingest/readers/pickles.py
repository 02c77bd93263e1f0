"""Pickles of plain data, read without running what is in them.

A pickle is a program that can call whatever it can name. Here it can name what numpy writes for arrays, and even that
is replaced, since a numpy type with made-up flags or offsets reads memory that is not its own.
"""

import io
import pickle
import re
import tokenize
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.trajectory import InputError

# Numbers, truth values, text, and objects, each of which is then unpickled as plain data too.
TYPE = re.compile(r"[fiub]\d{1,2}|[US]\d+|O8?")


class PlainType:
    """What a pickle says of a numpy type: its kind, its size and the order of its bytes, and nothing else."""

    def __init__(self, kind: Any, align: Any = False, copy: Any = False) -> None:
        if not isinstance(kind, str) or not TYPE.fullmatch(kind):
            raise pickle.UnpicklingError(f"it has the type {kind!r}, which is no plain data")
        self.real = np.dtype(kind)

    def __setstate__(self, state: tuple) -> None:
        if state[1] in ("<", ">"):
            self.real = self.real.newbyteorder(state[1])


class PlainArray(np.ndarray):
    """An array whose type was checked before its numbers are taken."""

    def __setstate__(self, state: tuple) -> None:
        version, shape, kind, by_columns, values = state
        super().__setstate__((version, shape, kind.real, by_columns, values))


def _empty(*_: Any) -> PlainArray:
    return PlainArray((0,), np.int8)


def _scalar(kind: PlainType, value: bytes) -> Any:
    return np.frombuffer(value, kind.real)[0]


def _from_buffer(values: bytes | bytearray, kind: PlainType, shape: tuple[int, ...], order: str) -> np.ndarray:
    return np.frombuffer(values, kind.real).reshape(shape, order="F" if order == "F" else "C")


def _latin(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding}")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    return b""


# numpy's modules moved between versions. The last two are for bytes as protocols below 3 write them.
KNOWN = {
    "numpy": {"ndarray": PlainArray, "dtype": PlainType},
    "numpy.core.multiarray": {"_reconstruct": _empty, "scalar": _scalar},
    "numpy._core.multiarray": {"_reconstruct": _empty, "scalar": _scalar},
    "numpy.core.numeric": {"_frombuffer": _from_buffer},
    "numpy._core.numeric": {"_frombuffer": _from_buffer},
    "_codecs": {"encode": _latin},
    "__builtin__": {"bytes": _no_bytes},
}


class PlainUnpickler(pickle.Unpickler):
    """Builds arrays, dictionaries, lists, text and numbers; UnpicklingError for the name of anything else."""

    def find_class(self, module: str, name: str) -> Any:
        if name not in KNOWN.get(module, {}):
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no plain data")
        return KNOWN[module][name]


def load_plain(stream: io.BufferedIOBase, where: str) -> Any:
    """What a pickle of plain data holds. Raises InputError where it is damaged, or holds anything else."""
    try:
        return PlainUnpickler(stream).load()
    except Exception as error:  # a damaged pickle is a program that fails in any way it likes
        raise InputError(
            f"{where} holds a pickle that cannot be read as arrays, dictionaries, lists, text and numbers: {error}. It "
            f"is damaged, or not what it is said to be; nothing in it was run."
        ) from None


def load_pickled_npy(file: Path, allowed: bool) -> Any:
    """The object that numpy saved with pickle. Raises InputError where the user did not allow it, see `load_plain`."""
    if not allowed:
        raise InputError(
            f"{file} is a pickle, and a pickle from somebody else can run code of theirs. Only plain data are read "
            f"here, and nothing is run; if you trust where it comes from, set allow_pickle=true."
        )
    with file.open("rb") as stream:
        shape, kind = _head(stream, file)
        if shape or kind != np.dtype(object):
            raise InputError(f"{file} is an array of {kind} {list(shape)}, and not a dictionary saved with numpy.save.")
        found = load_plain(stream, str(file))
    return found.item() if isinstance(found, np.ndarray) and found.shape == () else found


def _head(stream: io.BufferedIOBase, file: Path) -> tuple[tuple[int, ...], np.dtype]:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
    except (ValueError, OSError, SyntaxError, TypeError, tokenize.TokenError) as error:
        raise InputError(f"{file} is no .npy file of numpy, or is damaged ({error}).") from None
    return shape, kind
