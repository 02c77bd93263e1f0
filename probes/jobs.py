"""Calls over the cores, and results kept on disk by content, so that a repeat computes only what changed."""

import hashlib
import os
import pickle
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import joblib
import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed

K = TypeVar("K", bound=Hashable)
CHECKSUM = 16  # bytes


def silent(done: int, total: int) -> None:
    """Progress for nobody."""


def call_all(
    function: Callable[..., Any],
    calls: dict[K, tuple[Any, ...]],
    *,
    jobs: int,
    folder: Path | None,
    progress: Callable[[int, int], None] = silent,
) -> dict[K, Any]:
    """function(*arguments) for each call, in parallel processes and in the calls' order; `jobs` 0 is every core.

    Results are read from `folder` where they are there, and written to it as they come, so that a killed run loses
    only what it was at.
    """
    names = {key: content_name(function, arguments) for key, arguments in calls.items()} if folder else {}
    results = {key: found[0] for key, name in names.items() if folder and (found := read(folder / name))}
    missing = [key for key in calls if key not in results]
    for i in range(len(results)):
        progress(i + 1, len(calls))
    # Arrays are sent, not memory-mapped: they are small, and a mapped folder outlives a killed run.
    parallel = Parallel(n_jobs=jobs or -1, return_as="generator", max_nbytes=None)
    outcomes = cast(Iterator[Any], parallel(delayed(function)(*calls[key]) for key in missing))
    for key, result in zip(missing, outcomes, strict=True):
        results[key] = result
        if folder:
            write(folder / names[key], result)
        progress(len(results), len(calls))
    return results


def content_name(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """A file name that is another one where the arguments, or any source file of the probe table, differ.

    joblib.Memory would do the same, but empties its whole store when two processes start on a new one at once.
    """
    return f"{function.__name__}-{joblib.hash((_source(), function.__name__, arguments))}.pkl"


@cache
def _source() -> str:
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.glob("table/*.py")])
    return str(
        joblib.hash(
            ([(file.name, file.read_bytes()) for file in files], np.__version__, scipy.__version__, sklearn.__version__)
        )
    )


def read(path: Path) -> tuple[Any] | None:
    """A kept result in a tuple of one; None where there is none that is whole and unaltered."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    told, result = content[:CHECKSUM], content[CHECKSUM:]
    return (pickle.loads(result),) if told == checksum(result) else None


def checksum(content: bytes) -> bytes:
    """What a file begins with, so that a flipped bit is not read as a result."""
    return hashlib.blake2b(content, digest_size=CHECKSUM).digest()


def write(path: Path, result: Any) -> None:
    """Write under another name, then rename, so that a file is whole or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    content = pickle.dumps(result)
    partial.write_bytes(checksum(content) + content)
    partial.replace(path)
