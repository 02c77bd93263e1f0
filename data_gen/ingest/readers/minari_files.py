"""The episodes of a Minari data set as its files hold them: HDF5, Arrow or Parquet. T steps."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import h5py
import numpy as np
import pyarrow.dataset as datasets

from data_gen.spaces import BOX, CHOICE, DICT, Space
from data_gen.trajectory import InputError

FLAGS = ("terminations", "truncations")
SERIES = ("rewards", *FLAGS)
MAIN = "main_data.hdf5"


class Raw(NamedTuple):
    """An episode: T+1 observations, and T of everything else. `file` names it in messages."""

    file: str
    observations: Any
    actions: Any
    series: dict[str, np.ndarray]


class Files(NamedTuple):
    """The episodes by number with how many steps each has, and what reads one given both spaces."""

    steps: dict[int, int]
    read: Callable[[int, Space, Space], Raw]


def open_files(folder: Path, form: str, total: int) -> Files:
    """Count the steps of all episodes. Raises InputError where a file is damaged, or there are not `total` episodes."""
    if form not in ("hdf5", "arrow", "parquet"):
        raise InputError(f"{folder / 'metadata.json'}: data_format {form!r} is not hdf5, arrow or parquet.")
    found = _open_hdf5(folder / MAIN) if form == "hdf5" else _open_arrow(folder, form)
    if len(found.steps) != total:
        raise InputError(
            f"{folder} holds {len(found.steps)} episodes, but its metadata.json says {total}. Get the data set again."
        )
    return found


def read_metadata(folder: Path) -> dict[str, Any]:
    """metadata.json. Raises InputError where it is not that of a data set with its spaces."""
    file = folder / "metadata.json"
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} has no metadata.json, so it is no Minari data set. Check the path.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}). Get the data set again.") from None
    for key in ("observation_space", "action_space", "data_format", "total_episodes"):
        if not isinstance(found, dict) or key not in found:
            raise InputError(f"{file} has no {key}. Open the data set with Minari and save it anew.")
    return found


@contextmanager
def _damage(where: str) -> Iterator[None]:
    """Errors of HDF5 and Arrow as InputError."""
    try:
        yield
    except InputError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        told = " ".join(str(error).split())
        raise InputError(f"{where} is damaged ({type(error).__name__}: {told}). Get the data set again.") from None


def _open_hdf5(file: Path) -> Files:
    if not file.is_file():
        raise InputError(f"{file} is missing. Get the data set again.")
    steps = {}
    with _damage(str(file)), h5py.File(file, "r") as store:
        numbers = sorted(int(match[1]) for name in store if (match := re.fullmatch(r"episode_(\d+)", str(name))))
        for number in numbers:
            with _damage(f"{file}/episode_{number}/rewards"):
                steps[number] = len(cast(h5py.Dataset, store[f"episode_{number}/rewards"]))

    def read(number: int, seen: Space, done: Space) -> Raw:
        where = f"{file}/episode_{number}"
        with _damage(where), h5py.File(file, "r") as store:
            group = store[f"episode_{number}"]
            return Raw(
                where,
                _of_hdf5(group, "observations", seen, where),
                _of_hdf5(group, "actions", done, where),
                {name: _of_hdf5(group, name, Space(BOX), where) for name in SERIES},
            )

    return Files(steps, read)


def _of_hdf5(group: Any, name: str, space: Space, where: str) -> Any:
    with _damage(f"{where}/{name}"):
        node = group[name]
        if space.kind in (BOX, CHOICE) or space.packed:
            return np.asarray(node[()])
        names = {key: key if space.kind == DICT else f"_index_{key}" for key in space.parts}
        found = {key: _of_hdf5(node, names[key], part, f"{where}/{name}") for key, part in space.parts.items()}
        return found if space.kind == DICT else list(found.values())


def _open_arrow(folder: Path, form: str) -> Files:

    def opened(number: int) -> Any:
        return datasets.dataset(str(folder / str(number)), format=form, ignore_prefixes=["_", ".", "metadata.json"])

    steps = {}
    for number in sorted(int(entry.name) for entry in folder.iterdir() if entry.is_dir() and entry.name.isdigit()):
        with _damage(str(folder / str(number))):
            steps[number] = opened(number).count_rows() - 1
            if steps[number] < 0:
                raise InputError(f"{folder / str(number)} holds no row of a file of {form}. Get the data set again.")

    def read(number: int, seen: Space, done: Space) -> Raw:
        where = str(folder / str(number))
        with _damage(where):
            table = opened(number).to_table(columns=["observations", "actions", *SERIES])
            rows = table.combine_chunks().to_batches()
            columns = {name: rows[0].column(name) for name in table.column_names}
            last = len(columns["rewards"]) - 1  # the last row has an observation; the rest of it is padding
            return Raw(
                where,
                _of_arrow(columns["observations"], seen, f"{where}/observations"),
                _of_arrow(columns["actions"][:last], done, f"{where}/actions"),
                {name: _of_arrow(columns[name][:last], Space(BOX), f"{where}/{name}") for name in SERIES},
            )

    return Files(steps, read)


def _of_arrow(column: Any, space: Space, where: str) -> Any:
    with _damage(where):
        if space.kind not in (BOX, CHOICE) and not space.packed:
            parts = {key: _of_arrow(column.field(key), part, f"{where}/{key}") for key, part in space.parts.items()}
            return parts if space.kind == DICT else list(parts.values())
        if column.null_count:
            raise InputError(f"{where} has {column.null_count} empty value(s). Get the data set again.")
        if column.type.num_fields == 0:
            return np.asarray(column.to_numpy(zero_copy_only=False))
        shape = (len(space.parts),) if space.packed else space.shape
        return np.asarray(column.flatten().to_numpy(zero_copy_only=False)).reshape(len(column), *shape)
