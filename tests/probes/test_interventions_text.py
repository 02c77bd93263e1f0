"""Interventions as text and as curves, among them what could not be evaluated and what broke down."""

import numpy as np
import pandas as pd
import pytest

from probes.interventions.figure import intervention_figure
from probes.interventions.rows import COLUMNS, CURVE_COLUMNS
from probes.interventions.text import format_interventions, sentences
from probes.interventions.used import decodable_and_used


@pytest.fixture
def effects() -> pd.DataFrame:
    shared = {"label": "goal", "possible": 1.0, "note": "", "n_pairs": 9, "n_groups": 7, "failed": 0.0}
    shared |= {"return_before": 8.0, "return_after": 2.5, "outside_before": 0.01, "outside_after": 0.02}
    rows = [
        {"kind": kind, "effect": 0.5, "ci_low": 0.25, "ci_high": 0.75, "minus_control_low": 0.1} | shared
        for kind in ("swap", "swap_local", "interpolate", "direction")
    ]
    rows[0] |= {"changed": 0.82, "changed_low": 0.7, "changed_high": 0.9, "stayed": 0.1, "reproduced": 0.9}
    lost = {"label": "mood", "kind": "swap", "note": "not evaluated: 1 class left"}
    return pd.DataFrame.from_records([dict.fromkeys(COLUMNS, np.nan) | row for row in [*rows, lost]], columns=COLUMNS)


def test_the_tables_hold_the_numbers_and_say_why_one_is_missing(effects) -> None:
    probes = {"label": ["goal"], "features": ["z_omega"], "probe": ["linear"], "metric": "balanced_accuracy"}
    linear = pd.DataFrame(probes | {"value": 0.9, "ci_low": 0.8, "ci_high": 0.95, "chance": 0.2})
    joined = decodable_and_used(effects, linear)
    np.testing.assert_allclose(joined.loc[0, ["decodable", "decodable_low", "used"]].astype(float), [0.7, 0.6, 0.5])
    assert list(joined.reading) == ["decodable, used", "not evaluated"]
    text = format_interventions(effects, joined)
    assert "+.50 [+.25, +.75]" in text and "+.70 [+.60, +.75]" in text and "8.0 → 2.5" in text
    assert "mood: not evaluated: 1 class left." in text


def test_a_sentence_says_what_the_swap_changed_and_what_broke_down(effects) -> None:
    (said, _) = sentences(effects)
    assert ".82 [.70, .90] to the other episode's, while .10 stay" in said and "physics" not in said
    assert "beyond the training" not in said
    effects["failed"], effects["outside_after"] = 0.25, 0.4
    (said, _) = sentences(effects)
    assert "physics failed in 25.0% of the rollouts" in said and ".40 after the swap, .01 before" in said


def test_the_figure_has_two_panels_a_label() -> None:
    rows = [
        ("goal", kind, at, at, at - 0.1, at + 0.1, 1, 0, 0) for kind in ("interpolate", "probe") for at in (0.0, 1.0)
    ]
    figure = intervention_figure(pd.DataFrame(rows, columns=CURVE_COLUMNS))
    left, right = figure.axes
    np.testing.assert_array_equal(left.lines[0].get_xydata(), [[0, 0], [1, 1]])
    assert left.get_title(loc="left") == "goal" and right.get_xlabel() == "shift, training deviations"
