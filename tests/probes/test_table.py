"""The table on planted data: positive control, both controls, confounds, refusals, and the same for any jobs."""

import numpy as np
import pandas as pd
import pytest

import probes.probe
from data_gen.trajectory import Features, InputError, LabelSpec
from probes.bootstrap import draw_weights, sample
from probes.labels import make_targets
from probes.probe import Probe, choose_strength, predict
from probes.scores import class_sums, interval, point
from probes.table.exam import Result, group_exam, run_exam
from probes.table.rows import COLUMNS, own_columns
from probes.table.table import probe_table
from tests.probes.oracles_scores import balanced_accuracy, resample
from tests.probes.planted import GIVEN, QUICK, planted_data, row_of, table_of, with_z_omega


@pytest.fixture(scope="module")
def whole() -> pd.DataFrame:
    return table_of(planted_data(), labels=["side", "progress", "mood", "hill", "speed"])


def test_the_columns_are_those_of_the_issue_and_every_row_is_there_once(whole):
    assert list(whole.columns[:17]) == (
        "label,level,features,probe,metric,value,ci_low,ci_high,chance,control,selectivity,"
        "zw_minus_this,zw_minus_low,zw_minus_high,n_groups,n_rows,note"
    ).split(",")
    assert list(whole.columns) == COLUMNS
    labels = ["side", "progress", "mood", "hill_0", "hill_1", "speed", "split_group", "checkpoint"]
    assert list(whole["label"].unique()) == labels
    keys = whole[["label", "features", "probe"]].drop_duplicates()
    assert len(keys) == len(whole) == len(labels) * len(GIVEN) * 2
    assert set(whole["level"]) == {"team", "agent", "confound"}
    assert set(whole[whole["level"] == "agent"]["label"]) == {"hill_0", "hill_1"}


@pytest.mark.parametrize("label", ["side", "progress", "mood", "speed"])
@pytest.mark.parametrize("probe", ["linear", "mlp"])
def test_a_label_that_z_omega_holds_is_read(whole, label, probe):
    row = row_of(whole, label, probe=probe)
    assert row["value"] > (0.8 if row["metric"] == "r2" else 0.9) and row["ci_low"] <= row["value"] <= row["ci_high"]
    assert row["n_groups"] == 12 and row["n_rows"] == 144
    assert row["minus_control_low"] > 0
    for name in ("majority", "pca", "raw", "hand", "random_encoder", "z_alpha"):
        other = row_of(whole, label, name, probe)
        assert other["zw_minus_this"] == pytest.approx(row["value"] - other["value"])
        assert other["zw_minus_low"] > 0


def test_what_holds_nothing_is_at_chance_and_the_majority_exactly_there(whole):
    for label, chance in (("side", 1 / 2), ("progress", 1 / 3), ("mood", 1 / 3), ("speed", 0.0), ("hill_1", 1 / 2)):
        assert row_of(whole, label)["chance"] == chance
        for probe in ("linear", "mlp"):
            assert row_of(whole, label, "majority", probe)["value"] == pytest.approx(chance, abs=1e-9)
        assert row_of(whole, label, "random_encoder")["value"] == pytest.approx(chance, abs=0.15)
    assert row_of(whole, "hill_0")["value"] == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize(("label", "chance"), [("side", 1 / 2), ("progress", 1 / 3), ("mood", 1 / 3), ("speed", 0.0)])
def test_the_negative_control_sits_at_chance_for_every_unit(label, chance):
    """Constant in a seed; constant in (seed, checkpoint); a class and a number of each episode."""
    data, config = planted_data(), Probe(**(QUICK | {"permutations": 60}))
    (target,) = make_targets(data["labels"], data["rows"], data["split"], [label])
    exam = group_exam(target, data["rows"], data["split"], config)
    result = run_exam(data["encoded"].z_omega[0].astype(float), exam, "linear", config)
    assert len(result.negative) == 60 and point(result.task) > 0.9
    assert np.mean([point(sums) for sums in result.negative]) == pytest.approx(chance, abs=0.05)


@pytest.mark.parametrize(("probe", "fits"), [("mlp", 2), ("linear", 2 * 4 + 1)])
def test_the_task_is_fitted_at_the_chosen_strength_which_the_mlps_choice_has_done(monkeypatch, probe, fits):
    few = {"permutations": 0, "mlp_permutations": 0, "strengths": [1.0, 0.1], "mlp_strengths": [0.1, 0.01], "folds": 4}
    data, config, made = planted_data(), Probe(**(QUICK | few)), []
    (target,) = make_targets(data["labels"], data["rows"], data["split"], ["mood"])
    exam = group_exam(target, data["rows"], data["split"], config)._replace(drawn_score=np.zeros(0, int))
    x, y, real = data["encoded"].z_omega[0].astype(float), exam.values, probes.probe.fit
    monkeypatch.setattr(probes.probe, "fit", lambda *given: made.append(given) or real(*given))
    found = run_exam(x, exam, probe, config)
    assert len(made) == fits
    strength = choose_strength(probe, exam.kind, x, y, exam.folds[probe], config).strength
    guess = predict(probe, exam.kind, x[exam.train], y[exam.train], x[exam.test], strength, config)
    wanted = class_sums(y[exam.test], guess.values, exam.groups[exam.test], (exam.n_groups, exam.n_classes))
    np.testing.assert_array_equal(found.task.hits, wanted.hits)


