"""The tables of change points: planted seeds, agreement by hand, clusters that come and go, figure and words."""

from typing import cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from scipy.stats import binomtest

from data_gen.trajectory import InputError, RowIndex
from probes.changes.agreement import Timing, agreement_table, widened
from probes.changes.changes import Changes, ChangeTables, change_tables
from probes.changes.figure import change_figure
from probes.changes.series import Change, Series
from probes.changes.text import change_sentences
from probes.changes.turnover import turnover
from probes.levels import JOINT
from probes.pairings import orders_of
from probes.report.figures import MARKED, PALETTE
from tests.probes.planted_teams import grid_rows, switching

SEEDS, CHECKPOINTS, EPISODES, AGENTS = 14, 9, 7, 4
QUICK = Changes(permutations=99, agreement_permutations=499)


def planted(seed: int = 0) -> tuple[dict, np.ndarray]:
    """The joint level and agents 0 and 1 switch together, agent 2 when it likes, agent 3 has collapsed."""
    rng = np.random.default_rng(seed)
    rows = grid_rows(SEEDS, CHECKPOINTS, EPISODES)
    at = rng.integers(1, CHECKPOINTS, (SEEDS, 2))
    z = [switching(rows, at[:, k], 4.0, rng) for k in (0, 0, 0, 1)] + [0.01 * switching(rows, at[:, 0], 4.0, rng)]
    arguments = {
        "z_omega": z[0],
        "z_alpha": np.stack(z[1:], axis=1),
        "present": np.ones((len(z[0]), AGENTS), bool),
        "joint_clusters": (rows.checkpoint >= at[rows.group, 0]).astype(int),
        "agent_clusters": np.zeros((len(z[0]), AGENTS), int),
        "returns": 10.0 * rows.group + rows.checkpoint + np.tile([-1.0, 1, 0, 0, 0, 0, 0], SEEDS * CHECKPOINTS),
        "rows": rows,
    }
    return arguments, at


@pytest.fixture(scope="module")
def tables() -> ChangeTables:
    return change_tables(QUICK, **planted()[0])


def test_every_seed_and_level_has_a_row_and_the_planted_changes(tables: ChangeTables):
    at = planted()[1]
    assert len(tables.series) == SEEDS * (AGENTS + 1)
    for level, when in ((JOINT, at[:, 0]), ("z_alpha_1", at[:, 0]), ("z_alpha_2", at[:, 1])):
        found = tables.changes[tables.changes["level"] == level]
        firsts = {row["group"]: (row["before"], row["after"]) for row in found.to_dict("records")}
        same = [firsts[group] == (edge - 1, edge) for group, edge in enumerate(when.tolist())]
        assert np.mean(same) > 0.9 and (found["gain"] >= 1).all()
    dead = tables.series[tables.series["level"] == "z_alpha_3"]
    assert set(dead["note"]) == {"not evaluated: the level has collapsed"} and dead["p"].isna().all()
    assert dead["n_changes"].isna().all()


def test_the_share_of_seeds_that_change_is_of_those_that_have_both_checkpoints(tables: ChangeTables):
    found = tables.edges[tables.edges["level"] == "z_alpha_2"]
    assert found["after"].tolist() == list(range(1, CHECKPOINTS)) and (found["n_groups"] == SEEDS).all()
    counts = tables.changes[tables.changes["level"] == "z_alpha_2"]["after"].value_counts()
    assert found["n_changed"].tolist() == [counts.get(edge, 0) for edge in range(1, CHECKPOINTS)]
    row = found.iloc[2]
    wilson = binomtest(int(row["n_changed"]), SEEDS).proportion_ci(method="wilson")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((wilson.low, wilson.high))
    assert "z_alpha_3" not in set(tables.edges["level"])


def test_agents_that_switch_together_agree_and_the_third_does_not(tables: ChangeTables):
    found = {(row["first"][-1], row["second"][-1]): row for row in tables.agreement.to_dict("records")}
    assert set(found) == {(a, b) for a in "0123" for b in "0123" if a < b} and np.isnan(found["2", "3"]["p"])
    assert found["0", "1"]["share"] > 0.9 and found["0", "1"]["p_holm"] < 0.02
    assert found["0", "2"]["p_holm"] > 0.05 < found["1", "2"]["p_holm"]


