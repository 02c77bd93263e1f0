"""Fits on few groups against plain ones, and subsets that are nested and stratified."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from probes.features import standardise
from probes.labels import make_targets
from probes.probe import Probe
from probes.scores import point
from probes.table.efficiency import COLUMNS, FEATURES, Subset, fit_subset, group_order, nested_subsets
from probes.table.exam import group_exam
from probes.table.table import label_efficiency
from tests.probes.oracles_scores import balanced_accuracy
from tests.probes.planted import QUICK, planted_data

CONFIG = Probe(**(QUICK | {"probes": ["linear"], "efficiency": [2, 4, 16], "efficiency_repeats": 2}))


def _exam(label: str):
    data = planted_data()
    (target,) = make_targets(data["labels"], data["rows"], data["split"], [label])
    return data, group_exam(target, data["rows"], data["split"], CONFIG)


def test_subsets_are_nested_whole_groups_and_all_groups_come_once():
    data, exam = _exam("mood")
    group = data["rows"].group
    subsets = nested_subsets("mood", exam, group, CONFIG)
    assert {size: len(repeats) for size, repeats in subsets.items()} == {2: 2, 4: 2, 16: 2, 20: 1}
    for repeat in range(2):
        held = [set(group[subsets[size][repeat].rows]) for size in (2, 4, 16)]
        assert [len(one) for one in held] == [2, 4, 16] and held[0] < held[1] < held[2]
        for size in (2, 4, 16):
            one = subsets[size][repeat]
            np.testing.assert_array_equal(one.groups, group[one.rows])
            np.testing.assert_array_equal(one.rows, exam.train[np.isin(group[exam.train], list(set(one.groups)))])
    assert set(group[subsets[2][0].rows]) != set(group[subsets[2][1].rows])
    np.testing.assert_array_equal(subsets[20][0].rows, exam.train)


def test_a_class_of_whole_groups_is_dealt_in_turns():
    groups = np.repeat(np.arange(12), 3)
    y = np.repeat([0] * 8 + [1] * 3 + [2], 3)
    orders = [group_order(y, groups, "class", np.random.default_rng(seed)) for seed in range(8)]
    for order in orders:
        assert sorted(order) == list(range(12)) and {y[3 * g] for g in order[:3]} == {0, 1, 2}
        assert sorted(y[3 * g] for g in order[3:7]) == [0, 0, 1, 1]
    assert len({tuple(order) for order in orders}) > 4
    mixed = [tuple(group_order(np.arange(36) % 2, groups, "class", np.random.default_rng(s))) for s in range(3)]
    assert len(set(mixed)) == 3


def test_a_fit_on_a_subset_is_that_of_its_rows_alone():
    data, exam = _exam("mood")
    rng = np.random.default_rng(0)
    x = (data["encoded"].z_omega[0] + 1.5 * rng.normal(size=(480, 7))).astype(float)
    rows = np.flatnonzero(data["rows"].group < 4)
    sums = fit_subset(x, exam, Subset(rows, data["rows"].group[rows]), Probe(strengths=[0.1], folds=2))
    y = exam.values
    model = LogisticRegression(C=1 / (0.1 * len(rows)), class_weight="balanced").fit(x[rows], y[rows])
    assert point(sums) == pytest.approx(balanced_accuracy(y[exam.test], model.predict(x[exam.test])), abs=0.02)
    ones = rows[y[rows] == 1]
    alone = fit_subset(x, exam, Subset(ones, data["rows"].group[ones]), CONFIG)
    assert point(alone) == pytest.approx(1 / 3)


def test_the_frame_rises_to_the_value_of_all_groups_and_notes_missing_classes():
    data = planted_data(n_seeds=20)
    rng = np.random.default_rng(1)
    blurred = data["encoded"].z_omega + 0.7 * rng.normal(size=(2, 240, 7)).astype(np.float32)
    data["encoded"] = data["encoded"]._replace(
        z_omega=blurred,
        z_alpha=np.repeat(data["encoded"].z_alpha, 2, 0),
        random_encoder=np.repeat(data["encoded"].random_encoder, 2, 0),
    )
    config = Probe(**(QUICK | {"labels": ["side"], "efficiency": [2, 4], "efficiency_repeats": 3}))
    table = label_efficiency(config, **data)
    assert list(table.columns) == COLUMNS and len(table) == len(FEATURES) * 3
    own = table[(table["features"] == "z_omega") & (table["label"] == "side")].set_index("n_train_groups")
    assert own.index.tolist() == [2, 4, 10] and own.value[2] < own.value[10] and own.value[10] > 0.7
    assert ((own.ci_low <= own.value) & (own.value <= own.ci_high)).all() and (own["note"] == "").all()
    split, side = data["split"], data["labels"].values["side"]
    train, test, values = split == 0, split == 2, []
    for x in blurred:
        x = standardise(x, train, together=False)
        models = [
            LogisticRegression(C=1 / (s * train.sum()), class_weight="balanced").fit(x[train], side[train])
            for s in QUICK["strengths"]
        ]
        values.append([balanced_accuracy(side[test], model.predict(x[test])) for model in models])
    assert np.min(values, 1).mean() - 1e-9 <= own.value[10] <= np.max(values, 1).mean() + 1e-9
    data["labels"].values["side"][:] = data["rows"].group % 3
    lacking = label_efficiency(config, **data)
    few = lacking[(lacking["label"] == "side") & (lacking["features"] == "pca")].set_index("n_train_groups")
    assert few.note[2] == "3 of 3 subsets lack a class" and few.note[4] == few.note[10] == ""
