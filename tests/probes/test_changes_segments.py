"""Costs, penalties and searches over checkpoints against brute force and against ruptures on episodes."""

from itertools import combinations

import numpy as np
import pytest
from ruptures import KernelCPD
from ruptures.costs import CostRbf

from probes.changes.segments import CheckpointCost, block_sums, change_points, gains, least_penalty, segment_worth

SIZES = np.array([3, 5, 2, 4, 6, 1, 3])
EDGES = np.append(0, np.cumsum(SIZES))
C = len(SIZES)


@pytest.fixture
def kernel() -> CostRbf:
    rng = np.random.default_rng(0)
    return CostRbf().fit(rng.normal(size=(SIZES.sum(), 2)) + np.repeat([0, 1.5, 0, 0, 2, 2, 1], SIZES)[:, None])


@pytest.fixture
def sums(kernel: CostRbf) -> np.ndarray:
    return block_sums(kernel.gram, np.repeat(np.arange(C), SIZES)[None], C)[0]


def cost(kernel: CostRbf, changes: tuple[int, ...]) -> float:
    """Of a segmentation at edges of checkpoints, by ruptures over episodes."""
    return kernel.sum_of_costs([int(EDGES[edge]) for edge in (*changes, C)])


def every_segmentation() -> list[tuple[int, ...]]:
    return [changes for k in range(C) for changes in combinations(range(1, C), k)]


def test_sums_of_blocks_are_of_the_episodes_that_each_order_puts_there():
    rng = np.random.default_rng(1)
    gram, orders = (
        rng.normal(size=(9, 9)),
        np.stack([rng.permutation(np.repeat([0, 1, 2], [2, 4, 3])) for _ in range(5)]),
    )
    found = block_sums(gram, orders, 3)
    for d, order in enumerate(orders):
        for a in range(3):
            for b in range(3):
                assert found[d, a, b] == pytest.approx(gram[np.ix_(order == a, order == b)].sum())


def test_a_segments_cost_is_that_of_ruptures_over_its_episodes(kernel: CostRbf, sums: np.ndarray):
    mine = CheckpointCost(SIZES).fit(sums)
    worth = segment_worth(sums[None], SIZES)[0]
    for start in range(C):
        for end in range(start + 1, C + 1):
            want = kernel.error(EDGES[start], EDGES[end])
            assert mine.error(start, end) == pytest.approx(want, abs=1e-9)
            assert worth[start, end] == pytest.approx(EDGES[end] - EDGES[start] - want)
        assert (worth[start, : start + 1] == -np.inf).all()


def test_the_least_penalty_is_where_the_best_of_all_segmentations_has_no_change():
    """There and back: two changes are worth more than twice the best single one."""
    z = np.random.default_rng(3).normal(size=(SIZES.sum(), 2)) + np.repeat([0, 0, 0, 2, 0, 0, 0], SIZES)[:, None]
    kernel = CostRbf().fit(z)
    sums = block_sums(kernel.gram, np.repeat(np.arange(C), SIZES)[None], C)[0]
    whole = cost(kernel, ())
    want = max((whole - cost(kernel, changes)) / len(changes) for changes in every_segmentation() if changes)
    single = max(whole - cost(kernel, (edge,)) for edge in range(1, C))
    found = least_penalty(segment_worth(np.stack([sums, 0 * sums]), SIZES))
    assert found == pytest.approx([want, 0]) and want > single
    assert change_points(sums, SIZES, want * 1.0001) == [] != change_points(sums, SIZES, want * 0.9999)


def test_the_search_finds_the_best_of_all_segmentations(kernel: CostRbf, sums: np.ndarray):
    numbers = set()
    for penalty in (0.02, 0.2, 0.5, 0.9, 1.3, 2.0, 4.0):
        best = min(every_segmentation(), key=lambda changes: cost(kernel, changes) + penalty * len(changes))
        found = change_points(sums, SIZES, penalty)
        assert tuple(found) == best
        numbers.add(len(found))
        rises = [cost(kernel, tuple(e for e in best if e != edge)) - cost(kernel, best) for edge in best]
        np.testing.assert_allclose(gains(segment_worth(sums[None], SIZES)[0], found), rises, atol=1e-9)
        assert all(rise >= penalty for rise in rises)
    assert len(numbers) > 3


def test_clear_switches_are_where_ruptures_kernel_search_over_episodes_puts_them():
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(8), 5)
    z = rng.normal(size=(40, 3)) + 6 * np.isin(codes, [3, 4])[:, None]
    over_episodes = KernelCPD(kernel="rbf", min_size=1, jump=1).fit(z).predict(n_bkps=2)
    sums = block_sums(CostRbf().fit(z).gram, codes[None], 8)[0]
    found = change_points(sums, np.full(8, 5), 3.0)
    assert [5 * edge for edge in found] == over_episodes[:-1] == [15, 25]