def test_agreement_is_counted_by_hand():
    rng = np.random.default_rng(1)
    changes = {name: rng.random((4, 6)) < 0.3 for name in ("a", "b")}
    alike = np.ones(5, bool)
    alike[2] = False
    timing = {name: Timing(np.insert(one, 2, True, axis=0), alike) for name, one in changes.items()}
    row = agreement_table(timing, 23, 0).to_dict("records")[0]
    shares = []
    for order in orders_of(4, 23, rng).tolist():
        pairs = [(changes["a"][g], changes["b"][h]) for g, h in enumerate(order)]
        near = [
            any(abs(i - j) <= 1 for j in np.flatnonzero(other))
            for a, b in pairs
            for one, other in ((a, b), (b, a))
            for i in np.flatnonzero(one)
        ]
        shares.append(np.mean(near))
    assert row["share"] == pytest.approx(shares[0]) and row["null_mean"] == pytest.approx(np.mean(shares[1:]))
    assert row["p"] == np.mean(np.array(shares) >= shares[0] - 1e-9) and row["n_changes"] == len(near)
    assert widened(np.array([[False, False, False, True]])).tolist() == [[False, False, True, True]]
    still = agreement_table(timing | {"b": timing["b"]._replace(changes=np.zeros((5, 6), bool))}, 23, 0)
    assert still["note"].tolist() == ["not evaluated: a level without a change"]


def test_clusters_that_come_and_go_are_counted_between_the_changes():
    checkpoints = np.repeat([0, 1, 2, 3, 4], 4)
    clusters = np.array([0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 2, 2, 1, 1, -1, 2, 3, 3, 3, 3])
    series = Series(np.arange(5), 20, (Change(1, 2, 3.0), Change(3, 4, 3.0)), 1.0, 0.01, "")
    found = turnover(series, checkpoints, clusters)
    moves = [(row["after"], row["cluster"], row["share_before"], row["share_after"]) for row in found]
    first = [(2, 2, 0, 3 / 8), (2, 1, 2 / 8, 4 / 8), (2, -1, 0, 1 / 8), (2, 0, 6 / 8, 0)]
    second = [(4, 3, 0, 1), (4, 1, 4 / 8, 0), (4, 2, 3 / 8, 0), (4, -1, 1 / 8, 0)]
    np.testing.assert_allclose(moves, first + second)
    assert found[0]["rise"] == pytest.approx(3 / 8) and found[3]["rise"] == pytest.approx(-6 / 8)


def test_turnover_of_the_planted_switch(tables: ChangeTables):
    found = tables.turnover[(tables.turnover["level"] == JOINT) & (tables.turnover["group"] == 0)]
    assert found["cluster"].tolist() == [1, 0]
    np.testing.assert_allclose(found[["share_before", "share_after"]].to_numpy(float), [[0, 1], [1, 0]])
    assert not (tables.turnover["level"] == "z_alpha_0").any()


def test_returns_are_means_of_a_seeds_episodes_at_a_checkpoint(tables: ChangeTables):
    found = tables.returns
    np.testing.assert_allclose(found["return_mean"], 10 * found["group"] + found["checkpoint"])
    assert len(found) == SEEDS * CHECKPOINTS


def test_absent_agents_and_seeds_without_a_checkpoint_are_left_out():
    arguments, at = planted(2)
    rows: RowIndex = arguments["rows"]
    arguments["present"][rows.checkpoint == 4, 1] = False
    arguments["present"][(rows.group == 5) & (rows.checkpoint > 1)] = False
    arguments["z_alpha"][~arguments["present"]] = 99
    arguments["present"][:, 2] = False
    found = change_tables(QUICK, **arguments)
    series = found.series.set_index(["level", "group"])
    assert series.loc[("z_alpha_2", 0), "note"] == "not evaluated: the agent is never there"
    assert series.loc[("z_alpha_1", 0), "n_checkpoints"] == CHECKPOINTS - 1
    assert series.loc[("z_alpha_0", 5), "note"] == "not evaluated: 2 checkpoints; 4 are needed"
    pairs = found.agreement.set_index(["first", "second"])
    assert pairs.loc[("z_alpha_0", "z_alpha_1"), "n_groups"] == SEEDS - 1
    assert pairs.loc[("z_alpha_0", "z_alpha_1"), "p"] < 0.02
    assert pairs.loc[("z_alpha_0", "z_alpha_3"), "note"] == "not evaluated: 0 groups, 2 are needed"
    edges = found.edges[(found.edges["level"] == "z_alpha_1")]
    assert (3, 5) in set(zip(edges["before"], edges["after"], strict=True))
    assert (edges["n_groups"] == SEEDS - 1).all()


