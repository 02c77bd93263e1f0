"""How much memory a data set's episodes take in this process: `python -m tests.marl_vae.peak_memory HOW FOLDER`.

HOW is read, which reads the data set whole, or stream, which goes over it as training does, but for the model. Prints
by how many MiB the peak of the resident memory rose.
"""

import resource
import sys
from contextlib import closing
from pathlib import Path

import numpy as np

from data_gen.storage.dataset import read_dataset, write_shard
from data_gen.storage.shard import Shard
from data_gen.storage.unpacked import open_dataset
from data_gen.trajectory import ActionSpec, Features, Labels, Outcomes, RowIndex, TrajectoryBatch
from marl_vae.batching import check_episodes, in_pieces
from marl_vae.model import dims_of
from marl_vae.normalise import fit_normaliser
from marl_vae.stream import delivered
from marl_vae.train import usable
from tests.marl_vae import tiny_task

SHARDS, B, T, N, DO, ACTION = 6, 800, 100, 4, 40, ActionSpec("continuous", 2)


def write(folder: Path) -> int:
    """Write a data set; the MiB of its episodes."""
    rng = np.random.default_rng(0)
    for index in range(SHARDS):
        obs = rng.standard_normal((B, T, N, DO), np.float32)
        mask, number = np.ones((B, T, N), bool), np.arange(B, dtype=np.int32)
        shard = Shard(
            batch=TrajectoryBatch(obs=obs, actions=obs[..., :2].copy(), mask=mask),
            rows=RowIndex(episode=index * B + number, group=index + 0 * number, checkpoint=0 * number, t0=0 * number),
            outcomes=Outcomes(np.zeros((B, T, N), np.float32), np.zeros((B, T), bool), np.zeros((B, T), bool)),
            labels=Labels(values={}, specs=()),
            hand=Features(values=np.zeros((B, 1), np.float32), names=("none",)),
            policies={},
            curve=np.zeros((1, 1), np.float32),
            action=ACTION,
            meta={"recording": {"split": [4, 1, 1], "seed": 0}},
        )
        write_shard(folder, index, SHARDS, shard, {})
    return SHARDS * B * T * N * (4 * DO + 8 + 1) // 2**20


def stream(folder: Path) -> None:
    found = open_dataset(folder)
    training, validation = (found.batch.part(found.rows_of(name)) for name in ("train", "validation"))
    task = tiny_task.task(tiny_task.TINY, steps=200)._replace(dims=dims_of(found), features=found.features)
    check_episodes(lambda batch, where: usable(task, batch, where), training, "training")
    fit_normaliser(training, ACTION, found.features)
    with closing(delivered(task, training, validation, 0)) as given:
        assert sum(len(chunk.training.rows) for chunk in given) == 200
    assert len(in_pieces(lambda batch: batch.obs.sum((1, 2, 3)), found.batch)) == SHARDS * B


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10


if __name__ == "__main__":
    before = peak()
    {"read": read_dataset, "stream": stream}[sys.argv[1]](Path(sys.argv[2]))
    print(peak() - before)
