"""Targets: edges from the training groups, classes with too few groups, units, and errors that name the label."""

import numpy as np
import pandas as pd
import pytest

from data_gen.trajectory import InputError, Labels, LabelSpec, RowIndex
from probes.labels import (
    checkpoint_target,
    group_target,
    label_units,
    make_targets,
    read_like,
    within_checkpoint_target,
)
from probes.quantiles import quantile_edges
from tests.probes.planted import CHECKPOINTS, EPISODES, N, planted_data, planted_rows


def _one(values: np.ndarray, kind: str, n_seeds: int = 40, **spec):
    rows, split = planted_rows(n_seeds)
    labels = Labels(values={"x": values}, specs=(LabelSpec("x", "x", kind, **spec),))
    return make_targets(labels, rows, split, [])[0]


def test_quantile_edges_come_from_training_rows_alone():
    rows, split = planted_rows()
    values = np.random.default_rng(0).normal(size=len(split)).astype(np.float32)
    shifted = np.where(split == 0, values, 2 * values + 0.5).astype(np.float32)
    first, second = _one(values, "quantile", bins=3), _one(shifted, "quantile", bins=3)
    np.testing.assert_array_equal(first.values[split == 0], second.values[split == 0])
    np.testing.assert_allclose(np.bincount(first.values[split == 0]) / (split == 0).sum(), 1 / 3, atol=0.01)
    low, high = np.percentile(values[split == 0].astype(float), [100 / 3, 200 / 3])
    np.testing.assert_array_equal(first.values, (values >= low).astype(int) + (values >= high))
    np.testing.assert_array_equal(second.values, (shifted >= low).astype(int) + (shifted >= high))
    assert (second.values[split == 2] != first.values[split == 2]).any()


def test_a_value_on_an_edge_is_in_the_upper_class():
    values = np.tile(np.array([0, 1, 2], np.float32), 160)
    np.testing.assert_array_equal(_one(values, "quantile", bins=2).values, values >= 1)


