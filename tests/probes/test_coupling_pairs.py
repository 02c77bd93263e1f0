"""Pairs of levels: NMI against scikit-learn, the permutation against rows moved by hand, planted teams."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import normalized_mutual_info_score

from data_gen.trajectory import RowIndex
from probes.coupling.alignment import align
from probes.coupling.pairs import contingency_table, indicators, normalised_information, pair_table
from probes.levels import JOINT, local_level
from probes.pairings import orders_of
from tests.probes.planted_teams import grid_rows, teams


def clusters_of(ids: np.ndarray, joint: np.ndarray | None = None) -> dict[str, np.ndarray]:
    local = {local_level(i): of_agent for i, of_agent in enumerate(ids.T)}
    return local if joint is None else {JOINT: joint} | local


def test_information_is_scikit_learns_and_0_where_nothing_is_left():
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = rng.integers(0, 4, 60)
        b = np.where(rng.random(60) < rng.random(), a, rng.integers(0, 5, 60))
        counts = np.histogram2d(a, b, bins=[np.arange(5), np.arange(6)])[0]
        assert normalised_information(counts) == pytest.approx(normalized_mutual_info_score(a, b))
    assert normalised_information(np.array([[3, 4]])) == 0 == normalised_information(np.zeros((2, 2)))


def test_a_row_without_a_cluster_is_in_none():
    found = indicators(np.array([[5, -1, 2], [2, 5, -1]]))
    assert found.astype(int).tolist() == [[[0, 1], [0, 0], [1, 0]], [[1, 0], [0, 1], [0, 0]]]


def test_places_have_one_checkpoint_and_one_place_in_it_and_what_not_every_group_has_is_left_out():
    group = np.array([7, 7, 7, 7, 7, 7, 3, 3, 3, 3, 3, 3], np.int32)
    checkpoint = np.array([2, 2, 0, 0, 0, 4, 0, 2, 2, 0, 9, 2], np.int32)
    episode = np.array([11, 10, 1, 0, 2, 5, 4, 8, 7, 3, 1, 9], np.int32)
    rows = RowIndex(episode=episode, group=group, checkpoint=checkpoint, t0=np.zeros(12, np.int32))
    places = align(rows)
    assert places.tolist() == [[9, 6, 8, 7], [3, 2, 1, 0]]
    assert (checkpoint[places] == [0, 0, 2, 2]).all() and group[places][:, 0].tolist() == [3, 7]
    alone = rows._replace(checkpoint=np.where(group == 3, 1, 0).astype(np.int32))
    assert align(alone).shape == (2, 0)


def test_windows_of_an_episode_are_in_their_order():
    rows = RowIndex(*(np.array(x, np.int32) for x in ([1, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0], [5, 3, 2, 9])))
    assert align(rows).tolist() == [[1, 0], [2, 3]]


def test_the_null_moves_whole_groups_and_leaves_out_rows_without_a_cluster():
    rng = np.random.default_rng(3)
    rows = grid_rows(4, 2, 3)
    ids = teams(rows, True, rng)[:, :2]
    ids[rng.random(ids.shape) < 0.2] = -1
    places = align(rows)
    row = pair_table(clusters_of(ids), places, 23, rng).to_dict("records")[0]
    by_hand = []
    for order in orders_of(4, 23, rng):
        a, b = ids[places, 0].ravel(), ids[places[order], 1].ravel()
        both = (a >= 0) & (b >= 0)
        by_hand.append(normalized_mutual_info_score(a[both], b[both]))
    seen, null = by_hand[0], by_hand[1:]
    assert row["nmi"] == pytest.approx(seen) and row["null_mean"] == pytest.approx(np.mean(null))
    assert row["p"] == pytest.approx((1 + np.sum(np.array(null) >= seen - 1e-9)) / 24)
    assert row["excess"] == pytest.approx(seen - np.mean(null)) and row["p_least"] == 1 / 24
    both = (ids >= 0).all(axis=1)
    assert (row["n_episodes"], row["left_out"], row["n_groups"]) == (both.sum(), (~both).sum(), 4)


def test_holm_is_over_the_pairs_of_a_kind_and_what_cannot_be_evaluated_says_why():
    rng = np.random.default_rng(4)
    rows = grid_rows(12, 2, 4)
    ids = teams(rows, True, rng)
    ids = np.concatenate([ids, np.zeros((len(ids), 1), int)], axis=1)
    table = pair_table(clusters_of(ids, joint=ids[:, 0]), align(rows), 199, rng)
    assert table["kind"].tolist() == ["joint"] * 4 + ["agents"] * 6
    missing = table["p"].isna()
    assert missing.sum() == 4 and set(table[missing]["note"]) == {"not evaluated: a level has fewer than two clusters"}
    of_agents = table[(table["kind"] == "agents") & ~missing]
    p = np.sort(of_agents["p"].to_numpy(float))
    want = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1)
    np.testing.assert_allclose(np.sort(of_agents["p_holm"].to_numpy(float)), want)
    one = grid_rows(1, 2, 4)
    single = pair_table(clusters_of(teams(one, False, rng)), align(one), 99, rng)
    assert single["nmi"].isna().all() and single["note"].str.contains("1 group").all()


def test_contingency_counts_what_meets():
    rows = grid_rows(2, 1, 3)
    ids = np.array([[0, 4], [0, 4], [0, 5], [1, 5], [1, 5], [-1, 4]])
    table = contingency_table(clusters_of(ids), align(rows))
    shown = {(row["cluster"], row["meets"]): row for row in table.to_dict("records")}
    assert {key: row["n"] for key, row in shown.items()} == {(0, 4): 2, (0, 5): 1, (1, 4): 0, (1, 5): 2}
    assert shown[0, 4]["share"] == pytest.approx(2 / 3) and shown[0, 4]["share_of_all"] == pytest.approx(2 / 5)
    assert shown[0, 4]["lift"] == pytest.approx(5 / 3)


def _tables(coupled: bool, draws: int) -> pd.DataFrame:
    rows, found = grid_rows(24, 4, 4), []
    for draw in range(draws):
        rng = np.random.default_rng([draw, coupled])
        found.append(pair_table(clusters_of(teams(rows, coupled, rng)), align(rows), 199, rng).assign(draw=draw))
    return pd.concat(found)


def _alarms(table: pd.DataFrame, first: int, second: int, column: str = "p") -> int:
    here = (table["first"] == local_level(first)) & (table["second"] == local_level(second))
    return int((table[here][column] <= 0.05).sum())


def _agree(n_alarms: int, draws: int) -> bool:
    """Whether a true rate of 5 % gives that many, 99 % of the time."""
    low, high = binom(draws, 0.05).ppf([0.005, 0.995])
    return low <= n_alarms <= high


def test_the_coupled_pair_is_found_and_the_independent_ones_are_not():
    table = _tables(True, 100)
    assert _alarms(table, 0, 1, "p_holm") >= 95
    assert _agree(_alarms(table, 0, 2), 100) and _agree(_alarms(table, 1, 2), 100)


def test_agents_that_learn_at_one_pace_but_apart_are_not_coupled_though_rows_moved_freely_say_so():
    table = _tables(False, 100)
    assert all(_agree(_alarms(table, *pair), 100) for pair in ((0, 1), (0, 2), (1, 2)))
    rows, trapped = grid_rows(24, 4, 4), 0
    for draw in range(10):
        rng = np.random.default_rng(draw)
        a, b, _ = teams(rows, False, rng).T
        null = [normalized_mutual_info_score(a, rng.permutation(b)) for _ in range(19)]
        trapped += normalized_mutual_info_score(a, b) > max(null)
    assert trapped >= 9
