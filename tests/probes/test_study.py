"""What the study says of planted tables."""

import numpy as np
import pandas as pd
import pytest

from probes.study.page import by_features, markdown, spread_of, write_study
from probes.study.study import bars, best_arm, for_validation, mean_skill, reached, schedule_verdict


def rows(label: str, z_omega: float, pca_low: float, ceiling: float) -> list[dict]:
    shared = {
        "label": label,
        "level": "team",
        "metric": "balanced_accuracy",
        "chance": 0.25,
        "ci_low": 0.1,
        "ci_high": 0.9,
    }
    share = (z_omega - 0.25) / (ceiling - 0.25) if ceiling > 0.25 else np.nan
    own = {"zw_minus_this": np.nan, "zw_minus_low": np.nan, "zw_minus_high": np.nan, "of_ceiling": share}
    paired = {
        "zw_minus_this": pca_low + 0.1,
        "zw_minus_low": pca_low,
        "zw_minus_high": pca_low + 0.2,
        "of_ceiling": 0.1,
    }
    return [
        shared | own | {"features": "z_omega", "probe": "linear", "value": z_omega},
        shared | own | {"features": "z_omega", "probe": "mlp", "value": 0.99},
        shared | paired | {"features": "pca", "probe": "linear", "value": z_omega - pca_low - 0.1},
        shared | own | {"features": "supervised", "probe": "end_to_end", "value": ceiling},
    ]


PROBES = pd.DataFrame(
    rows("near", 0.93, 0.05, 1.0)
    + rows("far", 0.5, 0.02, 1.0)
    + rows("no_better", 0.95, -0.01, 1.0)
    + rows("hopeless", 0.25, 0.0, 0.25)
    + [
        {
            "label": "gone",
            "level": "team",
            "features": "z_omega",
            "probe": "linear",
            "note": "not evaluated: 1 class left",
        }
    ]
)
LABELS = ["near", "far", "no_better", "hopeless", "gone"]


def test_each_label_is_held_against_both_bars() -> None:
    found = bars(PROBES, LABELS).set_index("label")
    assert found.near_ceiling[["near", "far", "no_better", "hopeless"]].tolist() == [True, False, True, False]
    assert found.beats_pca[["near", "far", "no_better", "hopeless"]].tolist() == [True, True, False, False]
    assert found.z_omega["near"] == 0.93 and found.supervised["near"] == 1.0
    assert "not evaluated" in found.note["gone"] and "does not beat chance" in found.note["hopeless"]


def test_a_label_that_could_not_be_evaluated_counts_against_the_bar() -> None:
    assert reached(bars(PROBES, LABELS), "near_ceiling") == "2 of 5 labels (not reached)"
    assert reached(bars(PROBES, ["near", "no_better", "far"]), "near_ceiling") == "2 of 3 labels (reached)"


def test_skill_is_over_chance_and_of_the_linear_probe_of_z_omega() -> None:
    found = mean_skill(PROBES)
    assert found["near"] == pytest.approx((0.93 - 0.25) / 0.75) and found["hopeless"] == 0 and "gone" not in found
    assert found["mean_skill"] == pytest.approx(np.mean([0.68, 0.25, 0.7, 0.0]) / 0.75)


def test_the_search_sees_validation_groups_in_the_place_of_test_groups() -> None:
    keep, split = for_validation(np.array([0, 2, 1, 0, 2, 1], np.int32))
    np.testing.assert_array_equal(keep, [0, 2, 3, 5])
    np.testing.assert_array_equal(split, [0, 2, 0, 2])


def test_the_best_arm_is_the_first_of_the_highest() -> None:
    assert best_arm(pd.DataFrame({"arm": ["a", "b", "c"], "mean_skill": [0.1, 0.4, 0.4]})) == "b"


def test_an_arm_that_diverged_is_not_the_best() -> None:
    assert best_arm(pd.DataFrame({"arm": ["a", "b", "c"], "mean_skill": [0.1, np.nan, 0.2]})) == "c"


def test_schedules_stand_apart_by_two_standard_errors() -> None:
    table = pd.DataFrame(
        {
            "schedule": ["cyclical"] * 4 + ["monotonic"] * 4 + ["constant"] * 4,
            "mean_skill": [0.50, 0.52, 0.48, 0.50] + [0.49, 0.51, 0.50, 0.47] + [0.30, 0.33, 0.29, 0.30],
        }
    )
    said = schedule_verdict(table)
    assert said.startswith("cyclical has the highest")
    assert "+0.008 over monotonic (not told apart)" in said and "+0.195 over constant (apart)" in said
    assert spread_of(table, "schedule").mean_skill.tolist()[2] == "0.30 (0.02)"


def test_the_page_holds_every_section_and_hand_written_notes(tmp_path) -> None:
    schedules = pd.DataFrame(
        {
            "schedule": ["cyclical"] * 2 + ["constant"] * 2,
            "mean_skill": [0.4, 0.5, 0.1, 0.2],
            "verdict": "healthy",
            "seed": "one",
        }
    )
    tables = {
        "search": pd.DataFrame({"arm": ["default", "gru"], "mean_skill": [0.2, 0.3]}),
        "probes": PROBES,
        "schedules": schedules,
        "worth": pd.DataFrame({"label": ["near"], "nats": [3.25], "entropy": [1.1]}),
        "decodable_and_used": pd.DataFrame({"label": ["near"], "used": [0.7]}),
        "interventions": pd.DataFrame({"label": ["near"], "kind": ["swap"], "changed": [0.86]}),
        "concepts": pd.DataFrame({"label": ["near"], "completeness": [0.9]}),
        "generalisation": pd.DataFrame(
            [
                {
                    "scored_on": "test groups",
                    "label": "near",
                    "features": "z_omega",
                    "probe": "linear",
                    "value": 0.9,
                    "chance": 0.5,
                }
            ]
        ),
    }
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "notes.md").write_text("## What I make of it\n")
    steps = pd.DataFrame({"step": ["python -m launch.train"], "seconds": [5400], "processor_seconds": [9000]})
    easy = tables | {"probes": PROBES[PROBES.label == "near"], "schedules": pd.DataFrame()}
    write_study(tmp_path, {"meadow": tables, "wood": easy}, {"meadow": LABELS, "wood": ["near"] * 4}, steps, seeds=5)
    page = (tmp_path / "study.md").read_text()
    for said in (
        "1.5 hours added up, and 2.5 hours of processor",
        "| near | 3.25 | 1.1 |",
        "**gru**",
        "2 of 5 labels (not reached)",
        "chance: 6 of 9 labels (reached). Above PCA",
        "cyclical has the highest",
        "What I make of it",
    ):
        assert said in page
    assert pd.read_csv(tmp_path / "study" / "meadow_probes.csv").value[0] == 0.93
    assert [one.name for one in (tmp_path / "study").glob("*_schedules.csv")] == ["meadow_schedules.csv"]


def test_markdown_has_a_row_a_line_and_leaves_missing_numbers_empty() -> None:
    table = pd.DataFrame({"a": [1.23456, np.nan], "b": ["x|y", "z"]})
    assert markdown(table) == "| a | b |\n| --- | --- |\n| 1.23 | x\\|y |\n|  | z |\n"
    assert list(by_features(PROBES, ["near"]).columns) == ["label", "z_omega", "pca", "supervised"]
