"""Finished episodes, on disk until all are there: how many there will be, and how long, is known at the end only."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data_gen.collecting.episode import Played

FIELDS = ("obs", "actions", "mask", "rewards")


class Entry(NamedTuple):
    """What is kept in memory of an episode."""

    group: int
    checkpoint: int
    steps: int
    terminated: bool
    labels: dict[str, Any]


class Spool:
    """Episodes in the order in which they came, a file each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.entries: list[Entry] = []
        self._counts: Counter[tuple[int, int]] = Counter()

    def add(self, played: Played, group: int, checkpoint: int, labels: dict[str, Any]) -> None:
        np.savez(self._file(len(self.entries)), **{name: getattr(played, name) for name in FIELDS})
        self.entries.append(Entry(group, checkpoint, len(played.mask), played.terminated, labels))
        self._counts[group, checkpoint] += 1

    def read(self, number: int) -> dict[str, np.ndarray]:
        with np.load(self._file(number)) as file:
            return {name: file[name] for name in FIELDS}

    def cut(self, length: int) -> None:
        """Forget the episodes from `length` on."""
        del self.entries[length:]
        self._counts = Counter((entry.group, entry.checkpoint) for entry in self.entries)
        for file in self.folder.glob("*.npz"):
            if int(file.stem) >= length:
                file.unlink()

    def count(self, group: int, checkpoint: int) -> int:
        """How many episodes of a group and checkpoint are there."""
        return self._counts[group, checkpoint]

    def _file(self, number: int) -> Path:
        return self.folder / f"{number}.npz"
