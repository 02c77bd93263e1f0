"""Tidy tables, CSV or Parquet: a row is one agent at one time.

Letters: R rows of an episode, T frames, N agents, P body parts, D axes, F features, A action dimensions, K classes.
"""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Shaped

from data_gen.ingest.readers.ahead import ahead
from data_gen.ingest.readers.buckets import in_turn, set_aside
from data_gen.ingest.readers.chunks import FILE_ROWS, check_there, is_time_stamp, open_source
from data_gen.ingest.readers.columns import Columns, asked, position_names
from data_gen.ingest.readers.grid import Grid, agents_of, grid_of
from data_gen.ingest.readers.kinds import class_columns, kinds, read_as, settle
from data_gen.ingest.readers.origin import origin_of
from data_gen.ingest.readers.rows import alike, by_time, fields_of, read_rows, unique_rows
from data_gen.ingest.readers.survey import survey
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec, InputError

BODY = "body"


class TableReader:
    """A CSV or Parquet file, read in chunks: of what is larger than memory it holds one recording, or one bucket.

    Opening reads the columns of names once, for episodes, agents and classes; where labels belong to frames and rows
    are not in order, all columns once more. Rows may be in any order; where episodes are mixed they are sorted on disk,
    in `folder`. Rows of an episode are sorted by time and agent. Rows that repeat another one are left out and counted
    in `dropped`. Raises InputError, with file and row, for what the columns cannot be.
    """

    def __init__(self, path: Path, columns: Columns, folder: Path | None = None):
        source = open_source(path)
        check_there(source, asked(columns))
        self._source, self._columns, self._folder = settle(source, columns), columns, folder
        self._classes = class_columns(self._source, columns)
        self._types = read_as(self._source, columns, self._classes)
        self._origin = origin_of(self._source, columns, self._types)
        self._fields = fields_of(columns, self._classes, self._origin)
        self._survey = survey(self._source, columns, self._types, self._classes)
        self._scopes = {**self._survey.scopes, **self._frame_scopes()}
        self.layout = self._layout()

    def recordings(self) -> Iterator[Recording]:
        """Episodes in the order of their first row. Raises InputError where two rows of an agent and time differ."""
        return (self._recording(*self._sorted(rows)) for rows in self._episodes())

    def _episodes(self) -> Iterator[Shaped[np.ndarray, " _"]]:
        found = self._survey
        chunks = ahead(read_rows(self._source, self._columns, self._types, found, self._fields))
        return in_turn(chunks) if found.together else set_aside(chunks, found.sizes, self._fields.dtype(), self._folder)

    def _sorted(self, rows: Shaped[np.ndarray, " _"]) -> tuple[Shaped[np.ndarray, " R"], tuple[str, ...]]:
        episode = self._survey.episodes[rows["episode"][0]]
        return unique_rows(by_time(rows), self._source, episode, self._survey.agents)

    def _column(self, rows: Shaped[np.ndarray, " R"], name: str) -> Shaped[np.ndarray, " R"]:
        fields = self._fields
        if name in fields.codes:
            return rows["codes"][:, fields.codes.index(name)]
        return rows["numbers"][:, fields.numbers.index(name)]

    def _frame_scopes(self) -> dict[str, str]:
        """Labels that are neither a recording's nor an agent's: a frame's, or a frame's and agent's."""
        scopes = {name: "frame" for name in self._columns.labels if name not in self._survey.scopes}
        if not scopes:
            return scopes
        for unsorted in self._episodes():
            rows, _ = self._sorted(unsorted)
            same = np.diff(rows["time"]) == 0
            for name in scopes:
                value = self._column(rows, name)
                if not alike(value[1:], value[:-1])[same].all():
                    scopes[name] = "frame and agent"
        return scopes

    def _rate(self) -> tuple[float, str]:
        """Frames a second, and how they are known."""
        columns = self._columns
        if columns.rate:
            return columns.rate, "given"
        if "time" not in columns.units and not is_time_stamp(self._source.types[columns.time]):
            return 0.0, "not known"
        for rows in self._episodes():
            gaps = np.diff(np.unique(rows["time"]))
            if len(gaps):
                return float(f"{1 / np.median(gaps):.6g}"), "measured in the first recording with two times"
        raise InputError(
            f"{self._source.path}: no episode has two times, so the rate cannot be measured. Say it: columns.rate=25."
        )

    def _layout(self) -> Layout:
        columns, found, source = self._columns, self._survey, self._source
        rate, known = self._rate()
        discrete = bool(columns.actions) and columns.actions[0] in self._classes
        actions = found.classes[columns.actions[0]] if discrete else tuple(columns.actions)
        return Layout(
            source="table",
            parts=tuple(columns.parts) if columns.parts else (BODY,) * bool(columns.position),
            axes=tuple(columns.position),
            features=tuple(name for column in columns.features for name in self._feature_names(column)),
            action=ActionSpec("discrete" if discrete else "continuous", len(actions)),
            action_names=actions,
            agents=found.agents if columns.roles else (),
            rate=rate,
            units=dict(columns.units),
            labels=tuple(
                LabelColumn(
                    name=name,
                    scope=self._scopes[name],
                    kind="class" if name in self._classes else "real",
                    classes=found.classes.get(name, ()),
                )
                for name in columns.labels
            ),
            origin=self._origin,
            provenance={
                "file": source.path.name,
                "bytes": sum(file.path.stat().st_size for file in source.files),
                "format": "csv" if source.is_text else "parquet",
                "rows": found.rows,
                "episodes": len(found.episodes),
                "rate": known,
                "read_as": kinds(columns, self._classes),
                "columns": asdict(columns),
            },
        )

    def _feature_names(self, column: str) -> list[str]:
        classes = self._survey.classes.get(column)
        return [column] if classes is None else [f"{column}={name}" for name in classes]

    def _recording(self, rows: Shaped[np.ndarray, " R"], dropped: tuple[str, ...]) -> Recording:
        columns, found = self._columns, self._survey
        number, file = rows["episode"][0], self._source.files[rows["row"][0] // FILE_ROWS].path
        agents = agents_of(rows, columns.agent, f"{file}: episode {found.episodes[number]!r}")
        grid = grid_of(rows, np.arange(len(found.agents)) if columns.roles else agents)
        shape, values = grid.present.shape, self._spread(grid, rows)
        places = [values[name] for name in position_names(columns)]
        features = [part for name in columns.features for part in self._feature(name, values[name])]
        actions = [values[name] for name in columns.actions]
        discrete = self.layout.action.kind == "discrete"
        return Recording(
            name=found.episodes[number],
            group=found.groups[number],
            file=str(file),
            agents=tuple(found.agents[agent] for agent in grid.agents),
            time=grid.time,
            present=grid.present,
            position=_stack(places, shape).reshape(*shape, len(self.layout.parts), len(self.layout.axes)),
            features=_stack(features, shape),
            actions=np.ascontiguousarray(actions[0]) if discrete else _stack(actions, shape),
            rewards=self._rewards(grid, values),
            terminated=self._terminated(rows),
            labels={
                label.name: grid.scoped(self._column(rows, label.name), label.scope) for label in self.layout.labels
            },
            dropped=dropped,
        )

    def _spread(self, grid: Grid, rows: Shaped[np.ndarray, " R"]) -> dict[str, Shaped[np.ndarray, "T N"]]:
        """Every column of values by frames and agents."""
        fields, numbers, codes = self._fields, grid.spread(rows["numbers"]), grid.spread(rows["codes"])
        return {name: numbers[..., k] for k, name in enumerate(fields.numbers)} | {
            name: codes[..., k] for k, name in enumerate(fields.codes)
        }

    def _feature(self, name: str, value: Shaped[np.ndarray, "T N"]) -> list[Float32[np.ndarray, "T N"]]:
        if name not in self._classes:
            return [value]
        known = np.where(value < 0, np.float32(np.nan), np.float32(0))
        return [known + (value == k) for k in range(len(self._survey.classes[name]))]

    def _rewards(self, grid: Grid, values: dict[str, Shaped[np.ndarray, "T N"]]) -> Float32[np.ndarray, "T N"]:
        """0 where an agent is not there, or nothing is said of rewards; NaN where a row has none."""
        if not self._columns.reward:
            return np.zeros(grid.present.shape, np.float32)
        return np.where(grid.present, values[self._columns.reward], np.float32(0))

    def _terminated(self, rows: Shaped[np.ndarray, " R"]) -> bool:
        """True where every row of the last time says so."""
        if not self._columns.terminated:
            return False
        return bool((self._column(rows, self._columns.terminated)[rows["time"] == rows["time"][-1]] == 1).all())


def _stack(parts: list[np.ndarray], shape: tuple[int, ...]) -> Float32[np.ndarray, "T N _"]:
    return np.stack(parts, -1) if parts else np.zeros((*shape, 0), np.float32)
