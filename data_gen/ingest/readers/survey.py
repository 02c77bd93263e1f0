"""The first pass over a table: its episodes, agents and classes, and what its labels belong to.

R rows of a chunk, U unique keys, E episodes.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from jaxtyping import Int, Int64, Shaped

from data_gen.ingest.readers.ahead import ahead
from data_gen.ingest.readers.chunks import FILE_ROWS, Source, place, read_chunks
from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.values import Names, check_pure, encode, in_order, numbers
from data_gen.trajectory import InputError

MOST_CLASSES = 1000


class Survey(NamedTuple):
    """What is known after one pass. `together`: the rows of each episode are not interrupted by another's.

    Episodes are numbered in the order of their first row; agents and classes are in order. `scopes` has labels that
    are one value a recording, or one an agent; the others belong to frames, to be seen only where rows are in order.
    """

    rows: int
    episodes: tuple[str, ...]
    sizes: Int64[np.ndarray, " E"]
    together: bool
    agents: tuple[str, ...]
    groups: tuple[str, ...]
    classes: Mapping[str, tuple[str, ...]]
    scopes: Mapping[str, str]


class Keyed(NamedTuple):
    """The keys of rows: which of the `unique` ones each row has, and the first row of each."""

    index: Int[np.ndarray, " R"]
    unique: Int[np.ndarray, " U"]
    at: Int64[np.ndarray, " U"]


def keyed(keys: Int[np.ndarray, " R"]) -> Keyed:
    """The keys of a chunk's rows."""
    index, unique = pd.factorize(keys)
    at = np.empty(len(unique), np.int64)
    at[index[::-1]] = np.arange(len(keys))[::-1]  # backwards, so that the first row is what stays
    return Keyed(index, np.asarray(unique), at)


class Constants(NamedTuple):
    """The value that each key had first and its row, and two rows, once there are such, that differ."""

    values: dict[int, tuple[int, int]]
    broken: list[tuple[int, int]]


def add(constants: Constants, keys: Keyed, values: Int[np.ndarray, " R"], first: int) -> None:
    """Compare with what the keys had before."""
    had = [
        constants.values.setdefault(key, (value, first + row))
        for key, value, row in zip(keys.unique.tolist(), values[keys.at].tolist(), keys.at.tolist(), strict=True)
    ]
    wrong = np.flatnonzero(np.array([value for value, _ in had])[keys.index] != values)
    if len(wrong):
        constants.broken.append((had[keys.index[wrong[0]]][1], first + int(wrong[0])))
        constants.values.clear()


class Neighbours(NamedTuple):
    """The last row of the chunk before, labels that differ within a frame, and whether a row was out of order."""

    last: dict[str, np.ndarray]
    vary: set[str]
    unsorted: list[bool]


def compare(order: Neighbours, columns: Mapping[str, Shaped[np.ndarray, " R"]]) -> None:
    """Compare each row with the one before: `columns` has "episode", "time" and labels.

    Where each episode's rows are together and none is out of order, the rows of a frame are neighbours.
    """
    joined = {name: np.concatenate([order.last.get(name, own[:0]), own]) for name, own in columns.items()}
    order.last.update({name: own[-1:] for name, own in columns.items()})
    episode, time = joined.pop("episode"), joined.pop("time")
    within = episode[1:] == episode[:-1]
    if (within & ~(time[1:] >= time[:-1])).any():
        order.unsorted.append(True)
    frame = within & (time[1:] == time[:-1])
    order.vary.update(name for name, value in joined.items() if ((value[1:] != value[:-1]) & frame).any())


class _Pass(NamedTuple):
    """What the first pass gathers. Labels are compared within each episode, and each agent of an episode."""

    names: dict[str, Names]
    sizes: list[Int64[np.ndarray, " _"]]
    runs: list[int]
    groups: Constants
    by_episode: dict[str, Constants]
    by_agent: dict[str, Constants]
    order: Neighbours


def survey(source: Source, columns: Columns, types: Mapping[str, pa.DataType], classes: tuple[str, ...]) -> Survey:
    """Read the columns of names once. `classes` are the columns of classes.

    Raises InputError where a file has no row, a name is missing, an episode is in two files, a group changes within an
    episode, or a column has too many classes or text among numbers.
    """
    keys = [name for name in (columns.episode, columns.agent, columns.group) if name]
    wanted = list(dict.fromkeys([columns.time, *keys, *classes, *columns.labels]))
    found = _Pass(
        names={name: Names({}, []) for name in [*keys, *classes]},
        sizes=[],
        runs=[],
        groups=Constants({}, []),
        by_episode={name: Constants({}, []) for name in columns.labels},
        by_agent={name: Constants({}, []) for name in columns.labels},
        order=Neighbours({}, set(), []),
    )
    for first, chunk in ahead(read_chunks(source, {name: types[name] for name in wanted})):
        _take(source, columns, found, first, chunk)
    return _result(source, columns, found, classes)


