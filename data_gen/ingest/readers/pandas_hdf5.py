"""Tables that pandas wrote with to_hdf, read with h5py: PyTables would run the pickles that hold the columns' names.

Two layouts: "table" is one compound data set, with the names pickled in its attributes; "fixed" is a data set a block,
with the names as levels and codes. Letters: R rows, C columns.
"""

import io
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from jaxtyping import Float64

from data_gen.ingest.readers.hdf5 import dataset, texts
from data_gen.ingest.readers.pickles import load_plain
from data_gen.trajectory import InputError


class Blocks(NamedTuple):
    """Where a table's values are: what to read of each block, and the columns they are, in the same order."""

    group: h5py.Group
    index: tuple[str, str]
    names: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, ...], ...]
    rows: int


def find_table(found: h5py.File, file: Path) -> Blocks:
    """The one table of the file; InputError where there is none, or several, or it is not numbered by rows."""
    groups = [group for group in found.values() if isinstance(group, h5py.Group) and "pandas_type" in group.attrs]
    if len(groups) != 1:
        raise InputError(
            f"{file} holds {len(groups)} tables of pandas ({', '.join(map(str, found)) or 'nothing'}); DeepLabCut "
            f"writes one. Name a file that it wrote for a video."
        )
    return _table_layout(groups[0], file) if "table" in groups[0] else _fixed_layout(groups[0], file)


def read_table(blocks: Blocks, file: Path) -> tuple[Float64[np.ndarray, " R"], Float64[np.ndarray, "R C"]]:
    """The frame numbers and the values; InputError where the rows are not numbered or values are no numbers."""
    index = _field(blocks.group, blocks.index, file)
    if index.dtype.kind not in "iu":
        raise InputError(
            f"{file}: rows are named by {index.dtype}, not numbered by frame. Labelled images are no recording: name "
            f"the file that the tracker wrote for a video."
        )
    values = [_field(blocks.group, name, file) for name in blocks.names]
    if any(block.dtype.kind not in "fiu" or block.ndim != 2 for block in values):
        raise InputError(f"{file}: a block of the table holds {values[0].dtype}{list(values[0].shape)} and no numbers.")
    table = np.concatenate(values, axis=1).astype(np.float64)
    if table.shape != (len(index), len(blocks.columns)):
        raise InputError(f"{file}: the table is {list(table.shape)}; it names {len(blocks.columns)} columns.")
    return index.astype(np.float64), table


def _field(group: h5py.Group, name: tuple[str, str], file: Path) -> np.ndarray:
    values = dataset(group, name[0], file)
    return values[name[1]] if name[1] else values[()]


def _table_layout(group: h5py.Group, file: Path) -> Blocks:
    table = dataset(group, "table", file)
    fields = [name for name in table.dtype.names or () if name != "index"]
    if "index" not in (table.dtype.names or ()) or not fields:
        raise InputError(
            f"{file}: {table.name} has the columns {table.dtype.names}; pandas writes index and blocks of values."
        )
    columns = [name for field in fields for name in _pickled(table, f"{field}_kind", file)]
    return Blocks(
        group, ("table", "index"), tuple(("table", field) for field in fields), _names(columns, file), len(table)
    )


def _fixed_layout(group: h5py.Group, file: Path) -> Blocks:
    numbers = range(int(group.attrs.get("nblocks", 0)))
    columns = [column for number in numbers for column in _levels(group, f"block{number}_items", file)]
    index = dataset(group, "axis1", file)
    for number in numbers:
        dataset(group, f"block{number}_values", file)
    names = tuple((f"block{number}_values", "") for number in numbers)
    return Blocks(group, ("axis1", ""), names, _names(columns, file), len(index))


def _levels(group: h5py.Group, name: str, file: Path) -> list[tuple[str, ...]]:
    """The names of a MultiIndex, which pandas keeps as codes into the names of each level."""
    levels = []
    for number in range(int(group.attrs.get(f"{name}_nlevels", 0))):
        known = texts(dataset(group, f"{name}_level{number}", file), file)
        codes = dataset(group, f"{name}_label{number}", file)[()]
        if codes.dtype.kind not in "iu" or ((codes < 0) | (codes >= len(known))).any():
            raise InputError(f"{file}: {name}_label{number} holds codes that are not in {name}_level{number}.")
        levels.append([known[code] for code in codes])
    return list(zip(*levels, strict=True)) if levels else []


def _pickled(table: h5py.Dataset, name: str, file: Path) -> list[Any]:
    kept = table.attrs.get(name)
    if not isinstance(kept, bytes):
        raise InputError(f"{file}: {table.name} has no attribute {name}, where pandas keeps the names of the columns.")
    found = load_plain(io.BytesIO(kept), f"{file}, {name}")
    return found if isinstance(found, list) else []


def _names(columns: list[Any], file: Path) -> tuple[tuple[str, ...], ...]:
    if not columns or not all(isinstance(column, tuple) for column in columns):
        raise InputError(f"{file}: the columns have no levels (scorer, bodyparts, coords), which DeepLabCut's have.")
    return tuple(tuple(str(level) for level in column) for column in columns)
