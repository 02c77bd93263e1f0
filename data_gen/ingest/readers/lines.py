"""Lines of a CSV file, for messages: pyarrow's reader does not number rows, and leaves blank lines out."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

import pyarrow as pa
from pyarrow import csv as arrow_csv

NUMBER = re.compile(r"\s*[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)\s*", re.IGNORECASE)
WHOLE = re.compile(r"\s*[+-]?\d+\s*")
TRUTH = re.compile(r"\s*([01]|true|false)\s*", re.IGNORECASE)
EMPTY = frozenset(arrow_csv.ConvertOptions().null_values)


def lines_of(stream: Iterable[str], delimiter: str, rows: Collection[int]) -> list[int]:
    """The line on which each of `rows` begins; row 0 follows the header."""
    found: dict[int, int] = {}
    for row, (line, _) in enumerate(_records(stream, delimiter), start=-1):
        if row in rows:
            found[row] = line
        if len(found) == len(set(rows)):
            break
    return [found[row] for row in rows]


def first_wrong(stream: Iterable[str], delimiter: str, types: Mapping[str, pa.DataType]) -> str:
    """What is wrong with the first line that has too many fields, too few, or a value that is not of its type."""
    try:
        records = _records(stream, delimiter)
        header = next(records)[1]
        for line, fields in records:
            if len(fields) != len(header):
                return f"line {line} has {len(fields)} fields, and the header has {len(header)}. Repair the line."
            for name, value in zip(header, fields, strict=True):
                if name in types and "\N{REPLACEMENT CHARACTER}" in value:
                    return f"column {name!r} has a letter that is not UTF-8 at line {line}. Save the file as UTF-8."
                if name in types and (wanted := _not_of(types[name], value)):
                    return (
                        f"column {name!r} is read as {wanted}, but line {line} has {value!r}. Repair the value or "
                        f"leave it empty; if the column holds classes, name it in columns.categories too."
                    )
    except (csv.Error, StopIteration):
        pass  # then what pyarrow says has to do
    return ""


def _not_of(kind: pa.DataType, value: str) -> str:
    """What a value should be, where it is not that."""
    for is_kind, form, words in (
        (pa.types.is_floating, NUMBER, "numbers"),
        (pa.types.is_integer, WHOLE, "whole numbers"),
        (pa.types.is_boolean, TRUTH, "truth values"),
    ):
        if is_kind(kind) and value not in EMPTY and not form.fullmatch(value):
            return words
    return ""


def _records(stream: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The line on which each record begins, blank lines left out, and its fields."""
    reader, before = csv.reader(stream, delimiter=delimiter), 0
    for fields in reader:
        if fields:
            yield before + 1, fields
        before = reader.line_num
