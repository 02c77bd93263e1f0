"""Codelength against one computed from scratch, and blocks of whole groups."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from probes.probe import Probe
from probes.table.mdl import code_bits, code_blocks, uniform_bits

K = 3


def _data(n_groups: int = 24, n: int = 8, signal: float = 2.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_groups) * 3 + 1, n)
    y = rng.choice(K, size=len(groups), p=[0.5, 0.3, 0.2])
    return signal * np.eye(K)[y] + rng.normal(size=(len(y), K)), y, groups


def test_blocks_are_whole_groups_at_the_fractions():
    _, y, groups = _data(n=30)
    train = np.flatnonzero(groups < 69)
    assert len(np.unique(groups[train])) == 23
    blocks = code_blocks(y, groups, train, np.random.default_rng(0))
    assert sorted(np.concatenate(blocks)) == train.tolist()
    held = [set(groups[block]) for block in blocks]
    assert [len(one) for one in held] == [1, 1, 2, 4, 7, 8]
    assert sum(map(len, held)) == len(set.union(*held))
    other = code_blocks(y, groups, train, np.random.default_rng(1))
    assert set(groups[other[0]]) != held[0] or set(groups[other[1]]) != held[1]


def test_the_first_block_goes_on_until_every_class_was_seen():
    groups = np.repeat(np.arange(16), 4)
    y = np.where(groups % 8 == 3, 2, groups % 2)
    for seed in range(10):
        blocks = code_blocks(y, groups, np.arange(64), np.random.default_rng(seed))
        assert set(y[blocks[0]]) == {0, 1, 2}
        assert sum(map(len, blocks)) == 64
    lonely = code_blocks((groups == 5).astype(int), groups, np.arange(64), np.random.default_rng(0))
    assert 5 in groups[lonely[0]]


def _log_loss_bits(x: np.ndarray, y: np.ndarray, known: np.ndarray, sent: np.ndarray, strength: float) -> float:
    """Bits of the sent labels under penalised maximum likelihood of the known, by a general optimiser."""

    def logits(flat: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return x[rows] @ flat[: K * K].reshape(K, K) + flat[K * K :]

    def loss(flat: np.ndarray) -> float:
        z = logits(flat, known)
        picked = z[np.arange(len(known)), y[known]]
        return float(np.mean(logsumexp(z, 1) - picked) + strength / 2 * (flat[: K * K] ** 2).sum())

    z = logits(minimize(loss, np.zeros(K * K + K)).x, sent)
    return float((logsumexp(z, 1) - z[np.arange(len(sent)), y[sent]]).sum() / np.log(2))


def test_the_linear_codelength_is_the_one_computed_from_scratch():
    x, y, groups = _data(n_groups=12)
    train = np.flatnonzero(groups < 30)
    blocks = code_blocks(y, groups, train, np.random.default_rng(0))
    assert len(blocks) > 2
    by_strength = []
    for strength in (1.0, 0.03):
        bits = len(blocks[0]) * np.log2(K)
        for j in range(1, len(blocks)):
            bits += _log_loss_bits(x, y, np.concatenate(blocks[:j]), blocks[j], strength)
        by_strength.append(bits)
    config = Probe(strengths=[1.0, 0.03])
    assert code_bits("linear", x, y, blocks, K, config) == pytest.approx(min(by_strength) + 1, rel=2e-3)
    assert uniform_bits(blocks, K) == pytest.approx(len(train) * np.log2(3))


@pytest.mark.parametrize("probe", ["linear", "mlp"])
def test_what_is_there_compresses_and_noise_does_not(probe):
    config = Probe(steps=60, mlp_strengths=[0.1], strengths=[1.0, 0.1])
    bits = {}
    for signal in (4.0, 0.0):
        x, y, groups = _data(signal=signal)
        blocks = code_blocks(y, groups, np.arange(len(y)), np.random.default_rng(0))
        bits[signal] = code_bits(probe, x, y, blocks, K, config) / uniform_bits(blocks, K)
    assert bits[4.0] < 0.5 and 0.85 < bits[0.0] < 1.5


def test_rows_of_a_block_do_not_help_to_send_it():
    """A code of the group says nothing of a group that was not sent before."""
    _, y, groups = _data()
    y = np.repeat(np.random.default_rng(0).integers(0, K, 24), 8)
    x = 10 * np.eye(24)[np.unique(groups, return_inverse=True)[1]]
    blocks = code_blocks(y, groups, np.arange(len(y)), np.random.default_rng(0))
    assert code_bits("linear", x, y, blocks, K, Probe()) > 0.9 * uniform_bits(blocks, K)
