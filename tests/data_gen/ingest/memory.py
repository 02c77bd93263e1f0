"""A source in memory, and a treatment that does as little as can be: what a survey and a store need to be tested."""

from collections.abc import Iterator

import numpy as np

from data_gen.ingest.episodes import Episode, Outline
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec, LabelSpec

STYLES = ("calm", "wild")
LAYOUT = Layout(
    source="memory",
    parts=("body",),
    axes=("x", "y"),
    features=("heat",),
    action=ActionSpec("continuous", 2),
    action_names=("ax", "ay"),
    agents=(),
    rate=10.0,
    units={"position": "m", "heat": "K"},
    labels=(LabelColumn("style", "recording", "class", STYLES), LabelColumn("weight", "agent", "real")),
    provenance={"made": "by a test"},
)


class Memory:
    """Recordings that are made one by one as they are asked for; `fail_at` raises before that one."""

    def __init__(self, recordings: list[Recording], layout: Layout = LAYOUT, fail_at: int | None = None):
        self.layout, self._recordings, self._fail_at = layout, recordings, fail_at
        self.passes = 0

    def recordings(self) -> Iterator[Recording]:
        self.passes += 1
        for number, recording in enumerate(self._recordings):
            if number == self._fail_at:
                raise KeyboardInterrupt
            yield recording


def recording(seed: int, name: str = "", group: str = "", frames: int = 20, agents: int = 3, **changed) -> Recording:
    """Agents that walk at random, calmly or wildly by the seed's parity; all there, nothing missing."""
    rng = np.random.default_rng(seed)
    moves = rng.normal(size=(frames, agents, 2)) * (1 + 3 * (seed % 2))
    own = Recording(
        name=name or f"r{seed}",
        group=group or f"g{seed}",
        file=f"{name or f'r{seed}'}.csv",
        agents=tuple(f"a{k}" for k in range(agents)),
        time=np.arange(frames) / 10,
        present=np.ones((frames, agents), bool),
        position=np.cumsum(moves, axis=0)[:, :, None].astype(np.float32),
        features=rng.normal(size=(frames, agents, 1)).astype(np.float32),
        actions=moves.astype(np.float32),
        rewards=np.zeros((frames, agents), np.float32),
        terminated=False,
        labels={"style": np.int32(seed % 2), "weight": np.arange(agents, dtype=np.float32)},
    )
    return own._replace(**changed)


def outline() -> Outline:
    """Of LAYOUT's episodes."""
    return Outline(
        obs_names=("x", "y", "heat"),
        action=LAYOUT.action,
        action_names=LAYOUT.action_names,
        agents=(),
        position=(0, 1),
        labels=(LabelSpec("style", "style", "class", classes=STYLES), LabelSpec("weight", "weight", "real")),
        rate=10.0,
        units=LAYOUT.units,
        frame="world",
        derived="given",
    )


def windows(length: int = 8):
    """A treatment: windows of at most so many steps, what is missing masked, agents padded."""

    def treat(one: Recording, n_agents: int) -> tuple[list[Episode], tuple[str, ...]]:
        whole = _whole(one, n_agents)
        starts = range(0, len(one.time), length)
        cut = lambda values, t: values[t : t + length]  # noqa: E731
        episodes = [
            whole._replace(**{name: cut(getattr(whole, name), t) for name in TIMED}, t0=t)
            for t in starts
            if whole.mask[t : t + length].any()
        ]
        lost = len(starts) - len(episodes)
        return episodes, (f"{one.name}: {lost} window(s) with nobody",) * bool(lost)

    return treat


TIMED = ("obs", "actions", "mask", "rewards", "terminated", "truncated")


def _whole(one: Recording, n_agents: int) -> Episode:
    seen = np.concatenate([one.position[:, :, 0], one.features], 2)
    mask = one.present & np.isfinite(seen).all(2)
    pad = lambda values, filler=0: np.pad(  # noqa: E731
        values, [(0, 0), (0, n_agents - values.shape[1]), *[(0, 0)] * (values.ndim - 2)], constant_values=filler
    )
    weight = np.pad(one.labels["weight"], (0, n_agents - len(one.agents)), constant_values=np.nan)
    ends = np.zeros(len(one.time), bool)
    return Episode(
        obs=pad(np.where(mask[..., None], seen, 0).astype(np.float32)),
        actions=pad(np.where(mask[..., None], one.actions, 0).astype(np.float32)),
        mask=pad(mask, False),
        rewards=pad(np.where(mask, one.rewards, 0).astype(np.float32)),
        terminated=ends,
        truncated=ends,
        labels={"style": np.int32(one.labels["style"]), "weight": weight.astype(np.float32)},
        t0=0,
    )
