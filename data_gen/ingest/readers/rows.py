"""Rows of a table as records of fixed size, which can be sorted, cut into episodes and set aside on disk. R rows."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float64, Shaped

from data_gen.ingest.readers.chunks import FILE_ROWS, Source, is_time_stamp, place, read_chunks
from data_gen.ingest.readers.columns import SECONDS, Columns, position_names
from data_gen.ingest.readers.survey import Survey
from data_gen.ingest.readers.values import Names, encode, numbers
from data_gen.trajectory import InputError


class Fields(NamedTuple):
    """The columns behind a record's fields `numbers` and `codes`, and what is taken from each of the numbers."""

    numbers: tuple[str, ...]
    codes: tuple[str, ...]
    away: tuple[float, ...]

    def dtype(self) -> np.dtype:
        """A record: the row of the file, numbers of episode and agent, time, and the values."""
        head = [("row", "i8"), ("episode", "i4"), ("agent", "i4"), ("time", "f8")]
        return np.dtype([*head, ("numbers", "f4", (len(self.numbers),)), ("codes", "i4", (len(self.codes),))])


def fields_of(columns: Columns, classes: tuple[str, ...], origin: tuple[float, ...]) -> Fields:
    """Where the columns that hold values go; `classes` are the columns of classes."""
    single = [name for name in (columns.reward, columns.terminated) if name]
    places = position_names(columns)
    values = [*columns.features, *columns.actions, *single, *columns.labels]
    rest = tuple(name for name in values if name not in classes)
    return Fields(
        numbers=(*places, *rest),
        codes=tuple(name for name in values if name in classes),
        away=(*origin * (len(places) // max(1, len(origin))), *[0.0] * len(rest)),
    )


def read_rows(
    source: Source, columns: Columns, types: Mapping[str, pa.DataType], found: Survey, fields: Fields
) -> Iterator[Shaped[np.ndarray, " R"]]:
    """Chunks of records, in the order of the file.

    Raises InputError, with the place, at text or an infinite value among numbers and at a time that is none.
    """
    known = {name: Names({c: k for k, c in enumerate(order)}, []) for name, order in found.classes.items()}
    for column, order in ((columns.episode, found.episodes), (columns.agent, found.agents)):
        if column:
            known[column] = Names({name: number for number, name in enumerate(order)}, [])
    size = {name: len(names.codes) for name, names in known.items()}
    for first, chunk in read_chunks(source, types):
        rows = np.zeros(chunk.num_rows, fields.dtype())
        rows["row"] = first + np.arange(chunk.num_rows)
        rows["episode"] = first // FILE_ROWS  # where no column says which
        rows["time"] = _time_of(source, columns, chunk.column(columns.time), first)
        for name, field in ((columns.episode, "episode"), (columns.agent, "agent")):
            if name:
                rows[field] = encode(known[name], chunk.column(name), first)
        for number, (name, away) in enumerate(zip(fields.numbers, fields.away, strict=True)):
            values = numbers(source, name, chunk.column(name), first) - away
            rows["numbers"][:, number] = _narrow(source, name, values, first)
        for number, name in enumerate(fields.codes):
            rows["codes"][:, number] = encode(known[name], chunk.column(name), first)
        if any(len(names.codes) != size[name] for name, names in known.items()):
            raise InputError(f"{source.path} was changed while it was read. Run the command again.")
        yield rows


def _time_of(source: Source, columns: Columns, column: pa.Array, first: int) -> Float64[np.ndarray, " R"]:
    """Time in seconds; in frames where no unit and no rate is given."""
    time = numbers(source, columns.time, column, first)
    wrong = np.flatnonzero(np.isnan(time))
    if len(wrong):
        raise InputError(
            f"{source.path}: column {columns.time!r}, the time, is empty at {place(source, first + int(wrong[0]))}; "
            f"every row needs it. Fill it in, or remove the row."
        )
    if is_time_stamp(column.type):
        return time
    if "time" in columns.units:
        return time * SECONDS[columns.units["time"]]
    wrong = np.flatnonzero(time != np.rint(time))
    if len(wrong):
        raise InputError(
            f"{source.path}: column {columns.time!r} is {time[wrong[0]]} at {place(source, first + int(wrong[0]))}, "
            f"which is no number of a frame. If it is a time, say in what: +columns.units.time=s."
        )
    return time / columns.rate if columns.rate else time


def _narrow(source: Source, name: str, values: Float64[np.ndarray, " R"], first: int) -> Float64[np.ndarray, " R"]:
    """The values, which must not be too large for single precision."""
    wrong = np.flatnonzero(np.abs(values) > np.finfo(np.float32).max)
    if len(wrong):
        raise InputError(
            f"{source.path}: column {name!r} is {values[wrong[0]]} at {place(source, first + int(wrong[0]))}, which is "
            f"too large for single precision. Repair the value, or give the column in another unit."
        )
    return values


def by_time(rows: Shaped[np.ndarray, " R"]) -> Shaped[np.ndarray, " R"]:
    """Rows of an episode in order of time, and at one time of agents; rows alike in both in the order of the file."""
    later = np.diff(rows["time"])
    if ((later > 0) | ((later == 0) & (np.diff(rows["agent"]) >= 0))).all():
        return rows
    return rows[np.lexsort((rows["agent"], rows["time"]))]


def unique_rows(
    rows: Shaped[np.ndarray, " _"], source: Source, episode: str, agents: tuple[str, ...]
) -> tuple[Shaped[np.ndarray, " R"], tuple[str, ...]]:
    """Each agent and time once, and what was left out. Raises InputError where two rows of one differ."""
    again = (rows["time"][1:] == rows["time"][:-1]) & (rows["agent"][1:] == rows["agent"][:-1])
    if not again.any():
        return rows, ()
    pairs = np.flatnonzero(again)
    one, two = rows[pairs], rows[pairs + 1]
    same = alike(one["numbers"], two["numbers"]).all(1) & (one["codes"] == two["codes"]).all(1)
    first = int(np.argmin(same))
    where = f"agent {agents[one['agent'][first]]!r} at time {one['time'][first]:g} of episode {episode!r}"
    if not same[first]:
        raise InputError(
            f"{source.path}: {where} is there twice, with different values, at "
            f"{place(source, *sorted((int(one['row'][first]), int(two['row'][first]))))}. Remove the row that is wrong."
        )
    keep = np.concatenate([[True], ~again])
    return rows[keep], (f"{len(pairs)} row(s) that repeat another one exactly, the first: {where}",)


def alike(one: Shaped[np.ndarray, "..."], two: Shaped[np.ndarray, "..."]) -> Bool[np.ndarray, "..."]:
    """Equal, or both NaN."""
    return (one == two) | ((one != one) & (two != two))
