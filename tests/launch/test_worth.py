"""What a label saves: a mean over test episodes, of policies that know z_omega and of those that do not."""

from pathlib import Path

import numpy as np
import pytest

import launch.worth as worth
from data_gen.trajectory import Labels, LabelSpec
from tests.probes.test_report import dataset

SIDE = LabelSpec("side", "side", "class", classes=("left", "right"))


def test_a_label_is_worth_what_it_adds_to_the_likelihood_of_test_episodes(monkeypatch) -> None:
    """log π is 7, and 2 more where the policy is told "right", of which half of z_omega's first number goes where it
    knows both."""
    found = dataset()
    n = len(found.split)
    side = (np.arange(n) % 3 == 0).astype(np.int32)
    found = found._replace(labels=Labels(values={"side": side}, specs=(SIDE,)))
    z_omega = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)

    def likelihood(config, action, features, parts, told, *, seed, report):
        assert [len(values) for values in told] == [len(batch.mask) for batch in parts]
        own, width = told[-1], told[-1].shape[1]
        right = 2 * own[:, -1] if width in (2, 5) else np.zeros(len(own))
        return 7 + right - (0.5 * own[:, 0] if width == 5 else 0)

    monkeypatch.setattr(worth, "seen_of", lambda run: found)
    monkeypatch.setattr(worth, "config_of", lambda run: {"model": {}})
    monkeypatch.setattr(worth, "embeddings_of", lambda run: {run: {"omega_mean": z_omega}})
    monkeypatch.setattr(worth, "told_log_likelihood", likelihood)
    monkeypatch.setattr("probes.labels.MIN_TRAIN_GROUPS", 1)
    row = worth.worth_table(Path("run"), [], 0).set_index("label").loc["side"]
    test = found.rows_of("test")
    share = side[test].mean()
    assert row.nats == pytest.approx(2 * share) and row.nats_low <= row.nats <= row.nats_high
    assert row.beyond == pytest.approx(2 * share - 0.5 * z_omega[test, 0].mean(), abs=1e-6)
    assert row.entropy == pytest.approx(-share * np.log(share) - (1 - share) * np.log(1 - share))
    assert (row.n_groups, row.n_rows) == (len(np.unique(found.rows.group[test])), len(test))
