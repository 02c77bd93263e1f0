"""CSV or Parquet files in chunks of rows, so that those larger than memory can be read."""

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
FILE_ROWS = 2**40  # more than a file has
PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
UNITS = ("s", "ms", "us", "ns")
PACKED = (".gz", ".bz2", ".zst", ".lz4")


class File(NamedTuple):
    """A table file. `types` are those of its columns: as stored in Parquet, as its first chunk looks in CSV."""

    path: Path
    delimiter: str
    types: Mapping[str, pa.DataType]


class Source(NamedTuple):
    """Table files that are read one after another; `path` is what was asked for. Rows are numbered within their file:
    row r of file k has the number k FILE_ROWS + r. `types` are of the columns that all files have (`common_type`).
    """

    path: Path
    files: tuple[File, ...]
    types: Mapping[str, pa.DataType]

    @property
    def is_text(self) -> bool:
        """Whether the files are CSV."""
        return bool(self.files[0].delimiter)

    def names(self) -> list[str]:
        """Of a file its name, of those in a folder what tells them apart, without the ending."""
        if self.path.is_file():
            return [self.path.stem]
        return [file.path.relative_to(self.path).with_suffix("").as_posix() for file in self.files]


def open_source(path: Path) -> Source:
    """The file, the CSV or Parquet files of a folder and the folders in it, or those that a pattern such as
    games/*.csv matches.

    Raises InputError where there is none or there are both kinds, and where a file is empty, neither of the two kinds,
    or names a column twice.
    """
    path = Path(path).expanduser()
    root, paths = (path, [path]) if path.is_file() else _below(path)
    files = tuple(_open(one) for one in paths)
    for file in files:
        if bool(file.delimiter) != bool(files[0].delimiter):
            raise InputError(
                f"{path} holds CSV and Parquet files, such as {file.path} and {files[0].path}, which may be the same "
                f"data twice. Choose one kind: path={root / '*.csv'}."
            )
    names = [name for name in files[0].types if all(name in file.types for file in files)]
    return Source(root, files, {name: common_type([file.types[name] for file in files]) for name in names})


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType:
    """What holds the values of all files, of which some may have none: mixtures of numbers are numbers, others text."""
    known = [kind for kind in kinds if not pa.types.is_null(kind)] or list(kinds)
    if len({family(kind) for kind in known}) > 1:
        return pa.string()
    if all(map(is_time_stamp, known)):
        return max(known, key=lambda kind: UNITS.index(kind.unit))
    if all(kind == known[0] for kind in known) or family(known[0]) != "numbers":
        return known[0]
    return pa.int64() if all(map(pa.types.is_integer, known)) else pa.float64()


def family(kind: pa.DataType) -> str:
    """What a column's values are, in a word."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    for is_kind, word in (
        (pa.types.is_boolean, "truth values"),
        (pa.types.is_null, "nothing"),
        (pa.types.is_timestamp, "time stamps"),
        (pa.types.is_duration, "durations"),
    ):
        if is_kind(kind):
            return word
    return "text"


def _below(path: Path) -> tuple[Path, list[Path]]:
    """The folder, and the tables in it or those that a pattern matches; hidden ones are left out."""
    parts = path.parts
    plain = len(parts)
    if not path.is_dir():
        plain = next((k for k, part in enumerate(parts) if set(part) & set("*?[")), len(parts))
    root, pattern = Path(*parts[:plain]), "/".join(parts[plain:]) or "**/*"
    if not root.is_dir():
        raise InputError(f"{path} is neither a file nor a folder. Check the path.")
    found = [one for one in sorted(root.glob(pattern)) if one.is_file() and not one.name.startswith(".")]
    tables = [one for one in found if plain < len(parts) or _suffix(one) in PARQUET + CSV]
    if not tables:
        raise InputError(f"{path} holds no CSV or Parquet file; their names end in {', '.join(PARQUET + CSV)}.")
    return root, tables


def _suffix(path: Path) -> str:
    return (Path(path.stem).suffix if path.suffix.lower() in PACKED else path.suffix).lower()


def _open(path: Path) -> File:
    suffix = _suffix(path)
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
        raise InputError(_why(File(path, delimiter, {}), {}, error)) from None
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path} has {names.count(name)} columns {name!r}; which one is meant? Rename one.")
    return File(path=path, delimiter=delimiter, types={name: schema.field(name).type for name in names})


def check_there(source: Source, asked: Mapping[str, str]) -> None:
    """Raise InputError where a file lacks a column; `asked` has the option that asks for each."""
    for name, option in asked.items():
        for file in source.files:
            if name not in file.types:
                low = {other.lower(): other for other in file.types}
                near = get_close_matches(name.lower(), list(low), n=1, cutoff=0)
                raise InputError(
                    f"{file.path} has no column {name!r}, which columns.{option} asks for. The nearest is "
                    f"{low[near[0]]!r}; all are: {', '.join(file.types)}."
                )


def read_chunks(source: Source, types: Mapping[str, pa.DataType]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Chunks of the columns in `types`, each with the number of its first row. Parquet keeps its own types.

    Raises InputError where a file is damaged, or a value of a CSV file is not of its type, with the line.
    """
    for number, file in enumerate(source.files):
        first = number * FILE_ROWS
        try:
            for chunk in _csv(file.path, file.delimiter, types) if file.delimiter else _stored(file.path, types):
                chunk.validate(full=True)  # text that is not UTF-8 would not be found before it is used
                if chunk.num_rows:
                    yield first, chunk
                    first += chunk.num_rows
        except (pa.ArrowException, OSError) as error:
            raise InputError(_why(file, types, error)) from None
        if first == number * FILE_ROWS:
            raise InputError(
                f"{file.path} has a header but no rows, so there is no episode in it. Export it again, or leave it out."
            )


def place(source: Source, *rows: int) -> str:
    """Where rows of a file stand in it: lines of a CSV file (1 is its header), rows of a Parquet file from 0."""
    file, several = source.files[rows[0] // FILE_ROWS], "s" * (len(rows) > 1)
    within = f" of {file.path}" * (len(source.files) > 1)
    own = [row % FILE_ROWS for row in rows]
    if not file.delimiter:
        return f"row{several} {' and '.join(map(str, own))}{within}"
    with _text(file.path) as stream:
        lines = lines_of(stream, file.delimiter, own)
    return f"line{several} {' and '.join(map(str, lines))}{within}"


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


def _why(file: File, types: Mapping[str, pa.DataType], error: Exception) -> str:
    """What to say where the file could not be read on."""
    if file.delimiter:
        with _text(file.path) as stream:
            found = first_wrong(stream, file.delimiter, types)
        if found:
            return f"{file.path}: {found}"
    return _damaged(file.path, error)


def _damaged(path: Path, error: Exception) -> str:
    return f"{path} is damaged or cut short ({' '.join(str(error).split())}). Export it again."
