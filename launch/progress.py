"""Progress of long work: a bar with the time left on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_A_LINE = 15.0
LEAST_SHARE = 0.01  # of all work, before the time left is told: what comes first also compiles


class Tell:
    """Called with the share done, from 0 to 1, and a few words."""

    def __init__(self, title: str, bar: Progress | None):
        self._title, self._bar, self._start, self._last = title, bar, time.monotonic(), time.monotonic()
        self._first = None
        self._task = bar.add_task(title, total=1.0, words="") if bar else None

    def __call__(self, share: float, words: str = "") -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=share, words=words)
            return
        now = time.monotonic()
        if self._first is None or share == 0:
            self._first = (now, share)  # what came before is compilation, or no part of the work that is shared out
        if now - self._last < SECONDS_A_LINE:
            return
        self._last = now
        print(f"{self._title} {share:4.0%}  {now - self._start:.0f} s{self._left(now, share)}  {words}", flush=True)

    def _left(self, now: float, share: float) -> str:
        began, done = self._first or (now, share)
        return f", {(now - began) / (share - done) * (1 - share):.0f} s left" if share >= done + LEAST_SHARE else ""


@contextmanager
def progress(title: str) -> Iterator[Tell]:
    """Show one stage's progress, and at its end how long it took."""
    console = Console()
    start = time.monotonic()
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            yield Tell(title, bar)
    else:
        yield Tell(title, None)
    print(f"{title}: {time.monotonic() - start:.0f} s", flush=True)
