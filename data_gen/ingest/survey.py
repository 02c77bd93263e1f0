"""What a source holds, counted in one pass that keeps one recording in memory; nothing is written.

Letters: R recordings, N slots (roles, or agents as they come), C columns.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32, Int64

from data_gen.ingest.clean import column_names
from data_gen.ingest.copies import Copy, Found, copies_in, note
from data_gen.ingest.episodes import Episode
from data_gen.ingest.kept import Treat
from data_gen.ingest.recording import Layout, Reader, Recording
from data_gen.ingest.tally import Lines, Tally, add, empty, measured, more, slots_of
from data_gen.trajectory import InputError

JITTER = 0.05  # of the usual step: stamps that are further apart or closer are irregular


class Treated(NamedTuple):
    """What the treatment makes of the recordings: `episodes` [R], the longest one's steps, and the steps of agents that
    are there among all `cells` (episodes times their own steps times agents)."""

    episodes: Int32[np.ndarray, " R"]
    longest: int
    steps: int
    agent_steps: int
    dropped: Lines


class Survey(NamedTuple):
    """All that was counted. `rates` are measured, in steps a second (a time unit, where the layout has no rate), NaN
    where a recording has one frame. `choices` counts discrete actions, with those out of range last; `actions` tallies
    continuous ones. `classes` counts values of each class label, unknown ones last. `digest` is of all values.
    """

    layout: Layout
    names: tuple[str, ...]
    groups: tuple[str, ...]
    files: tuple[str, ...]
    group_of: Int32[np.ndarray, " R"]
    lengths: Int64[np.ndarray, " R"]
    agents: Int32[np.ndarray, " R"]
    least_at_once: int
    most_at_once: int
    rates: Float64[np.ndarray, " R"]
    irregular: Lines
    columns: Tally
    actions: Tally
    choices: Int64[np.ndarray, " K"]
    rewarded: int
    terminated: int
    classes: dict[str, Int64[np.ndarray, " _"]]
    values: dict[str, Tally]
    copies: tuple[Copy, ...]
    dropped: Lines
    treated: Treated
    digest: str

    @property
    def n_agents(self) -> int:
        """Slots that an episode needs: one a role, or as many as any recording has agents."""
        return len(self.layout.agents) or int(self.agents.max(initial=0))


def survey(reader: Reader, treat: Treat, tell: Callable[[int], None] = lambda done: None) -> Survey:
    """Count everything, and what `treat` (of a recording and the number of agents) would make of it.

    `tell` is told how many recordings are done.

    Raises InputError where the source holds no recording, two of one name, or what the reader refuses.
    """
    counts = _Counts(reader.layout)
    for recording in reader.recordings():
        counts.take(recording)
        # How many agents there are in all is not known yet; alone, an agent would have no teammate to see.
        n_agents = max(2, len(reader.layout.agents) or len(recording.agents))
        counts.take_episodes(*treat(recording, n_agents))
        tell(len(counts.names))
    if not counts.names:
        raise InputError(f"{reader.layout.source}: there is no recording in it. Check the path and what was selected.")
    return counts.survey(tuple(copies_in(counts.found, reader)))


class _Counts:
    """The counts so far."""

    def __init__(self, layout: Layout):
        n_actions = layout.action.size if layout.action.kind == "continuous" else 0
        self.layout, self.found = layout, Found([], [], [])
        self.names: dict[str, str] = {}
        self.groups: dict[str, int] = {}
        self.files: dict[str, None] = {}
        self.group_of, self.lengths, self.agents, self.rates, self.episodes = [], [], [], [], []
        self.least, self.most = np.iinfo(np.int64).max, 0
        self.columns, self.actions = empty(len(column_names(layout))), empty(n_actions)
        self.choices = np.zeros(layout.action.size + 1 if layout.action.kind == "discrete" else 0, np.int64)
        self.classes = {
            one.name: np.zeros(len(one.classes) + 1, np.int64) for one in layout.labels if one.kind == "class"
        }
        self.values = {one.name: empty(1) for one in layout.labels if one.kind != "class"}
        self.rewarded = self.terminated = self.longest = self.steps = self.agent_steps = 0
        self.irregular = self.dropped = self.lost = Lines()
        self.digest = hashlib.sha256()

    def take(self, recording: Recording) -> None:
        """Count a recording as the reader gives it."""
        if recording.name in self.names:
            raise InputError(
                f"{recording.file}: recording {recording.name!r} is also in {self.names[recording.name]}. Names tell "
                f"recordings apart, so rename one."
            )
        self.names[recording.name] = recording.file
        self.files[recording.file] = None
        self.group_of.append(self.groups.setdefault(recording.group, len(self.groups)))
        self.lengths.append(len(recording.time))
        self.agents.append(len(recording.agents))
        at_once = recording.present.sum(1)
        self.least = min(self.least, int(at_once.min(initial=self.least)))
        self.most = max(self.most, int(at_once.max(initial=0)))
        self.terminated += recording.terminated
        self.rewarded += int((recording.present & (np.nan_to_num(recording.rewards) != 0)).sum())
        self.dropped = more(self.dropped, recording.dropped)
        self._take_time(recording)
        self._take_values(recording)
        self._take_labels(recording)
        note(self.found, recording)
        self.digest.update(_content(recording, self.found.whole[-1]))

    def _take_time(self, recording: Recording) -> None:
        steps = np.diff(recording.time)
        usual = float(np.median(steps)) if len(steps) else np.nan
        self.rates.append(1 / usual if usual > 0 else np.nan)
        wrong = np.flatnonzero(np.abs(steps - usual) > JITTER * usual)
        if len(wrong):
            at = recording.time[wrong[0]]
            said = f"{recording.name} ({recording.file}): {len(wrong)} of {len(steps)} steps, first after time {at:g}"
            self.irregular = more(self.irregular, (said,))

    def _take_values(self, recording: Recording) -> None:
        slots, present = slots_of(recording, self.layout), recording.present
        self.columns = add(self.columns, slots, present, measured(recording))
        if self.layout.action.kind == "continuous":
            self.actions = add(self.actions, slots, present, recording.actions)
        elif self.layout.action.size:
            chosen, size = recording.actions[present], self.layout.action.size
            self.choices += np.bincount(np.where((chosen < 0) | (chosen >= size), size, chosen), minlength=size + 1)

    def _take_labels(self, recording: Recording) -> None:
        for label in self.layout.labels:
            values = recording.labels[label.name].reshape(-1)
            if label.kind == "class":
                known = np.where(values < 0, len(label.classes), values).astype(int)
                self.classes[label.name] += np.bincount(known, minlength=len(label.classes) + 1)
            else:
                column, told = values.astype(np.float32)[:, None, None], np.ones((len(values), 1), bool)
                self.values[label.name] = add(self.values[label.name], np.zeros(1, int), told, column)

    def take_episodes(self, episodes: list[Episode], lost: tuple[str, ...]) -> None:
        """Count what the treatment makes of the last recording."""
        self.episodes.append(len(episodes))
        self.longest = max([self.longest, *(len(one.mask) for one in episodes)])
        self.steps += sum(len(one.mask) for one in episodes)
        self.agent_steps += sum(int(one.mask.sum()) for one in episodes)
        self.lost = more(self.lost, lost)

    def survey(self, copies: tuple[Copy, ...]) -> Survey:
        """All that was counted."""
        return Survey(
            layout=self.layout,
            names=tuple(self.names),
            groups=tuple(self.groups),
            files=tuple(self.files),
            group_of=np.array(self.group_of, np.int32),
            lengths=np.array(self.lengths, np.int64),
            agents=np.array(self.agents, np.int32),
            least_at_once=min(self.least, self.most),
            most_at_once=self.most,
            rates=np.array(self.rates, float),
            irregular=self.irregular,
            columns=self.columns,
            actions=self.actions,
            choices=self.choices,
            rewarded=self.rewarded,
            terminated=self.terminated,
            classes=self.classes,
            values=self.values,
            copies=copies,
            dropped=self.dropped,
            treated=Treated(np.array(self.episodes, np.int32), self.longest, self.steps, self.agent_steps, self.lost),
            digest=self.digest.hexdigest(),
        )


def _content(recording: Recording, whole: bytes) -> bytes:
    """A digest of all that a recording says."""
    own = hashlib.blake2b(whole, digest_size=16)
    names = (recording.name, recording.group, *recording.agents, *recording.labels)
    own.update("\0".join((*names, str(recording.terminated))).encode())
    for values in (recording.time, recording.rewards, *recording.labels.values()):
        own.update(np.ascontiguousarray(values).data)
    return own.digest()
