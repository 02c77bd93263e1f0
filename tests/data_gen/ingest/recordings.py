"""Recordings made by the tests: random walks of agents with names, all sizes distinct."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec

NO_ACTION = ActionSpec("continuous", 0)


def layout_of(
    parts: tuple[str, ...] = ("body",),
    features: tuple[str, ...] = ("pulse",),
    action: ActionSpec = NO_ACTION,
    agents: tuple[str, ...] = (),
    rate: float = 10.0,
    labels: tuple[LabelColumn, ...] = (),
    axes: tuple[str, ...] = ("x", "y"),
) -> Layout:
    return Layout(
        source="made up",
        parts=parts,
        axes=axes,
        features=features,
        action=action,
        action_names=tuple(f"a{k}" for k in range(action.size)),
        agents=agents,
        rate=rate,
        units={"position": "m", "time": "s"},
        labels=labels,
        provenance={},
    )


def walk(
    layout: Layout,
    seed: int = 0,
    frames: int = 12,
    n_agents: int = 3,
    lost: float = 0.0,
    labels: Mapping[str, np.ndarray] | None = None,
    **other: Any,
) -> Recording:
    """Agents that walk at random; a share of `lost` agent-frames is absent, and as many values are NaN."""
    rng = np.random.default_rng(seed)
    shape = (frames, n_agents, len(layout.parts), len(layout.axes))
    position = rng.normal(size=shape) + np.cumsum(rng.normal(size=(frames, n_agents, 1, shape[3])), axis=0)
    features = rng.normal(size=(frames, n_agents, len(layout.features)))
    position[rng.random(shape) < lost], features[rng.random(features.shape) < lost] = np.nan, np.nan
    discrete = layout.action.kind == "discrete"
    found = Recording(
        name=f"walk {seed}",
        group=f"group {seed}",
        file=f"walk{seed}.csv",
        agents=tuple(f"id{9 - n}" for n in range(n_agents)) if not layout.agents else layout.agents[:n_agents],
        time=np.arange(frames) / (layout.rate or 1.0),
        present=rng.random((frames, n_agents)) >= lost,
        position=position.astype(np.float32),
        features=features.astype(np.float32),
        actions=rng.integers(0, layout.action.size, (frames, n_agents)).astype(np.int32)
        if discrete
        else rng.normal(size=(frames, n_agents, layout.action.size)).astype(np.float32),
        rewards=rng.normal(size=(frames, n_agents)).astype(np.float32),
        terminated=True,
        labels=labels or {},
    )
    return found._replace(**other)


def take_agents(recording: Recording, order: list[int], labels: Mapping[str, np.ndarray] | None = None) -> Recording:
    """The recording with its agents in another order, or some of them."""
    fields = ("present", "position", "features", "actions", "rewards")
    moved = {name: getattr(recording, name)[:, order] for name in fields}
    agents = tuple(recording.agents[n] for n in order)
    return recording._replace(agents=agents, **moved, labels=recording.labels if labels is None else labels)
