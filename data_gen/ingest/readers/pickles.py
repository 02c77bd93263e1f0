"""Pickles of plain data, read without running what is in them."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.trajectory import InputError

# What numpy writes for an array, a scalar and a type. Its multiarray moved between versions.
PLAIN = {
    *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class PlainUnpickler(pickle.Unpickler):
    """Builds arrays, dictionaries, lists, text and numbers; UnpicklingError for the name of anything else.

    A pickle is a program, which can call whatever it can name.
    """

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):  # bytes as protocols below 3 write them
            return _latin
        if (module, name) not in PLAIN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no plain data")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _latin(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"it asks for the encoding {encoding}")
    return text.encode("latin1")


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
    try:
        with file.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
            if shape or dtype != np.dtype(object):
                raise InputError(
                    f"{file} is an array of {dtype} {list(shape)}, and not a dictionary saved with numpy.save."
                )
            found = load_plain(stream, str(file))
    except (ValueError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} is no .npy file of numpy, or is damaged ({error}).") from None
    return found.item() if isinstance(found, np.ndarray) and found.shape == () else found
