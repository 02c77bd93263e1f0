"""Records of a table, episode after episode, whatever their order in the file and however many there are. R rows."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from jaxtyping import Int64, Shaped

BUCKET_BYTES = 2**28
MOST_BUCKETS = 500


def in_turn(chunks: Iterator[Shaped[np.ndarray, " _"]]) -> Iterator[Shaped[np.ndarray, " R"]]:
    """Episodes whose rows are not interrupted by another's, as they end."""
    parts: list[np.ndarray] = []
    for chunk in chunks:
        for part in _runs(chunk):
            if parts and parts[0]["episode"][0] != part["episode"][0]:
                yield np.concatenate(parts)
                parts = []
            parts.append(part)
    if parts:
        yield np.concatenate(parts)


def set_aside(
    chunks: Iterator[Shaped[np.ndarray, " _"]], sizes: Int64[np.ndarray, " E"], dtype: np.dtype, folder: Path | None
) -> Iterator[Shaped[np.ndarray, " R"]]:
    """Episodes whose rows are mixed, in the order of their numbers: sorted into files of whole episodes first.

    `sizes` are their numbers of rows. The files lie in a folder of `folder` (None: the system's for temporary files)
    that is removed at the end; together they are as large as the records.
    """
    bucket = bucket_of(sizes, dtype.itemsize)
    work = Path(tempfile.mkdtemp(dir=folder, prefix="rows-"))
    try:
        files = [work / f"{number}.bin" for number in range(bucket[-1] + 1)]
        with ExitStack() as stack:
            streams = [stack.enter_context(file.open("wb")) for file in files]
            for chunk in chunks:
                to = bucket[chunk["episode"]]
                for number in np.unique(to):
                    chunk[to == number].tofile(streams[number])
        for file in files:
            rows = np.fromfile(file, dtype)
            file.unlink()
            yield from _runs(rows[np.argsort(rows["episode"], kind="stable")])
    finally:
        shutil.rmtree(work)


def bucket_of(sizes: Int64[np.ndarray, " E"], row_bytes: int) -> Int64[np.ndarray, " E"]:
    """The file of each episode: in order, BUCKET_BYTES a file, or more where there would be over MOST_BUCKETS."""
    room = max(BUCKET_BYTES, -(-int(sizes.sum()) * row_bytes // MOST_BUCKETS)) // row_bytes
    start = (np.cumsum(sizes) - sizes) // max(1, room)
    return np.unique(start, return_inverse=True)[1].astype(np.int64)


def _runs(rows: Shaped[np.ndarray, " _"]) -> list[np.ndarray]:
    return np.split(rows, np.flatnonzero(np.diff(rows["episode"])) + 1)
