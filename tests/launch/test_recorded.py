"""What the recorder wrote is a data set like any other."""

import numpy as np
import pytest
from mpe2 import simple_speaker_listener_v4

from data_gen import Recorder
from data_gen.storage.store import read_group
from tests.launch.commands import run


@pytest.mark.slow
def test_a_recorded_data_set_is_trained_on(tmp_path):
    env = simple_speaker_listener_v4.parallel_env(max_cycles=5)

    def policy(observations, rng):
        return {agent: int(rng.integers(env.action_space(agent).n)) for agent in observations}

    with Recorder(tmp_path / "data", split=[3, 1, 1], seed=0) as recorder:
        for group in range(5):
            recorder.record(env, policy, episodes=4, group=group)
    small = ["model.joint_width=3", "model.local_width=2", "model.hidden=8", "model.decoder_hidden=8", "train.batch=8"]
    steps = ["train.steps=20", "train.steps_per_dispatch=10", "train.eval_every=10"]
    assert run("train", f"data={tmp_path / 'data'}", f"runs={tmp_path}", "name=mine", *small, *steps) == 0
    latents, _ = read_group(tmp_path / "mine" / "embeddings")
    assert all(len(value) == 20 and np.isfinite(value).all() for value in latents.values())
