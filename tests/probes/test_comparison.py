"""Runs side by side: values and paired differences are those of one probe table, and of a plain refit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from data_gen.trajectory import InputError
from probes.comparison.comparison import COLUMNS, compare, reading, wide
from probes.comparison.figure import comparison_figure
from probes.probe import Probe
from probes.table.significance import holm
from tests.probes.oracles_scores import balanced_accuracy
from tests.probes.planted import QUICK, planted_data, row_of, table_of

LABELS = ["side", "mood", "speed", "hill"]
DATA = planted_data()
KNOWN = {name: DATA[name] for name in ("rows", "split", "labels")}
Z, NOTHING = DATA["encoded"].z_omega, DATA["encoded"].random_encoder


def compared(latents: dict[str, np.ndarray], reference: str, **settings) -> pd.DataFrame:
    return compare(Probe(**QUICK | {"labels": LABELS, "probes": ["linear"], **settings}), latents, reference, **KNOWN)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return compared({"full": Z, "empty": NOTHING, "twin": Z.copy()}, "empty")


def row(table: pd.DataFrame, run: str, label: str) -> pd.Series:
    return table[(table.run == run) & (table.label == label)].iloc[0]


def test_values_and_differences_are_those_that_one_table_of_both_latents_has(table):
    whole = table_of(DATA, labels=LABELS, probes=["linear"])
    assert list(table.columns) == COLUMNS and len(table) == 3 * 5
    for label in ("side", "mood", "speed", "hill_0", "hill_1"):
        ours, theirs, other = row(table, "full", label), row_of(whole, label), row_of(whole, label, "random_encoder")
        for name in ("value", "ci_low", "ci_high", "chance", "n_groups"):
            assert ours[name] == theirs[name]
        for mine, its in (("reference", "this"), ("low", "low"), ("high", "high")):
            assert ours[f"minus_{mine}"] == other[f"zw_minus_{its}"]
        assert ours.p_value == other.p_value


def test_a_value_is_what_a_plain_refit_gives(table):
    train, test = KNOWN["split"] == 0, KNOWN["split"] == 2
    y, x = KNOWN["labels"].values["mood"], Z[0]
    x = (x - x[train].mean(0)) / x[train].std(0)
    found = []
    for strength in QUICK["strengths"]:
        model = LogisticRegression(C=1 / (strength * train.sum()), class_weight="balanced", max_iter=300)
        found.append(balanced_accuracy(y[test], model.fit(x[train], y[train]).predict(x[test])))
    assert np.isclose(found, row(table, "full", "mood").value).any()


def test_the_reference_has_no_difference_and_equal_runs_have_none(table):
    assert table[table.run == "empty"][["minus_reference", "p_value", "p_holm"]].isna().all().all()
    same = compared({"full": Z, "twin": Z.copy()}, "full")
    twin = same[same.run == "twin"]
    assert (twin[["minus_reference", "minus_low", "minus_high"]] == 0).all().all()
    assert row(table, "full", "mood").minus_low > 0


def test_p_values_are_corrected_over_all_runs_and_labels(table):
    told = table.p_value.notna()
    assert told.sum() == 10
    np.testing.assert_allclose(table.p_holm[told], holm(table.p_value[told].to_numpy()))


def test_a_label_that_cannot_be_evaluated_is_a_row_that_says_why():
    labels = KNOWN["labels"]
    flat = labels._replace(values=labels.values | {"mood": np.zeros(len(KNOWN["split"]), np.int32)})
    config = Probe(**QUICK | {"probes": ["linear"]})
    found = compare(config, {"full": Z, "empty": NOTHING}, "full", **KNOWN | {"labels": flat})
    assert row(found, "empty", "mood").note.startswith("not evaluated: ") and np.isnan(
        row(found, "empty", "mood").value
    )
    shown = wide(found)
    assert list(shown.run) == ["full", "empty"] and list(shown.mood) == ["not evaluated"] * 2
    how, *notes = reading(found)
    assert "the linear probe of z_omega" in how and "difference to full [paired]" in how
    (mood,) = [note for note in notes if note.startswith("mood: not evaluated: ")]
    assert mood.endswith(".") and mood.count("not evaluated") == 1  # once, not once a run


def test_runs_with_another_number_of_encoder_seeds_are_compared():
    both = np.concatenate([Z, Z + 1e-3 * NOTHING])
    found = compared({"two": both, "one": Z}, "one", labels=["mood"])
    assert list(found.n_encoders) == [2, 1] and abs(found.minus_reference[0]) < 0.02


def test_a_run_whose_latent_is_not_finite_has_an_empty_cell_and_the_others_their_values(table):
    bad = Z.copy()
    bad[0, 5, 2] = np.nan
    found = compared({"full": Z, "bad": bad, "empty": NOTHING}, "empty", labels=["mood"])
    assert list(found.run) == ["full", "bad", "empty"]
    for name in ("value", "ci_low", "ci_high", "minus_reference", "p_value"):
        assert row(found, "full", "mood")[name] == row(table, "full", "mood")[name]
        assert np.isnan(row(found, "bad", "mood")[name])
    assert list(wide(found).mood)[1] == "not evaluated"
    said = "not evaluated: z_omega of bad is nan at row 5, column 2, and 1 value(s) in all"
    assert row(found, "bad", "mood").note == said and f"mood: {said}." in reading(found)
    shown = comparison_figure(found).axes[0].lines[0].get_xdata()
    assert np.isnan(shown).tolist() == [False, True, False]
    with pytest.raises(InputError, match="reference cannot be compared with: z_omega of bad is nan at row 5, column 2"):
        compared({"bad": bad, "full": Z}, "bad")


def test_the_figure_shows_every_run_and_label(table):
    figure = comparison_figure(table)
    assert len(figure.axes) == 2 * 5
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["full", "empty", "twin"]
    values = figure.axes[0].lines[0].get_xdata()
    np.testing.assert_allclose(values, [row(table, run, "side").value for run in ("full", "empty", "twin")])
