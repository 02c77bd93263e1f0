"""launch.ingest on a table against bare libraries: `python benchmarks/ingest_table.py [rows]`, 10 million if none.

Games of 4 agents and 1,000 frames with two places, four features, a feature of classes, a discrete action, a reward and
labels of a game and of frames, as Parquet and as CSV, made in a temporary folder (10 million rows: 1 GB). Bare is a
read of the whole file, by pandas or by pyarrow, then a zarr write of the arrays that launch.ingest stored, with zarr's
own settings. Reading alone is compared, too. Memory is the peak of a process that does nothing else. The exit code is 1
where launch.ingest has less than 40 % of the bare speed with pandas, or needs more than 4 GiB.
"""

import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import zarr
from pyarrow import csv, parquet

from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader
from data_gen.storage.dataset import shard_path, whole_set
from data_gen.storage.store import read_group

AGENTS, FRAMES, GAMES_AT_ONCE, ROUNDS = 4, 1000, 50, 3
LEAST_SHARE, MOST_MEMORY = 0.4, 4.0
FEATURES = ["a", "b", "c", "d"]
NAMED = {
    "episode": "game",
    "time": "frame",
    "agent": "who",
    "position": ["x", "y"],
    "features": [*FEATURES, "holding"],
    "actions": ["action"],
    "reward": "gain",
    "labels": ["map", "phase"],
    "rate": 25.0,
}


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


def write_tables(paths: list[Path], rows: int) -> None:
    """The same rows into all files, Parquet or CSV by their names."""
    schema, n_games = games(0, 1).schema, -(-rows // (FRAMES * AGENTS))
    with ExitStack() as stack:
        kinds = {".parquet": parquet.ParquetWriter, ".csv": csv.CSVWriter}
        writers = [stack.enter_context(kinds[path.suffix](path, schema)) for path in paths]
        for first in range(0, n_games, GAMES_AT_ONCE):
            part = games(first, min(GAMES_AT_ONCE, n_games - first))
            for writer in writers:
                writer.write_table(part)


def pyarrow_read(path: Path, work: Path) -> float:
    """Seconds that pyarrow takes to read the file into its columns."""
    start = time.perf_counter()
    parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    return time.perf_counter() - start


def pandas_read(path: Path, work: Path) -> float:
    """Seconds that pandas takes to read the file into a frame."""
    start = time.perf_counter()
    pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return time.perf_counter() - start


def reading(path: Path, work: Path) -> float:
    """Seconds that TableReader takes to make recordings of all rows."""
    start = time.perf_counter()
    sum(int(one.present.sum()) for one in TableReader(path, Columns(**NAMED)).recordings())
    return time.perf_counter() - start


def whole(path: Path, work: Path) -> float:
    """Seconds of launch.ingest, Python's start among them, whose data set stays in the work folder."""
    columns = [f"columns.{name}={value}".replace("'", "") for name, value in NAMED.items()]
    command = [sys.executable, "-m", "launch.ingest", "source=table", f"path={path}", *columns]
    start = time.perf_counter()
    with (work / "log.txt").open("a") as log:
        subprocess.run([*command, f"runs={work}", f"name={path.suffix[1:]}"], check=True, stdout=log)
    return time.perf_counter() - start


def bare_write(path: Path, work: Path) -> float:
    """Seconds of a zarr write of what `whole` stored."""
    root = work / path.suffix[1:] / "data"
    parts = [read_group(shard_path(root, index))[0] for index in whole_set(root)]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        group = zarr.open_group(folder, mode="w")
        for name, values in arrays.items():
            group.create_array(name, data=values)
        return time.perf_counter() - start


class Spent(NamedTuple):
    """Seconds, and the peak of memory in GiB of a process of its own."""

    seconds: float
    memory: float


def spent(way: Callable[[Path, Path], float], path: Path, work: Path) -> Spent:
    """What a way takes in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_spent, (way, path, work))


def _spent(way: Callable[[Path, Path], float], path: Path, work: Path) -> Spent:
    seconds = way(path, work)
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Spent(seconds, max(peaks) / 2**20)


def compare(path: Path) -> bool:
    """Print the median seconds of all ways, taken in turns; whether launch.ingest is within its bars."""
    ways, rounds = (pyarrow_read, pandas_read, reading, whole, bare_write), []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=path.parent) as work:
            rounds.append([spent(way, path, Path(work)) for way in ways])
    found = np.array(rounds)
    arrow, pandas, ours, both, write = np.median(found[:, :, 0], axis=0)
    memory = found[:, ways.index(whole), 1].max()
    print(f"{path.suffix}: {path.stat().st_size / 2**20:.0f} MiB")
    print(f"  reading: pyarrow {arrow:.1f} s, pandas {pandas:.1f} s, TableReader {ours:.1f} s")
    print(f"  bare zarr write {write:.1f} s; launch.ingest {both:.1f} s, {memory:.2f} GiB")
    for name, read in (("pandas", pandas), ("pyarrow", arrow)):
        print(f"  {(read + write) / both:.0%} of the speed of {name} and zarr")
    return bool((pandas + write) / both >= LEAST_SHARE and memory <= MOST_MEMORY)


def main() -> int:
    """Both kinds of file; 1 where a bar is missed."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("table.parquet", "table.csv")]
        write_tables(paths, int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
        return int(not all([compare(path) for path in paths]))


if __name__ == "__main__":
    sys.exit(main())
