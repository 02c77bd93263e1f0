"""Tables of a run's folder, read back."""

from pathlib import Path

import pandas as pd

from data_gen.trajectory import InputError


def parsed(path: Path, again: str) -> pd.DataFrame:
    """A CSV; InputError where it is missing or is none. `again` says what writes it anew."""
    try:
        return pd.read_csv(path)
    except FileNotFoundError:
        raise InputError(f"{path} is missing. {again}") from None
    except (pd.errors.EmptyDataError, pd.errors.ParserError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged ({error}). {again}") from None


def read_table(path: Path, again: str) -> pd.DataFrame:
    """A CSV that has at least one row wherever it is whole; InputError as `parsed`, and where it has none."""
    table = parsed(path, again)
    if table.empty:
        raise InputError(f"{path} is damaged (it has a head and no row). {again}")
    return table
