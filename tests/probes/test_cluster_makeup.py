"""What is in a cluster, counted by hand and by pandas."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from data_gen.trajectory import InputError, Labels, LabelSpec, RowIndex
from probes.clusters.columns import Columns, make_columns, take_columns
from probes.clusters.makeup import class_records, cluster_records, episode_records, number_records

IDS = np.array([0, 0, 0, 0, 1, 1, 1, -1])
SPLIT = np.array([0, 0, 0, 0, 1, 1, 2, 2], np.int32)
ROWS = RowIndex(
    episode=np.arange(8, dtype=np.int32),
    group=np.array([5, 5, 5, 9, 9, 2, 2, 2], np.int32),
    checkpoint=np.array([0, 0, 4, 4, 4, 4, 4, 4], np.int32),
    t0=np.zeros(8, np.int32),
)
LABELS = Labels(
    values={
        "goal": np.array([0, 0, 2, 0, 2, 2, 2, 0], np.int32),
        "speed": np.array([1.0, 2, 3, 4, 5, 6, np.nan, 8]),
        "hill": np.stack([np.arange(8) % 2, np.arange(8) % 3], 1).astype(np.int32),
    },
    specs=(
        LabelSpec("goal", "goal", "class", classes=("left", "middle", "right")),
        LabelSpec("speed_class", "speed", "quantile", bins=2),
        LabelSpec("pace", "speed", "real"),
        LabelSpec("hill", "hill", "class"),
    ),
)


def columns() -> Columns:
    return make_columns(LABELS, ROWS, SPLIT)


def test_columns_are_labels_seeds_and_checkpoints():
    found = columns()
    names = [one.name for one in found.classes]
    assert names == ["split_group", "checkpoint", "goal", "speed_class", "hill_0", "hill_1"]
    by_name = {one.name: one for one in found.classes}
    # the training episodes are the first four: the edge is their median, 2.5
    assert by_name["speed_class"].codes[by_name["speed_class"].keep].tolist() == [0, 0, 1, 1, 1, 1, 1]
    assert by_name["speed_class"].keep.tolist() == [True] * 6 + [False, True]
    assert by_name["split_group"].names == ("2", "5", "9") and by_name["checkpoint"].names == ("0", "4")
    assert [one.name for one in found.numbers] == ["speed", "pace"]
    assert [(one.name, one.agent) for one in found.classes[-2:]] == [("hill_0", 0), ("hill_1", 1)]
    part = take_columns(found, np.array([7, 1]), (1,))
    assert [one.name for one in part.classes] == ["split_group", "checkpoint", "goal", "speed_class", "hill_1"]
    assert part.classes[2].codes.tolist() == [0, 0] and part.numbers[0].values.tolist() == [8, 2]


def test_what_is_not_known_is_in_no_class_and_quantiles_are_cut_within_another_label():
    goal = np.array([0, 0, 2, 2, -1, 2, 0, 1], np.int32)
    specs = (LABELS.specs[0], LABELS.specs[1]._replace(within="goal"))
    found = make_columns(LABELS._replace(values=LABELS.values | {"goal": goal}, specs=specs), ROWS, SPLIT).classes
    assert found[2].keep.tolist() == [True] * 4 + [False] + [True] * 3
    assert found[2].codes[found[2].keep].tolist() == [0, 0, 2, 2, 2, 0, 1]
    # edges: 1.5 where the goal is left, 3.5 where it is right; speed is NaN at 6, and no training episode goes middle
    assert found[3].keep.tolist() == [True] * 4 + [False, True, False, False]
    assert found[3].codes[found[3].keep].tolist() == [0, 1, 0, 1, 1]


def test_classes_that_are_not_numbered_are_refused():
    for values, words in (
        (np.full(8, 0.5), "is of kind class but holds float64"),
        (np.arange(8), "holds class 0..7; number the classes 0..2"),
        (np.arange(8) - 6, "holds class -6..1"),
    ):
        with pytest.raises(InputError, match=words):
            make_columns(LABELS._replace(values=LABELS.values | {"goal": values}), ROWS, SPLIT)


def test_counts_shares_and_lift_are_those_of_a_cross_table():
    found = pd.DataFrame(class_records(IDS, columns()))
    goal = found[found["label"] == "goal"].set_index(["cluster", "class"])
    assert goal["count"].to_dict() == {
        (-1, "left"): 1,
        (-1, "right"): 0,
        (0, "left"): 3,
        (0, "right"): 1,
        (1, "left"): 0,
        (1, "right"): 3,
    }
    assert goal.loc[(0, "left"), ["share", "base", "lift"]].tolist() == [0.75, 0.5, 1.5]
    speed = found[found["label"] == "speed_class"].set_index(["cluster", "class"])
    assert speed.loc[(1, "1"), ["count", "share"]].tolist() == [2, 1.0]  # the third has no value
    assert speed.loc[(1, "1"), "base"] == pytest.approx(5 / 7)
    for label, of_label in found.groupby("label"):
        assert of_label["count"].sum() == (7 if label == "speed_class" else 8)
        np.testing.assert_allclose(of_label.groupby("cluster")["share"].sum(), 1)


def test_means_have_intervals_over_groups_where_there_are_several():
    found = pd.DataFrame(number_records(IDS, columns(), ROWS.group))
    speed = found[found["label"] == "speed"].set_index("cluster")
    assert speed["mean"].to_dict() == {-1: 8.0, 0: 2.5, 1: 5.5} and speed["n"].to_dict() == {-1: 1, 0: 4, 1: 2}
    assert speed.loc[0, "base"] == pytest.approx(29 / 7) and np.isnan(speed.loc[-1, "ci_low"])
    # groups 5 (sum 6 of 3) and 9 (sum 4 of 1): without the one 4, without the other 2
    assert speed.loc[0, "n_groups"] == 2
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.5 * (1 + 1))
    assert speed.loc[0, "ci_high"] == pytest.approx(2.5 + half)
    one_each = pd.DataFrame(number_records(np.zeros(8, int), columns(), np.arange(8))).iloc[0]
    values = LABELS.values["speed"][np.isfinite(LABELS.values["speed"])]
    low, high = stats.t.interval(0.95, 6, values.mean(), values.std(ddof=1) / np.sqrt(7))
    assert (one_each["ci_low"], one_each["ci_high"]) == pytest.approx((low, high))


def test_a_cluster_that_is_one_seed_has_an_effective_number_of_one():
    found = {record["cluster"]: record for record in cluster_records(IDS, ROWS)}
    assert [found[k]["n"] for k in (-1, 0, 1)] == [1, 4, 3] and found[0]["share"] == 0.5
    assert found[-1]["effective_seeds"] == 1 and found[-1]["seed_entropy"] == 0
    want = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert found[0]["seed_entropy"] == pytest.approx(want)
    assert found[0]["effective_seeds"] == pytest.approx(np.exp(want))
    assert (found[0]["largest_seed"], found[0]["largest_seed_share"], found[0]["n_groups"]) == (5, 0.75, 2)
    assert found[0]["effective_checkpoints"] == pytest.approx(2)
    assert (found[1]["largest_checkpoint"], found[1]["largest_checkpoint_share"]) == (4, 1.0)
    whole = -sum(p * np.log(p) for p in (3 / 8, 3 / 8, 2 / 8))
    assert found[1]["seeds_of_all"] == pytest.approx(np.exp(whole))


def test_shown_episodes_are_the_nearest_and_those_on_the_border():
    distance = np.array([3.0, 1, 2, 0.5, 2, 1, 9, 0])
    gap = np.array([0.1, 0.9, 0.2, 0.3, 1, 1, 0.5, 0.4])
    ids, other = np.where(IDS < 0, 1, IDS), 1 - np.maximum(IDS, 0)
    found = pd.DataFrame(episode_records(ids, distance, gap, other, ROWS, 2, 1))
    shown = found.groupby(["cluster", "kind"])["row"].apply(list).to_dict()
    # at most one of a group: rows 0 to 2 are of one, 5 to 7 of another
    assert shown == {
        (0, "borderline"): [0, 3],
        (0, "representative"): [3, 1],
        (1, "borderline"): [7, 4],
        (1, "representative"): [7, 4],
    }
    assert found.iloc[0][["rank", "episode", "group", "checkpoint", "distance"]].tolist() == [1, 3, 9, 4, 0.5]
    single = episode_records(np.zeros(8, int), distance, np.ones(8), np.full(8, -1), ROWS, 9, 9)
    assert {record["kind"] for record in single} == {"representative"} and len(single) == 8