def test_coinciding_quantile_edges_are_one_and_the_note_says_so():
    values = np.tile(np.array([0, 1, 1, 1], np.float32), 40 * CHECKPOINTS * EPISODES // 4)
    target = _one(values, "quantile", bins=4)
    assert quantile_edges(values, 4).tolist() == [0.75, 1.0]
    assert "quantile edges coincide: 2 of 3" in target.note
    np.testing.assert_array_equal(target.values, values)


def test_a_class_in_too_few_groups_loses_its_rows_and_the_others_are_numbered_anew():
    rows, split = planted_rows()
    values = np.where(rows.episode % 2, 4, 7).astype(np.int32)
    first_test, second_test = np.unique(rows.group[split == 2])[:2]
    here = np.isin(rows.group, [0, 1, first_test, second_test]) & (rows.episode % 4 == 0)
    values[here] = 5
    target = _one(values, "class")
    assert target.failure == "" and "'5' in 2 and 2" in target.note
    np.testing.assert_array_equal(target.keep, ~here)
    np.testing.assert_array_equal(target.values[target.keep], (values == 7)[target.keep])
    assert target.classes == ("4", "7")
    values[(rows.group == 2) & (rows.episode % 4 == 0)] = 5
    assert _one(values, "class").note == ""
    values[(rows.group == first_test) & (values == 5)] = 4
    assert "'5' in 3 and 1" in _one(values, "class").note


def test_one_class_left_is_a_failure_that_says_why():
    values = np.zeros(480, np.int32)
    assert _one(values, "class").failure == "1 class left"
    values[:4] = 1
    assert "'1' in 1 and 0" in _one(values, "class").failure
    assert "never changes" in _one(values.astype(np.float32) * 0, "real").failure


def test_missing_real_values_lose_their_rows():
    values = np.random.default_rng(0).normal(size=480).astype(np.float32)
    values[[3, 400]] = np.nan
    target = _one(values, "real")
    assert target.note == "2 episodes have no value" and target.failure == ""
    assert np.flatnonzero(~target.keep).tolist() == [3, 400]


def test_the_unit_is_the_coarsest_within_which_the_label_is_constant():
    rows, _ = planted_rows()
    targets = {target.name: target for target in make_targets(**_arguments())}
    np.testing.assert_array_equal(targets["side"].unit, rows.group)
    block = rows.group * CHECKPOINTS + rows.checkpoint
    np.testing.assert_array_equal(targets["progress"].unit, block)
    np.testing.assert_array_equal(targets["mood"].unit, block)
    np.testing.assert_array_equal(targets["speed"].unit, block)
    everywhere = np.ones(len(block), bool)
    np.testing.assert_array_equal(label_units(rows.group, everywhere, rows), rows.group)
    np.testing.assert_array_equal(label_units(np.zeros(len(block), int), everywhere, rows), rows.group)


def test_a_label_of_each_agent_gives_one_target_an_agent():
    arguments = _arguments(["hill"])
    targets = make_targets(**arguments)
    assert [(target.name, target.level) for target in targets] == [(f"hill_{i}", "agent") for i in range(N)]
    for i, target in enumerate(targets):
        np.testing.assert_array_equal(target.values, arguments["labels"].values["hill"][:, i])
    assert [target.name for target in make_targets(**_arguments(["hill_1", "side"]))] == ["side", "hill_1"]


def test_an_unknown_label_is_named_with_the_nearest():
    with pytest.raises(InputError, match=r"no label 'proggress'.*nearest is 'progress'.*'hill_0'.*'mood'"):
        make_targets(**_arguments(["side", "proggress"]))


@pytest.mark.parametrize(
    ("values", "spec", "words"),
    [
        (np.zeros(480, np.float32), LabelSpec("x", "x", "class"), "holds float32"),
        (np.arange(480) % 3, LabelSpec("x", "x", "class", classes=("a", "b")), "class 0..2, but names 2 classes"),
        (np.arange(480) % 3 - 2, LabelSpec("x", "x", "class"), "class -2..0, but names 0 classes"),
        (np.zeros(480, np.float32), LabelSpec("x", "x", "quantile", 2, within="y"), "cut within 'y'"),
        (np.zeros(480, np.float32), LabelSpec("x", "x", "quantile", 2, within="x"), r"Name one that is, of \['x'\]"),
        (np.zeros(480, np.float32), LabelSpec("x", "x", "ordinal"), "the kinds are class, quantile and real"),
        (np.zeros(480, np.float32), LabelSpec("x", "x", "quantile", bins=1), "asks for 1 bins"),
        (np.zeros(480, np.float32), LabelSpec("x", "y", "real"), "made from 'y'"),
        (np.zeros(479, np.float32), LabelSpec("x", "x", "real"), "479 values for 480 episodes"),
    ],
)
def test_labels_that_do_not_fit_their_kind_are_refused(values, spec, words):
    rows, split = planted_rows()
    with pytest.raises(InputError, match=words):
        make_targets(Labels(values={"x": values}, specs=(spec,)), rows, split, [])


def test_confounds_are_the_row_index():
    rows, split = planted_rows()
    groups = group_target(rows._replace(group=rows.group * 3 + 5))
    np.testing.assert_array_equal(groups.values, rows.group)
    assert groups.level == checkpoint_target(rows, split).level == "confound"
    np.testing.assert_array_equal(checkpoint_target(rows, split).values, rows.checkpoint)
    lonely = np.arange(len(split)) >= CHECKPOINTS * EPISODES - 1
    kept = group_target(RowIndex(*(field[lonely] for field in rows))).keep
    assert not kept[0] and kept[1:].all()
    single = RowIndex(*(field[:: CHECKPOINTS * EPISODES] for field in rows))
    assert "two episodes" in group_target(single).failure
    assert "1 class left" in checkpoint_target(single, split[:: CHECKPOINTS * EPISODES]).failure


def _arguments(names: list[str] | None = None) -> dict:
    data = planted_data()
    return {"labels": data["labels"], "rows": data["rows"], "split": data["split"], "names": names or []}


def test_the_return_class_within_a_checkpoint_has_edges_of_its_own_in_each():
    rows, split = planted_rows()
    rng = np.random.default_rng(0)
    values = (5 * rows.checkpoint + rng.normal(size=len(split))).astype(np.float32)
    values[7] = np.nan
    labels = Labels(values={"team_return": values}, specs=(LabelSpec("return_class", "team_return", "quantile", 3),))
    target = within_checkpoint_target(labels, rows, split)
    assert target is not None and (target.name, target.level) == ("return_class_within_checkpoint", "confound")
    for checkpoint in range(CHECKPOINTS):
        here = (rows.checkpoint == checkpoint) & np.isfinite(values)
        low, high = np.percentile(values[here & (split == 0)].astype(float), [100 / 3, 200 / 3])
        want = (values[here] >= low).astype(int) + (values[here] >= high)
        np.testing.assert_array_equal(target.values[here], want)
        shares = np.bincount(target.values[here & (split == 0)]) / (here & (split == 0)).sum()
        np.testing.assert_allclose(shares, 1 / 3, atol=0.02)
    assert np.flatnonzero(~target.keep).tolist() == [7]
    plain = make_targets(labels, rows, split, [])[0]
    assert np.mean(plain.values[rows.checkpoint == 0] == 0) > 0.9


def test_no_return_no_return_class_within_a_checkpoint():
    rows, split = planted_rows()
    assert within_checkpoint_target(planted_data()["labels"], rows, split) is None
    flat = rows.checkpoint.astype(np.float32)
    labels = Labels(values={"r": flat}, specs=(LabelSpec("return_class", "r", "quantile", 3),))
    target = within_checkpoint_target(labels, rows, split)
    assert target is not None and target.failure.startswith("1 class left; quantile edges coincide in 3 checkpoint(s)")
    unseen = within_checkpoint_target(labels, rows, np.where(rows.checkpoint == 1, 2, split).astype(np.int32))
    assert unseen is not None and not unseen.keep[rows.checkpoint == 1].any()


def _within(values: np.ndarray, layout: np.ndarray, split: np.ndarray) -> Labels:
    spec = LabelSpec("return_class", "team_return", "quantile", 3, within="layout")
    return Labels(values={"team_return": values, "layout": layout}, specs=(spec,))


def test_a_label_within_another_has_the_training_edges_of_each_of_its_classes():
    rows, split = planted_rows()
    rng = np.random.default_rng(1)
    layout = rng.integers(0, 4, len(split)).astype(np.int32)
    layout[split == 0] = np.minimum(layout[split == 0], 2)  # layout 3 is in no training episode
    layout[[5, 6]] = -1
    values = (10 * layout + rng.normal(size=len(split))).astype(np.float32)
    values[400] = np.nan
    labels = _within(values, layout, split)
    target = make_targets(labels, rows, split, [])[0]
    frame = pd.DataFrame({"layout": layout, "value": values.astype(float), "train": split == 0})
    for name, one in frame[(frame.layout >= 0) & (frame.layout < 3)].groupby("layout"):
        low, high = one.value[one.train].quantile([1 / 3, 2 / 3])
        want = (one.value >= low).astype(int) + (one.value >= high)
        here = one.index[one.value.notna()]
        np.testing.assert_array_equal(target.values[here], want[here], err_msg=str(name))
    lost = np.isin(layout, [-1, 3]) | np.isnan(values)
    np.testing.assert_array_equal(target.keep, ~lost)
    missing = (lost & np.isfinite(values)).sum()
    assert target.note == (
        f"1 episodes have no value; {missing} episodes have no quantile edges, since their class of 'layout' is not "
        "known or has no training episode"
    )
    # Layout alone says nothing of this label, though it says nearly all of the return.
    assert abs(np.corrcoef(target.values[~lost], layout[~lost])[0, 1]) < 0.15
    moved = np.where(split == 0, values, 2 * values).astype(np.float32)
    again = make_targets(_within(moved, layout, split), rows, split, [])[0]
    np.testing.assert_array_equal(again.values[split == 0], target.values[split == 0])


def test_other_episodes_are_read_at_the_edges_of_their_own_class():
    rows, split = planted_rows()
    rng = np.random.default_rng(2)
    layout = rng.integers(0, 2, len(split)).astype(np.int32)
    values = (10 * layout + rng.normal(size=len(split))).astype(np.float32)
    stored = _within(values, layout, split)
    target = make_targets(stored, rows, split, [])[0]
    np.testing.assert_array_equal(read_like(target, stored, split, stored), target.values)
    fresh = _within(np.array([0, 10, 10, 0, np.nan], np.float32), np.array([0, 1, 0, -1, 1], np.int32), split[:5])
    assert read_like(target, stored, split, fresh).tolist() == [1, 1, 2, -1, -1]


def test_the_class_within_a_checkpoint_keeps_to_the_class_that_its_label_is_cut_within():
    rows, split = planted_rows()
    rng = np.random.default_rng(3)
    layout = rng.integers(0, 2, len(split)).astype(np.int32)
    values = (10 * layout + 30 * rows.checkpoint + rng.normal(size=len(split))).astype(np.float32)
    target = within_checkpoint_target(_within(values, layout, split), rows, split)
    assert target is not None and target.keep.all()
    for checkpoint in range(CHECKPOINTS):
        for one in (0, 1):
            here = (rows.checkpoint == checkpoint) & (layout == one)
            low, high = np.percentile(values[here & (split == 0)].astype(float), [100 / 3, 200 / 3])
            np.testing.assert_array_equal(target.values[here], (values[here] >= low) * 1 + (values[here] >= high))


def test_a_class_that_is_not_known_loses_its_rows():
    values = np.tile(np.array([0, 1, 2], np.int32), 160)
    values[[0, 7]] = -1
    target = _one(values, "class", classes=("a", "b", "c"))
    assert np.flatnonzero(~target.keep).tolist() == [0, 7] and target.note == "2 episodes have no value"
    assert target.classes == ("a", "b", "c") and target.failure == ""
    np.testing.assert_array_equal(target.values[target.keep], values[target.keep])
