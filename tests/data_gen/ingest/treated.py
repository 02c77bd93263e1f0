"""Recordings of two body parts with labels of every scope, and their episodes, checked against their outline."""

import numpy as np

from data_gen.ingest.episodes import Episode
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.ingest.treatment import Treatment, episodes_of, outline
from data_gen.trajectory import TrajectoryBatch, check_batch
from tests.data_gen.ingest.recordings import layout_of, take_agents, walk

LABELS = (
    LabelColumn("site", "recording", "class", ("barn", "field")),
    LabelColumn("weight", "agent", "real"),
    LabelColumn("phase", "frame", "class", ("rest", "hunt", "play")),
    LabelColumn("near", "frame and agent", "class", ("no", "yes")),
)
FRAMES, N = 14, 3
TWO = layout_of(parts=("tail", "nose"), labels=LABELS)


def labels_for(seed: int, frames: int = FRAMES, n_agents: int = N) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "site": np.array(seed % 2, np.int32),
        "weight": rng.normal(size=n_agents).astype(np.float32),
        "phase": rng.integers(-1, 3, frames).astype(np.int32),
        "near": rng.integers(-1, 2, (frames, n_agents)).astype(np.int32),
    }


def dirty(seed: int, layout: Layout = TWO, lost: float = 0.1) -> Recording:
    return walk(layout, seed, FRAMES, N, lost=lost, labels=labels_for(seed))


def with_agents(recording: Recording, order: list[int]) -> Recording:
    own = recording.labels
    return take_agents(recording, order, own | {"weight": own["weight"][order], "near": own["near"][:, order]})


def treated(recording: Recording, layout: Layout, n_agents: int, **how) -> list[Episode]:
    """Episodes that have been checked against their outline."""
    made = Treatment(**how)
    found, said = outline(layout, made, n_agents, True), episodes_of(recording, layout, made, n_agents)
    assert all(line.startswith(f"{recording.name} ({recording.file}): ") for line in said[1])
    for one in said[0]:
        check_batch(TrajectoryBatch(one.obs[None], one.actions[None], one.mask[None]), found.action)
        assert one.obs.shape[1:] == (n_agents, len(found.obs_names)) and np.isfinite(one.obs).all()
        assert (one.obs[~one.mask] == 0).all() and (one.actions[~one.mask] == 0).all()
        assert (one.rewards[~one.mask] == 0).all()
        assert {spec.source for spec in found.labels} == one.labels.keys()
        assert found.action.kind == "discrete" or len(found.action_names) == one.actions.shape[2]
    return said[0]
