"""The frames and agents of an episode, and where its rows lie among them. R rows, T frames, N agents."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from data_gen.trajectory import InputError

MOST_AGENTS = 1000
MOST_ONCE = 10  # more that are each there once, at different times, are no agents


class Grid(NamedTuple):
    """Where the rows of an episode lie among its times and agents: `agents` are the numbers of its columns, `first` the
    first row of each time."""

    time: Float64[np.ndarray, " T"]
    agents: Int64[np.ndarray, " N"]
    present: Bool[np.ndarray, "T N"]
    at: tuple[Int64[np.ndarray, " R"], Int64[np.ndarray, " R"]]
    first: Int64[np.ndarray, " T"]

    def spread(self, values: Shaped[np.ndarray, "R ..."]) -> Shaped[np.ndarray, "T N ..."]:
        """A value for each frame and agent: NaN where there is no row, -1 for classes."""
        if len(values) == self.present.size:
            return np.ascontiguousarray(values).reshape(*self.present.shape, *values.shape[1:])
        unknown = -1 if values.dtype.kind == "i" else np.nan
        found = np.full((*self.present.shape, *values.shape[1:]), unknown, values.dtype)
        found[self.at] = values
        return found

    def scoped(self, values: Shaped[np.ndarray, " R"], scope: str) -> Shaped[np.ndarray, "..."]:
        """A label in the shape of its scope."""
        if scope == "recording":
            return values[:1].reshape(())
        if scope == "frame":
            return values[self.first]
        spread = self.spread(values)
        if scope == "agent":
            return spread[self.present.argmax(0), np.arange(len(self.agents))]
        return spread


def agents_of(rows: Shaped[np.ndarray, " R"], column: str, where: str) -> Int64[np.ndarray, " N"]:
    """The numbers of an episode's agents. Raises InputError where the column cannot be that of agents."""
    agents, counts = np.unique(rows["agent"], return_counts=True)
    once = len(agents) > MOST_ONCE and (counts == 1).all() and np.ptp(rows["time"]) > 0
    if len(agents) > MOST_AGENTS or once:
        raise InputError(
            f"{where}: column {column!r}, which columns.agent names, tells {len(agents):,} agents apart in "
            f"{len(rows):,} rows. At most {MOST_AGENTS:,} can be in one recording, and an agent keeps its name from "
            f"row to row: name the column that says who it is, or cut the recording into episodes of fewer agents."
        )
    return agents.astype(np.int64)


def grid_of(rows: Shaped[np.ndarray, " R"], agents: Int64[np.ndarray, " N"]) -> Grid:
    """The frames of an episode's rows, which are in order, and where the rows lie among them and the agents."""
    stamps = np.ascontiguousarray(rows["time"])
    new = np.append(True, stamps[1:] > stamps[:-1])
    time, frame = stamps[new], np.cumsum(new) - 1
    at = (frame, np.searchsorted(agents, rows["agent"]).astype(np.int64))
    present = np.zeros((len(time), len(agents)), bool)
    present[at] = True
    return Grid(time=time, agents=agents, present=present, at=at, first=np.flatnonzero(new))
