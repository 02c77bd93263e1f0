"""A small explorer whose truth is known: two kinds of episodes that lie apart in every latent, and hostile names."""

import numpy as np

from data_gen.trajectory import (
    SPLITS,
    ActionSpec,
    Dataset,
    Features,
    Labels,
    LabelSpec,
    Outcomes,
    RowIndex,
    TrajectoryBatch,
    all_real,
)
from probes.explorer.explorer import Explorer, Strips, explorer_of
from probes.report.films import Films

SEEDS, CHECKPOINTS, EPISODES = 4, 3, 5
B, T, N, ZW, ZA = SEEDS * CHECKPOINTS * EPISODES, 9, 2, 5, 3
HOSTILE = '</script><b id="hurt">"kind"'
LANDMARK = {"name": "<i>hill</i>", "x": 0.5, "y": 0.5, "radius": 0.2, "height": 1.0}


def planted_set(plane: bool = True) -> Dataset:
    """Kind 1 is in odd episodes. Agent 1 comes at step 2, leaves at 6, and is never there in episode 3."""
    rng = np.random.default_rng(0)
    seed, checkpoint, _ = (axis.ravel().astype(np.int32) for axis in np.indices((SEEDS, CHECKPOINTS, EPISODES)))
    kind = (np.arange(B) % 2).astype(np.int32)
    mask = np.ones((B, T, N), bool)
    mask[:, :2, 1] = mask[:, 6:, 1] = False
    mask[3, :, 1] = False
    places = np.cumsum(rng.normal(size=(B, T, N, 2)) * 0.1, axis=1)
    obs = np.concatenate([places, rng.normal(size=(B, T, N, 1))], -1).astype(np.float32)
    effort = np.where(kind == 1, rng.random(B), np.nan).astype(np.float32)
    specs = (
        LabelSpec(HOSTILE, "kind", "class", classes=("<even>", "odd")),
        LabelSpec("effort", "effort", "real"),
        LabelSpec("role", "role", "class", classes=tuple("abcdefghij")),
    )
    role = rng.integers(0, 10, (B, N)).astype(np.int32)
    return Dataset(
        batch=TrajectoryBatch(obs, rng.normal(size=(B, T, N, 2)).astype(np.float32), mask),
        features=all_real(N, 3, ActionSpec("continuous", 2)),
        rows=RowIndex(np.arange(B, dtype=np.int32) + 100, seed + 7, checkpoint, np.zeros(B, np.int32)),
        outcomes=Outcomes(
            rewards=np.broadcast_to((kind + rng.random(B))[:, None, None], (B, T, N)).astype(np.float32),
            terminated=np.zeros((B, T), bool),
            truncated=np.zeros((B, T), bool),
        ),
        labels=Labels({"kind": kind, "effort": effort, "role": role}, specs),
        hand=Features(np.zeros((B, 1), np.float32), ("none",)),
        split=np.where(seed < 2, 0, seed - 1).astype(np.int32),
        action=ActionSpec("continuous", 2),
        meta={"position": [0, 1], "landmarks": [LANDMARK], "updates": [0, 30, 60], "learner": {}} if plane else {},
    )


def planted_latents() -> tuple[np.ndarray, np.ndarray]:
    """z_omega and z_alpha; kinds are 8 apart along every second dimension, with a spread of about 1."""
    rng = np.random.default_rng(1)
    apart = 8.0 * (np.arange(B) % 2)
    z_omega = rng.normal(size=(B, ZW)) + apart[:, None] * [1, 0, 1, 0, 0]
    z_alpha = rng.normal(size=(B, N, ZA)) + apart[:, None, None] * [0, 1, 0]
    return z_omega.astype(np.float32), z_alpha.astype(np.float32)


def planted_explorer(plane: bool = True, films: int = 0) -> Explorer:
    """The content of a page; held out is checkpoint 2, `films` episodes are filmed in plain colours."""
    z_omega, z_alpha = planted_latents()
    numbers = np.arange(B)
    strips = None
    if films:
        images = np.zeros((films, 6, 48, 48, 3), np.uint8)
        images[:, 1:] = [0, 0, 200]
        images[:, 0] = [200, 0, 0]
        moments = np.tile(np.arange(6.0), (films, 1))
        strips = Strips(numbers[:films], Films(images, tuple("f" * films), moments, moments * 2))
    return explorer_of(
        name='a & "b" <run>',
        found=planted_set(plane),
        z_omega=z_omega,
        z_alpha=z_alpha,
        hold_out=[2],
        clusters={"z_omega clusters": np.where(numbers < 6, -1 - (numbers < 2), numbers % 2 * 4)},
        strips=strips,
    )


def csv_of(content: Explorer, rows: np.ndarray, found: Dataset) -> list[list[str]]:
    """The cells of the file that the page must export, built from the data set and not from the page's data."""
    split = [*SPLITS, "held-out checkpoint"]
    lines = []
    for row in rows:
        effort = found.labels.values["effort"][row]
        cluster = content.clusters["z_omega clusters"][row]
        lines.append(
            [
                str(found.rows.episode[row]),
                str(found.rows.group[row]),
                str(found.rows.checkpoint[row]),
                split[3] if found.rows.checkpoint[row] == 2 else split[found.split[row]],
                f"{content.returns[row]:.4f}",
                ("<even>", "odd")[row % 2],
                "" if np.isnan(effort) else f"{effort:.4f}",
                *("abcdefghij"[code] for code in found.labels.values["role"][row]),
                {-2: "", -1: "noise"}.get(int(cluster), str(cluster)),
            ]
        )
    return lines
