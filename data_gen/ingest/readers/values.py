"""Columns of a chunk as NumPy arrays: names as numbers of classes, everything else as floats. R rows, K classes."""

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Float64, Int32

from data_gen.ingest.readers.chunks import Source, is_time_stamp, place
from data_gen.ingest.readers.lines import NUMBER
from data_gen.trajectory import InputError

TICKS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


class Names(NamedTuple):
    """The names in a column, numbered as they come, and the row in which each came first."""

    codes: dict[str, int]
    rows: list[int]


def encode(names: Names, column: pa.Array, first: int) -> Int32[np.ndarray, " R"]:
    """The number of each value, -1 where it is empty; `names` gains those that are new. `first` is the chunk's row."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    index = coded.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = [name_of(value) for value in coded.dictionary.to_pylist()]
    if any(name is not None and name not in names.codes for name in values):
        _add(names, values, index, first)
    # The last place is for -1.
    return np.array([-1 if name is None else names.codes.get(name, -1) for name in [*values, None]], np.int32)[index]


def _add(names: Names, values: list[str | None], index: Int32[np.ndarray, " R"], first: int) -> None:
    """Number the values that are new and that a row has, in the order of their first rows."""
    at = np.full(len(values) + 1, -1)
    at[index[::-1]] = np.arange(len(index))[::-1]  # backwards, so that the first row is what stays
    for k in np.argsort(at[:-1], kind="stable"):
        name = values[k]
        if at[k] >= 0 and name is not None and name not in names.codes:
            names.codes[name] = len(names.codes)
            names.rows.append(first + int(at[k]))


def name_of(value: object) -> str | None:
    """A value as text, the same for 3 and 3.0; None where it is missing."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, float):
        return None if math.isnan(value) else str(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return None if value is None else str(value)


def numbers(source: Source, name: str, column: pa.Array, first: int) -> Float64[np.ndarray, " R"]:
    """Values as floats, seconds for time stamps, NaN where they are empty. Raises InputError at text and infinities."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    try:
        plain = column.cast(kind)
        if is_time_stamp(kind):
            found = _floats(plain.cast(pa.int64())) * TICKS[kind.unit]
        else:
            found = _floats(plain)
    except pa.ArrowNotImplementedError:
        raise InputError(f"{source.path}: column {name!r} holds {kind}; it must hold numbers.") from None
    except pa.ArrowInvalid:
        raise InputError(_no_number(source, name, column.to_pylist(), first)) from None
    wrong = np.flatnonzero(np.isinf(found))
    if len(wrong):
        raise InputError(
            f"{source.path}: column {name!r} is {found[wrong[0]]} at {place(source, first + int(wrong[0]))}. Repair "
            f"the value, or leave it empty where it was not measured."
        )
    return found


def check_pure(source: Source, column: str, names: Names) -> None:
    """Raise InputError where some names of a column are numbers and others are text."""
    numeric = [bool(NUMBER.fullmatch(name)) for name in names.codes]
    if any(numeric) and not all(numeric):
        known, text, number = list(names.codes), numeric.index(False), numeric.index(True)
        raise InputError(
            f"{source.path}: column {column!r} has text, {known[text]!r} at {place(source, names.rows[text])}, and "
            f"numbers, {known[number]!r} at {place(source, names.rows[number])}. Repair the values or leave them "
            f"empty; if the column holds classes, name it in columns.categories too."
        )


def in_order(names: Names) -> tuple[str, ...]:
    """Names by size where all are numbers, otherwise by the alphabet."""
    if all(NUMBER.fullmatch(name) for name in names.codes):
        return tuple(sorted(names.codes, key=lambda name: (float(name), name)))
    return tuple(sorted(names.codes))


def _floats(column: pa.Array) -> Float64[np.ndarray, " R"]:
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _no_number(source: Source, name: str, values: list[object], first: int) -> str:
    for row, value in enumerate(values):
        if value is not None and not NUMBER.fullmatch(str(value)):
            return (
                f"{source.path}: column {name!r} is read as numbers, but {place(source, first + row)} has {value!r}. "
                f"Repair the value or leave it empty."
            )
    return f"{source.path}: column {name!r} holds values that are not numbers, near {place(source, first)}."
