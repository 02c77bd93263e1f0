"""A table read by TableReader against pyarrow alone: `python benchmarks/ingest_table.py [rows]`, 10 million if none.

Games of 4 agents and 1,000 frames with two places, four features, a feature of classes, a discrete action, a reward and
labels of a game and of frames, as Parquet and as CSV, made in a temporary folder (10 million rows: 1 GB). Bare reading
is pyarrow's of the whole file into columns. Memory is the peak of a process that only reads.
"""

import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader

AGENTS, FRAMES, GAMES_AT_ONCE, ROUNDS = 4, 1000, 50, 3
FEATURES = ["a", "b", "c", "d"]
COLUMNS = Columns(
    episode="game",
    time="frame",
    agent="who",
    position=["x", "y"],
    features=[*FEATURES, "holding"],
    actions=["action"],
    reward="gain",
    labels=["map", "phase"],
    rate=25.0,
)


def games(first: int, count: int) -> pa.Table:
    """Rows of some games."""
    rng, size = np.random.default_rng(first), count * FRAMES * AGENTS
    frame = np.tile(np.repeat(np.arange(FRAMES), AGENTS), count)
    game = np.repeat(np.arange(first, first + count), FRAMES * AGENTS)
    floats = {name: rng.normal(size=size).astype(np.float32).round(4) for name in ("x", "y", *FEATURES, "gain")}
    return pa.table(
        {
            "game": game,
            "frame": frame,
            "who": np.tile(np.arange(AGENTS), count * FRAMES),
            **floats,
            "holding": np.array(["nothing", "dish", "onion"])[rng.integers(0, 3, size)],
            "action": np.array(["stay", "east", "west", "north", "south"])[rng.integers(0, 5, size)],
            "map": np.array(["city", "wood"])[game % 2],
            "phase": np.array(["early", "late"])[frame // 500],
        }
    )


def write_tables(folder: Path, rows: int) -> list[Path]:
    """The same rows as Parquet and as CSV."""
    paths, n_games = [folder / "table.parquet", folder / "table.csv"], -(-rows // (FRAMES * AGENTS))
    schema = games(0, 1).schema
    with parquet.ParquetWriter(paths[0], schema) as one, csv.CSVWriter(paths[1], schema) as two:
        for first in range(0, n_games, GAMES_AT_ONCE):
            part = games(first, min(GAMES_AT_ONCE, n_games - first))
            one.write_table(part)
            two.write_table(part)
    return paths


def bare(path: Path) -> int:
    """Rows that pyarrow reads."""
    return (parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)).num_rows


def ours(path: Path) -> int:
    """Rows that TableReader makes recordings of."""
    return sum(int(one.present.sum()) for one in TableReader(path, COLUMNS).recordings())


# The other half, writing, belongs here: what launch.ingest makes of the file, against a bare zarr write of the same
# arrays after `bare`. The aim is no less than 40 % of the speed of the two together.


def spent(way: Callable[[Path], int], path: Path) -> tuple[float, float, int]:
    """Seconds and the peak of memory in GiB, in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_spent, (way, path))


def _spent(way: Callable[[Path], int], path: Path) -> tuple[float, float, int]:
    start = time.perf_counter()
    rows = way(path)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, rows


def main() -> None:
    """Print the median of both ways, taken in turns, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        for path in write_tables(Path(folder), int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000):
            found = np.array([[spent(way, path) for way in (bare, ours)] for _ in range(ROUNDS)])
            (one, two), memory = np.median(found[:, :, 0], axis=0), found[:, :, 1].max(0)
            print(f"{path.suffix}: {found[0, 1, 2]:,.0f} rows, {path.stat().st_size / 2**20:.0f} MiB")
            print(f"  pyarrow {one:.1f} s, {memory[0]:.2f} GiB; TableReader {two:.1f} s, {memory[1]:.2f} GiB")
            print(f"  {one / two:.0%} of pyarrow's speed")


if __name__ == "__main__":
    main()
