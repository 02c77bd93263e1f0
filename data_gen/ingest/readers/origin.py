"""Where a table's places are measured from, so that single precision holds those that lie far away. R rows."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from jaxtyping import Float64

from data_gen.ingest.readers.chunks import Source, read_chunks
from data_gen.ingest.readers.columns import Columns, position_names
from data_gen.ingest.readers.values import numbers
from data_gen.ingest.recording import FAR

GRID = 10_000.0


def origin_of(source: Source, columns: Columns, types: Mapping[str, pa.DataType]) -> tuple[float, ...]:
    """What is taken from the places along each axis, in double precision, before they are stored in single.

    `columns.origin` where it is given; otherwise 0, but on an axis on which the first rows reach beyond FAR (such as
    metres of a map grid) their median, in whole GRIDs, so that most data of one site share it.
    """
    if columns.origin or not columns.position:
        return tuple(columns.origin)
    names = position_names(columns)
    first, chunk = next(read_chunks(source, {name: types[name] for name in names}))
    values = np.stack([numbers(source, name, chunk.column(name), first) for name in names])
    axes = values.reshape(-1, len(columns.position), chunk.num_rows).swapaxes(0, 1)
    return tuple(_along(axis.reshape(-1)) for axis in axes)


def _along(values: Float64[np.ndarray, " R"]) -> float:
    known = values[np.isfinite(values)]
    if not len(known) or np.abs(known).max() <= FAR:
        return 0.0
    return float(np.round(np.median(known) / GRID) * GRID)
