"""A CSV or Parquet file in chunks of rows, so that one larger than memory can be read."""

import io
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import csv, parquet

from data_gen.ingest.readers.lines import first_wrong, lines_of
from data_gen.trajectory import InputError

CHUNK_ROWS = 2**17
CHUNK_BYTES = 2**24
PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
PACKED = (".gz", ".bz2", ".zst", ".lz4")


class Source(NamedTuple):
    """A table file. `types` are those of its columns: as stored in Parquet, as its first chunk looks in CSV."""

    path: Path
    delimiter: str
    types: Mapping[str, pa.DataType]


def open_source(path: Path) -> Source:
    """Raises InputError where the file is missing, empty, neither CSV nor Parquet, or names a column twice."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise InputError(f"{path} is not a file. Check the path.")
    suffix = (Path(path.stem).suffix if path.suffix.lower() in PACKED else path.suffix).lower()
    if suffix not in PARQUET + CSV:
        raise InputError(f"{path} is neither CSV nor Parquet by its name; it must end in {', '.join(PARQUET + CSV)}.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty: it has 0 bytes. Export it again.")
    delimiter = ""
    try:
        delimiter = "" if suffix in PARQUET else _delimiter(path)
        schema = _csv(path, delimiter, {}).schema if delimiter else _parquet(path).schema_arrow
        names = list(schema.names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(_why(Source(path, delimiter, {}), {}, error)) from None
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path} has {names.count(name)} columns {name!r}; which one is meant? Rename one.")
    return Source(path=path, delimiter=delimiter, types={name: schema.field(name).type for name in names})


def check_there(source: Source, asked: Mapping[str, str]) -> None:
    """Raise InputError where the file lacks a column; `asked` has the option that asks for each."""
    for name, option in asked.items():
        if name not in source.types:
            low = {other.lower(): other for other in source.types}
            near = get_close_matches(name.lower(), list(low), n=1, cutoff=0)
            raise InputError(
                f"{source.path} has no column {name!r}, which columns.{option} asks for. The nearest is "
                f"{low[near[0]]!r}; all are: {', '.join(source.types)}."
            )


def read_chunks(source: Source, types: Mapping[str, pa.DataType]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Chunks of the columns in `types`, each with the number of its first row. Parquet keeps its own types.

    Raises InputError where the file is damaged, or a value of a CSV file is not of its type, with the line.
    """
    first = 0
    try:
        for chunk in _csv(source.path, source.delimiter, types) if source.delimiter else _stored(source.path, types):
            chunk.validate(full=True)  # text that is not UTF-8 would not be found before it is used
            if chunk.num_rows:
                yield first, chunk
                first += chunk.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(_why(source, types, error)) from None


def place(source: Source, *rows: int) -> str:
    """Where rows stand in the file: lines of a CSV file (1 is its header), rows of a Parquet file counted from 0."""
    several = "s" * (len(rows) > 1)
    if not source.delimiter:
        return f"row{several} {' and '.join(str(row) for row in rows)}"
    with _text(source.path) as stream:
        lines = lines_of(stream, source.delimiter, rows)
    return f"line{several} {' and '.join(str(line) for line in lines)}"


def is_time_stamp(kind: pa.DataType) -> bool:
    """Whether a column's type says what its numbers are in."""
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def _parquet(path: Path, names: Sequence[str] = ()) -> parquet.ParquetFile:
    # Buffered, so that a row group is never in memory as a whole; text stays coded, as it mostly lies in the file.
    return parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False, read_dictionary=list(names))


def _stored(path: Path, types: Mapping[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    text = [name for name, kind in types.items() if pa.types.is_dictionary(kind)]
    with _parquet(path, text) as file:
        yield from (batch.select(list(types)) for batch in file.iter_batches(CHUNK_ROWS, columns=list(types)))


def _csv(path: Path, delimiter: str, types: Mapping[str, pa.DataType]) -> csv.CSVStreamingReader:
    return csv.open_csv(
        path,
        read_options=csv.ReadOptions(block_size=CHUNK_BYTES),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            column_types=dict(types), include_columns=list(types), strings_can_be_null=True
        ),
    )


def _text(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(pa.input_stream(str(path)), encoding="utf-8-sig", errors="replace", newline="")


def _delimiter(path: Path) -> str:
    """The likely one of four: a header has more of it than of the others."""
    with _text(path) as stream:
        header = stream.readline(2**20)
    return max(",\t;|", key=header.count)


def _why(source: Source, types: Mapping[str, pa.DataType], error: Exception) -> str:
    """What to say where the file could not be read on."""
    if source.delimiter:
        with _text(source.path) as stream:
            found = first_wrong(stream, source.delimiter, types)
        if found:
            return f"{source.path}: {found}"
    return _damaged(source.path, error)


def _damaged(path: Path, error: Exception) -> str:
    return f"{path} is damaged or cut short ({' '.join(str(error).split())}). Export it again."
