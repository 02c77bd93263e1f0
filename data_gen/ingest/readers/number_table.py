"""Numbers in columns of text, read strictly: a cell that is no number has a message, and so has a line that is cut.

Letters: R rows, C columns.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from jaxtyping import Float64

from data_gen.trajectory import InputError

MISSING = ["", "NaN", "nan", "NAN", "NA"]


def read_lines(file: Path, number: int) -> list[str]:
    """The first lines of a text file, fewer where it has fewer. Raises InputError where it is no text."""
    try:
        with file.open(encoding="utf-8-sig") as stream:
            lines = [stream.readline() for _ in range(number)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text ({error}).") from None
    return [line.rstrip("\r\n") for line in lines if line]


def read_numbers(
    file: Path, columns: list[str], skip: int, separator: str
) -> tuple[Float64[np.ndarray, "R C"], tuple[str, ...]]:
    """The rows below the first `skip` lines, and what is to be told.

    The writers of these formats end every line, so that a last one without an end was cut within a number and is left
    out. Raises InputError for a cell that is no number and for a row of another length.
    """
    content, told = file.read_bytes(), ()
    if not content.endswith(b"\n"):
        cut = content.rfind(b"\n") + 1
        told = (
            f"the last line, {content[cut : cut + 40].decode(errors='replace')!r}, has no end and is left out as cut",
        )
        content = content[:cut]
    names = [str(number) for number in range(len(columns))]  # names may repeat, numbers do not
    try:
        table = pc.read_csv(
            pa.BufferReader(content),
            read_options=pc.ReadOptions(column_names=names, skip_rows=skip, use_threads=False),
            parse_options=pc.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=pc.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64()), null_values=MISSING, strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError(f"{file}: {_placed(str(error), columns, skip)}") from None
    rows = np.empty((table.num_rows, len(columns)))
    for number, column in enumerate(table.columns):
        rows[:, number] = column.to_numpy(zero_copy_only=False)
    return rows, told


def _placed(message: str, columns: list[str], skip: int) -> str:
    """pyarrow's message with the name of the column and the line of the file."""
    if message.startswith(("Empty CSV", "Could not skip")):
        return "there is no row below the header: nothing was tracked. Leave the file out, or track it again."
    message = re.sub(r"^(CSV parse error|In CSV column): ?", "", message)
    message = re.sub(r"Row #(\d+)", lambda found: f"line {found[1]}", message)
    message = re.sub(r"column #(\d+)", lambda found: f"column {columns[int(found[1])]}", message)
    return f"{message}. Every cell below line {skip} must be a number or NaN."