def test_a_permutation_is_scored_against_its_own_labels_and_no_choice_sees_the_test_rows():
    data, config = planted_data(), Probe(**QUICK)
    (target,) = make_targets(data["labels"], data["rows"], data["split"], ["mood"])
    exam, split, group = group_exam(target, data["rows"], data["split"], config), data["split"], data["rows"].group
    permuted = run_exam(data["encoded"].z_omega[0].astype(float), exam, "linear", config).negative[0]
    for place, seed in enumerate(np.unique(group[split == 2])):
        counts = np.bincount(exam.permuted[0][group == seed], minlength=3)
        np.testing.assert_array_equal(permuted.totals[place], counts)
    ((fit, scored),) = exam.folds["mlp"]
    np.testing.assert_array_equal(fit, np.flatnonzero(split == 0))
    np.testing.assert_array_equal(scored, np.flatnonzero(split == 1))
    for fit, scored in exam.folds["linear"]:
        assert (split[np.concatenate([fit, scored])] == 0).all()


def test_the_margin_over_the_control_is_a_paired_bootstrap():
    rng = np.random.default_rng(0)
    groups, y, guess = np.repeat(np.arange(6), 10), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    fakes = [(rng.integers(0, 2, 60), rng.integers(0, 2, 60)) for _ in range(3)]
    result = Result(
        task=class_sums(y, guess, groups, (6, 2)),
        negative=[class_sums(truth, said, groups, (6, 2)) for truth, said in fakes],
        memorised=0.25,
        macro_f1=np.nan,
        auroc=np.nan,
        code_bits=np.nan,
        note="",
    )
    weights = draw_weights(0, "label", 6, {1}, 50)
    columns = own_columns(sample([result.task], weights), [result], weights)
    control = np.mean([balanced_accuracy(truth, said) for truth, said in fakes])
    assert columns["control"] == pytest.approx(control)
    assert columns["minus_control"] == pytest.approx(balanced_accuracy(y, guess) - control)
    assert columns["selectivity"] == pytest.approx(balanced_accuracy(y, guess) - 0.25)
    margins = []
    for counts in weights.groups:
        rows = resample(groups, counts)
        drawn = [balanced_accuracy(truth[rows], said[rows]) for truth, said in fakes]
        margins.append(balanced_accuracy(y[rows], guess[rows]) - np.mean(drawn))
    got = columns["minus_control_low"], columns["minus_control_high"]
    assert got == pytest.approx(interval(np.array(margins), 6))


def test_a_code_of_the_unit_memorises_and_so_is_not_selective():
    data = planted_data()
    data = with_z_omega(data, 10 * np.eye(40, dtype=np.float32)[data["rows"].group])
    row = row_of(table_of(data, labels=["side"], probes=["linear"]), "side")
    assert row["value"] == pytest.approx(0.5, abs=0.01)
    assert row["selectivity"] == pytest.approx(row["value"] - 1.0, abs=0.01)
    data = with_z_omega(data, data["labels"].values["side"][:, None].astype(np.float32))
    row = row_of(table_of(data, labels=["side"], probes=["linear"]), "side")
    assert row["value"] == 1.0 and row["selectivity"] > 0.3


def test_a_code_of_the_checkpoint_block_memorises_where_the_label_is_constant_in_the_block():
    data = planted_data()
    data = with_z_omega(data, 10 * np.eye(120, dtype=np.float32)[data["rows"].group * 3 + data["rows"].checkpoint])
    row = row_of(table_of(data, labels=["progress"], probes=["linear"]), "progress")
    assert row["selectivity"] == pytest.approx(1 / 3 - 1.0, abs=0.02)


def test_the_group_is_read_from_its_code_and_at_chance_from_noise():
    data = planted_data()
    data = with_z_omega(data, 10 * np.eye(40, dtype=np.float32)[data["rows"].group])
    table = table_of(data, labels=["side"])
    for probe in ("linear", "mlp"):
        row = row_of(table, "split_group", probe=probe)
        assert row["value"] > 0.9 and row["chance"] == 1 / 40 and row["n_groups"] == 40 and row["n_rows"] == 240
        assert np.isnan(row["control"]) and np.isnan(row["selectivity"]) and "split within groups" in row["note"]
    noise = row_of(table, "split_group", "random_encoder")
    assert noise["value"] == pytest.approx(1 / 40, abs=0.05) and noise["zw_minus_low"] > 0.8
    assert noise["ci_low"] < noise["value"] < noise["ci_high"]
    # One seed of 40 is always right: it is in a draw Poisson(1) times, of which the 97.5 % quantile is 3.
    assert row_of(table, "split_group", "majority")["ci_high"] == pytest.approx(3 / 40)