def _take(source: Source, columns: Columns, found: _Pass, first: int, chunk: pa.RecordBatch) -> None:
    """Gather what a chunk says."""
    coded = {name: encode(names, chunk.column(name), first) for name, names in found.names.items()}
    for name in (columns.episode, columns.agent, columns.group):
        if name:
            _check_all_named(source, name, coded[name], found.names[name], first)
    for name, names in found.names.items():
        if name not in (columns.episode, columns.agent, columns.group):
            _check_few(source, columns, name, names)
    nothing = np.zeros(chunk.num_rows, np.int32)
    episode, agent = coded.get(columns.episode, nothing + first // FILE_ROWS), coded.get(columns.agent, nothing)
    if columns.episode and len(source.files) > 1:
        _check_one_file(source, episode, found.names[columns.episode], first)
    found.sizes.append(np.bincount(episode))
    found.runs.append(int((np.diff(episode, prepend=found.order.last.get("episode", [-1])) != 0).sum()))
    if columns.group:
        add(found.groups, keyed(episode), coded[columns.group], first)
        if found.groups.broken:
            raise InputError(
                f"{source.path}: column {columns.group!r} differs within an episode, at "
                f"{place(source, *found.groups.broken[0])}. A group is what the data are split by: an episode has one."
            )
    pair = episode.astype(np.int64) << 32 | agent
    labels = {
        name: coded[name] if name in coded else _bits(numbers(source, name, chunk.column(name), first))
        for name in columns.labels
    }
    for keys, constants in ((episode, found.by_episode), (pair, found.by_agent)):
        still = [name for name in labels if not constants[name].broken]  # once two rows differed, no more is asked
        if still:
            of = keyed(keys)
            for name in still:
                add(constants[name], of, labels[name], first)
    time = numbers(source, columns.time, chunk.column(columns.time), first)
    compare(found.order, {**labels, "episode": episode, "time": time})


def _result(source: Source, columns: Columns, found: _Pass, classes: tuple[str, ...]) -> Survey:
    for name in classes:
        if not found.names[name].codes:
            raise InputError(f"{source.path}: column {name!r} is empty in every row. Leave it out.")
        if name not in columns.categories:
            check_pure(source, name, found.names[name])
    sizes = np.zeros(max(len(part) for part in found.sizes), np.int64)
    for part in found.sizes:
        sizes[: len(part)] += part
    episodes = tuple(found.names[columns.episode].codes) if columns.episode else tuple(source.names())
    if columns.group:
        names = list(found.names[columns.group].codes)
        groups = tuple(names[found.groups.values[number][0]] for number in range(len(episodes)))
    else:
        groups = episodes
    together = sum(found.runs) == len(episodes)
    scopes = {}
    for name in columns.labels:
        if not found.by_episode[name].broken:
            scopes[name] = "recording"
        elif not found.by_agent[name].broken:
            scopes[name] = "agent"
        elif together and not found.order.unsorted:
            scopes[name] = "frame and agent" if name in found.order.vary else "frame"
    return Survey(
        rows=int(sizes.sum()),
        episodes=episodes,
        sizes=sizes,
        together=together,
        agents=in_order(found.names[columns.agent]) if columns.agent else ("agent",),
        groups=groups,
        classes={name: in_order(found.names[name]) for name in classes},
        scopes=scopes,
    )


def _check_all_named(source: Source, name: str, codes: Int[np.ndarray, " R"], names: Names, first: int) -> None:
    wrong = np.flatnonzero((codes < 0) | (codes == names.codes.get("", -1)))
    if len(wrong):
        raise InputError(
            f"{source.path}: column {name!r} is empty at {place(source, first + int(wrong[0]))}; every row needs it. "
            f"Fill it in, or remove the row."
        )


def _check_one_file(source: Source, codes: Int[np.ndarray, " R"], names: Names, first: int) -> None:
    began = np.array(names.rows)[codes]
    wrong = np.flatnonzero(began // FILE_ROWS != first // FILE_ROWS)
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{source.path}: episode {list(names.codes)[codes[row]]!r} is at {place(source, first + row)} and at "
            f"{place(source, int(began[row]))}. An episode is in one file: leave columns.episode out where each file "
            f"is one, give them names of their own, or join the files."
        )


def _check_few(source: Source, columns: Columns, name: str, names: Names) -> None:
    if len(names.codes) > MOST_CLASSES:
        if name not in columns.categories:
            check_pure(source, name, names)
        raise InputError(
            f"{source.path}: column {name!r} has more than {MOST_CLASSES} classes, the last of them "
            f"{list(names.codes)[-1]!r} at {place(source, names.rows[-1])}. If it is a quantity, store it as a number "
            f"and name it in columns.numbers where it is whole; otherwise leave it out."
        )


def _bits(values: np.ndarray) -> Int64[np.ndarray, " R"]:
    """Floats as integers that are equal where they are, one for every NaN."""
    return np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
