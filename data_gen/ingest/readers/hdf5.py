"""HDF5 files of other people, opened so that damage ends in a message."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from data_gen.trajectory import InputError


@contextmanager
def opened(file: Path) -> Iterator[h5py.File]:
    """The open file. Raises InputError where it, or what is read of it, is damaged."""
    try:
        with h5py.File(file, "r") as found:
            yield found
    except (OSError, RuntimeError, UnicodeDecodeError) as error:  # h5py raises these for damage, whatever is read
        reason = str(error).split("\n")[0]
        raise InputError(f"{file} cannot be read as HDF5 ({reason}). It is another format, or damaged.") from None


def dataset(group: h5py.Group, name: str, file: Path) -> h5py.Dataset:
    """The data set of that name; InputError where the file lacks it."""
    found = group.get(name)
    if not isinstance(found, h5py.Dataset):
        raise InputError(
            f"{file} lacks {name}, and has {', '.join(map(str, group)) or 'nothing'}. Is it of another format?"
        )
    return found


def texts(found: h5py.Dataset, file: Path) -> list[str]:
    """A list of names; InputError where it is anything else."""
    if found.ndim != 1 or found.dtype.kind not in "SO":
        if found.shape == (0,):  # an empty list of names has the type of numbers
            return []
        raise InputError(f"{file}: {found.name} is {found.dtype}{list(found.shape)}; it must be a list of names.")
    return [value.decode() if isinstance(value, bytes) else str(value) for value in found[()]]
