"""What a label is worth, against the closed form of actions that a label shifts."""

import numpy as np
import pytest

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real
from marl_vae.diagnostics.worth import told_log_likelihood, with_told
from marl_vae.model import Model

T, N, DA, SHIFT = 4, 3, 2, 1.5
ACTION = ActionSpec("continuous", DA)


def shifted(seed: int, n_episodes: int) -> tuple[TrajectoryBatch, np.ndarray]:
    """Unit noise about ± SHIFT, of one sign in an episode, and observations that say nothing of it."""
    rng = np.random.default_rng(seed)
    sign = rng.integers(0, 2, n_episodes) * 2 - 1
    actions = rng.normal(size=(n_episodes, T, N, DA)) + SHIFT * sign[:, None, None, None]
    obs = rng.normal(size=(n_episodes, T, N, 1)).astype(np.float32)
    return TrajectoryBatch(obs=obs, actions=actions.astype(np.float32), mask=np.ones((n_episodes, T, N), bool)), sign


def worth(told: str) -> float:
    made = [shifted(seed, 1000) for seed in range(3)]
    values = {
        "sign": [(sign[:, None] == [-1, 1]).astype(np.float32) for _, sign in made],
        "noise": [np.random.default_rng(9 + i).integers(0, 2, (1000, 1)).astype(np.float32) for i in range(3)],
        "nothing": [np.zeros((1000, 0), np.float32)] * 3,
    }
    batches = [batch for batch, _ in made]
    real = all_real(N, 1, ACTION)
    found = told_log_likelihood(
        Model(decoder_hidden=8), ACTION, real, batches, values[told], seed=0, report=lambda share: None
    )
    return float(found.mean())


def test_a_label_is_worth_what_the_closed_form_says_and_noise_nothing() -> None:
    """A Gaussian policy that is not told sees variance 1 + SHIFT², so the label saves ½ log(1 + SHIFT²) a number."""
    plain = worth("nothing")
    count = T * N * DA
    assert plain == pytest.approx(-count * 0.5 * np.log(2 * np.pi * np.e * (1 + SHIFT**2)), rel=0.02)
    assert worth("sign") - plain == pytest.approx(count * 0.5 * np.log(1 + SHIFT**2), rel=0.05)
    assert abs(worth("noise") - plain) < 0.02 * count * 0.5 * np.log(1 + SHIFT**2)


def test_the_label_is_told_to_every_agent_at_every_step() -> None:
    batch, _ = shifted(0, 5)
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    wide = with_told(batch, values)
    np.testing.assert_array_equal(wide.obs[..., :1], batch.obs)
    for t in range(T):
        for agent in range(N):
            np.testing.assert_array_equal(wide.obs[:, t, agent, 1:], values)
