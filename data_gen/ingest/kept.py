"""What the survey's pass made of the recordings, kept where it fits, so that the source is read once and not twice."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from data_gen.ingest.episodes import Episode
from data_gen.ingest.recording import Layout, Reader, Recording

KEPT_BYTES = 2**30

Treat = Callable[[Recording, int], tuple[list[Episode], tuple[str, ...]]]


class _Made(NamedTuple):
    recording: Recording  # without a frame
    n_agents: int
    episodes: list[Episode]
    lines: tuple[str, ...]


class Kept:
    """Keeps all that `treat` makes of a reader's recordings, or nothing once that is more than KEPT_BYTES."""

    def __init__(self, reader: Reader, treat: Treat):
        self.reader, self._treat = reader, treat
        self._made: dict[str, _Made] | None = {}
        self._bytes = 0

    def treat(self, recording: Recording, n_agents: int) -> tuple[list[Episode], tuple[str, ...]]:
        """What `treat` makes of a recording, by the way kept."""
        episodes, lines = self._treat(recording, n_agents)
        self._bytes += sum(values.nbytes for one in episodes for values in (*one[:6], *one.labels.values()))
        if self._bytes > KEPT_BYTES:
            self._made = None
        if self._made is not None:
            self._made[recording.name] = _Made(_without_frames(recording), n_agents, episodes, lines)
        return episodes, lines

    def again(self, n_agents: int) -> tuple[Reader, Treat]:
        """A reader and a treatment for the second pass: of what is kept, or of the source where that was too much, or
        was made for another number of agents."""
        made = self._made
        if made is None or any(one.n_agents != n_agents for one in made.values()):
            return self.reader, self._treat
        recordings = [one.recording for one in made.values()]

        def treat(recording: Recording, n_agents: int) -> tuple[list[Episode], tuple[str, ...]]:
            return made[recording.name].episodes, made[recording.name].lines

        return _Again(self.reader.layout, recordings), treat


class _Again:
    """A reader of recordings whose frames are not needed any more."""

    def __init__(self, layout: Layout, recordings: list[Recording]):
        self.layout, self._recordings = layout, recordings

    def recordings(self) -> Iterator[Recording]:
        return iter(self._recordings)


def _without_frames(recording: Recording) -> Recording:
    frames = ("time", "present", "position", "features", "actions", "rewards")
    return recording._replace(labels={}, **{name: getattr(recording, name)[:0].copy() for name in frames})