def test_the_checkpoint_rows_are_those_of_a_label_that_is_the_checkpoint(whole):
    for features in GIVEN:
        for probe in ("linear", "mlp"):
            progress, checkpoint = (row_of(whole, name, features, probe) for name in ("progress", "checkpoint"))
            assert progress["value"] == checkpoint["value"]


def test_the_same_for_any_number_of_jobs_and_for_any_choice_of_labels(whole):
    part = table_of(planted_data(), labels=["mood"], probes=["mlp"], jobs=2)
    chosen = whole[whole["label"].isin(part["label"]) & (whole["probe"] == "mlp")].reset_index(drop=True)
    assert list(part["label"].unique()) == ["mood", "split_group", "checkpoint"]
    # Holm's correction alone depends on how many labels are asked about.
    part, chosen = (frame.drop(columns="p_holm") for frame in (part, chosen))
    pd.testing.assert_frame_equal(part, chosen, check_exact=True)
    other = table_of(planted_data(n_seeds=20), labels=["mood"], seed=1, probes=["linear"])
    again = table_of(planted_data(n_seeds=20), labels=["mood"], seed=2, probes=["linear"])
    assert row_of(other, "mood")["control"] != row_of(again, "mood")["control"]


def test_progress_counts_every_fit():
    seen = []
    data = planted_data(n_seeds=20)
    probe_table(Probe(**QUICK, labels=["side"], probes=["linear"]), **data, progress=lambda *now: seen.append(now))
    total = 3 * (len(GIVEN) - 1)
    assert seen == [(i + 1, total) for i in range(total)]


def test_few_test_groups_and_controls_that_were_not_run_are_noted():
    row = row_of(table_of(planted_data(n_seeds=20), labels=["side"], probes=["linear"], permutations=0), "side")
    assert row["n_groups"] == 6 and "only 6 test groups" in row["note"] and "negative control not run" in row["note"]
    assert np.isnan(row["control"]) and np.isnan(row["minus_control"])
    data = planted_data()
    data["rows"] = data["rows"]._replace(checkpoint=data["rows"].episode)
    row = row_of(table_of(data, labels=["mood"], probes=["linear"]), "mood")
    assert np.isnan(row["selectivity"]) and "no unit has two episodes" in row["note"]
    failed = table_of(data, labels=["mood"], probes=["linear"])
    assert row_of(failed, "checkpoint")["note"].startswith("not evaluated: 0 class left")


def test_a_fit_that_did_not_converge_is_flagged(monkeypatch):
    monkeypatch.setattr(probes.probe, "LBFGS_STEPS", 1)
    row = row_of(table_of(planted_data(), labels=["mood"], probes=["linear"]), "mood")
    assert "lbfgs did not converge at strength" in row["note"] and "fits of strength choice" in row["note"]


def test_a_label_that_cannot_be_evaluated_is_one_row_unless_it_was_named():
    data = planted_data()
    data["labels"].values["hill"][:, 1] = 1
    table = table_of(data, labels=["hill"], probes=["linear"])
    row = row_of(table, "hill_1")
    assert row["note"] == "not evaluated: 1 class left" and np.isnan(row["value"]) and row["n_groups"] == 0
    assert not np.isnan(row_of(table, "hill_0")["value"])
    with pytest.raises(InputError, match="'hill_1' cannot be evaluated. hill_1: 1 class left"):
        table_of(data, labels=["side", "hill_1"])
    constant = data["labels"]._replace(specs=(LabelSpec("hill_1", "one", "class"),), values={"one": np.ones(480, int)})
    with pytest.raises(InputError, match="no label that can be evaluated. hill_1: 1 class left"):
        table_of(data | {"labels": constant})


def test_splits_that_share_a_group_or_leave_nothing_to_fit_are_refused():
    data = planted_data()
    straddling = data["split"].copy()
    straddling[data["rows"].episode == 100] = 2
    with pytest.raises(InputError, match="group 8 has episodes in more than one split.*1 group"):
        table_of(data | {"split": straddling})
    with pytest.raises(InputError, match="the train split is empty"):
        table_of(data | {"split": np.full_like(straddling, 2)})


def test_a_label_may_not_take_a_confounds_name():
    data = planted_data()
    named = data["labels"]._replace(specs=(LabelSpec("checkpoint", "mood", "class"),))
    with pytest.raises(InputError, match="kept for the confound rows"):
        table_of(data | {"labels": named})


def test_where_hand_features_hold_more_the_paired_difference_is_below_zero():
    data = planted_data()
    mood = data["labels"].values["mood"]
    blurred = np.eye(3, dtype=np.float32)[mood] + np.random.default_rng(0).normal(size=(480, 3)).astype(np.float32)
    data = with_z_omega(data, blurred) | {"hand": Features(np.eye(3, dtype=np.float32)[mood], names=("a", "b", "c"))}
    hand = row_of(table_of(data, labels=["mood"], probes=["linear"]), "mood", "hand")
    assert hand["value"] == 1.0 and hand["zw_minus_high"] < 0
