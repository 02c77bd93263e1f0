"""The formats that can be read, by name: where the reader is, and what it wants to be told."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, NamedTuple

from data_gen.ingest.recording import Reader
from data_gen.trajectory import InputError


class Format(NamedTuple):
    """`module` holds a dataclass `settings` and `opens`, which makes a reader.

    `opens` takes a path and settings, or, where the settings hold the `path`, those alone. They are names, so that a
    package that one format needs is asked for only where that format is.
    """

    module: str
    settings: str
    opens: str


@dataclass
class Archive:
    """`rate` is in steps a second, 0 where it is not known."""

    rate: float = 0.0


def open_archive(path: Path, settings: Archive) -> Reader:
    """An .npz archive."""
    from data_gen.ingest.readers.archive import ArchiveReader

    return ArchiveReader(path, settings.rate)


BELOW = "data_gen.ingest.readers"
READERS = {
    "table": Format(f"{BELOW}.table", "Columns", "TableReader"),
    "archive": Format(__name__, "Archive", "open_archive"),
    "vault": Format(f"{BELOW}.vault", "Vault", "open_vault"),
    "minari": Format(f"{BELOW}.minari", "Minari", "open_minari"),
    "mabe": Format(f"{BELOW}.mabe", "MABe", "MABeReader"),
    "calms21": Format(f"{BELOW}.calms21", "CalMS21", "CalMS21Reader"),
    "deeplabcut": Format(f"{BELOW}.deeplabcut", "Scored", "DeepLabCutReader"),
    "sleap": Format(f"{BELOW}.sleap", "Scored", "SleapReader"),
    "idtracker": Format(f"{BELOW}.idtracker", "IdTracker", "IdTrackerReader"),
}


def settings_of(name: str) -> type | None:
    """The dataclass of a format's settings; None where a package that it needs is not installed."""
    try:
        return _part(name, READERS[name].settings)
    except ImportError:
        return None


def open_source(name: str, path: str, settings: Any) -> Reader:
    """The source, opened. Raises InputError where there is no such format or path, or a package is missing."""
    if name not in READERS:
        raise InputError(f"source={name!r}; the formats are {', '.join(READERS)}.")
    where = Path(path).expanduser()
    if not path or not (where.exists() or glob(str(where), recursive=True)):
        raise InputError(f"path={path!r} does not exist. Name the file or folder that holds the {name} data.")
    try:
        opens: Callable[..., Reader] = _part(name, READERS[name].opens)
    except ImportError as error:
        raise InputError(
            f"source={name} needs the package {error.name}, which is not installed: pip install {error.name}."
        ) from None
    if "path" in type(settings).__dataclass_fields__:
        return opens(settings)
    return opens(where, settings)


def _part(name: str, part: str) -> Any:
    return getattr(importlib.import_module(READERS[name].module), part)