def test_another_level_or_seed_changes_no_number_of_a_seed(tables: ChangeTables):
    arguments, _ = planted()
    keep = arguments["rows"].group < 3
    fewer = {name: value[keep] for name, value in arguments.items() if name != "rows"}
    fewer["rows"] = RowIndex(*(column[keep] for column in arguments["rows"]))
    for name in ("z_alpha", "present", "agent_clusters"):
        fewer[name] = fewer[name][:, :2]
    found = change_tables(QUICK, **fewer)
    want = tables.series[(tables.series["group"] < 3) & tables.series["level"].isin(found.series["level"].unique())]
    pd.testing.assert_frame_equal(found.series, want.reset_index(drop=True), check_dtype=False)


def test_the_figure_marks_the_changes_on_each_seeds_curve(tables: ChangeTables):
    above, below = (cast(Axes, ax) for ax in change_figure(tables.returns, tables.changes, tables.edges, "group").axes)
    marks = [line for line in above.get_lines() if line.get_color() == MARKED]
    at = [np.asarray(line.get_xdata(), float).tolist() for line in marks]
    on = [np.asarray(line.get_ydata(), float).tolist() for line in marks]
    joint = tables.changes[tables.changes["level"] == JOINT]
    want = [[row["after"] - 0.5 for row in joint[joint["group"] == group].to_dict("records")] for group in range(SEEDS)]
    assert at == want and on == [[10 * group + x for x in xs] for group, xs in enumerate(want)]
    (rates,) = [line for line in below.get_lines() if line.get_label() == "z_α of agent 2"]
    shares = tables.edges[tables.edges["level"] == "z_alpha_2"]["share"]
    np.testing.assert_allclose(np.asarray(rates.get_ydata(), float), shares)
    assert rates.get_color() == PALETTE[3]


def test_the_words_say_what_changed_what_did_not_and_what_to_doubt(tables: ChangeTables):
    words = change_sentences(tables, 0.01, "training seed")
    assert words[0].startswith("z_ω (team): 14 of 14 training seeds change, 1")
    assert words[0].endswith(
        ". Where nothing changed, .14 of these 14 would still be said to change (false_alarms, 0.01, of each)."
    )
    brought = change_sentences(tables, 0.05, "group")
    assert "14 of 14 groups change" in brought[0] and ", .70 of these 14" in brought[0]
    assert not any("seed" in said for said in brought)
    assert words[4] == "z_α of agent 3: not evaluated: the level has collapsed."
    assert "z_α of agent 0 and z_α of agent 1" in words[5]
    assert words[5].startswith("Of the changes of z_α of agent 0 and z_α of agent 1, the clearest of 3 pairs, 1")
    assert "within one of each other says little" in words[6] and "seeds are few" not in words[6]


def test_nothing_can_be_said_of_three_checkpoints():
    arguments, _ = planted()
    keep = arguments["rows"].checkpoint < 3
    fewer = {name: value[keep] for name, value in arguments.items() if name != "rows"}
    fewer["rows"] = RowIndex(*(column[keep] for column in arguments["rows"]))
    found = change_tables(QUICK, **fewer)
    assert found.changes.empty and found.edges.empty and found.series["p"].isna().all()
    *words, agreement, doubts = change_sentences(found, 0.01, "group")
    assert "not evaluated: 3 checkpoints; 4" in words[0]
    assert agreement == "Whether agents change together was not evaluated: 0 groups, 2 are needed."
    assert "within one of each other" not in doubts
    below = change_figure(found.returns, found.changes, found.edges, "group").axes[1]
    assert [text.get_text() for text in below.texts] == ["not evaluated"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"false_alarms": 0.0}, "false_alarms is 0.0"),
        ({"false_alarms": 0.01, "permutations": 98}, "needs 99 or more"),
        ({"episodes": 3}, "episodes is 3"),
        ({"seed": -1}, "seed -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict, said: str):
    with pytest.raises(InputError, match=said):
        Changes(**settings)
