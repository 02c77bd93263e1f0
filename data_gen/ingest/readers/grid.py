"""The frames and agents of an episode, and where its rows lie among them. R rows, T frames, N agents."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped


class Grid(NamedTuple):
    """Where the rows of an episode lie among its times and agents; `agents` are the numbers of its columns."""

    time: Float64[np.ndarray, " T"]
    agents: Int64[np.ndarray, " N"]
    present: Bool[np.ndarray, "T N"]
    at: tuple[Int64[np.ndarray, " R"], Int64[np.ndarray, " R"]]

    def spread(self, values: Shaped[np.ndarray, " R"]) -> Shaped[np.ndarray, "T N"]:
        """A value for each frame and agent: NaN where there is no row, -1 for classes."""
        found = np.full(self.present.shape, -1 if values.dtype.kind == "i" else np.nan, values.dtype)
        found[self.at] = values
        return found

    def scoped(self, values: Shaped[np.ndarray, " R"], scope: str) -> Shaped[np.ndarray, "..."]:
        """A label in the shape of its scope."""
        if scope == "recording":
            return values[:1].reshape(())
        if scope == "frame":
            return values[np.unique(self.at[0], return_index=True)[1]]
        spread = self.spread(values)
        if scope == "agent":
            return spread[self.present.argmax(0), np.arange(len(self.agents))]
        return spread


def grid_of(rows: Shaped[np.ndarray, " R"], n_roles: int) -> Grid:
    """The frames and agents of an episode's rows, which are in order; all `n_roles` agents where they are roles."""
    new = np.diff(rows["time"], prepend=-np.inf) > 0
    time, frame = rows["time"][new], np.cumsum(new) - 1
    agents = np.arange(n_roles) if n_roles else np.unique(rows["agent"]).astype(np.int64)
    at = (frame, np.searchsorted(agents, rows["agent"]).astype(np.int64))
    present = np.zeros((len(time), len(agents)), bool)
    present[at] = True
    return Grid(time=time, agents=agents, present=present, at=at)
