"""Words against rows made by hand."""

import numpy as np
import pandas as pd

from probes.features import FEATURES
from probes.labels import WITHIN
from probes.table.findings import format_table, sentences
from probes.table.table import COLUMNS

NAN = np.nan


def _rows(label: str, values: dict[str, float], gaps: dict[str, tuple[float, float]], **more) -> list[dict]:
    shared = {"label": label, "level": "team", "probe": "linear", "metric": "balanced_accuracy", "chance": 0.33}
    empty = dict.fromkeys(COLUMNS, NAN) | {"n_groups": 16, "n_rows": 99, "note": ""}
    rows = []
    for name, value in values.items():
        low, high = gaps.get(name, (NAN, NAN))
        span = {"value": value, "ci_low": value - 0.05, "ci_high": value + 0.05}
        gap = {"zw_minus_this": values["z_omega"] - value, "zw_minus_low": low, "zw_minus_high": high}
        rows.append(empty | shared | span | (gap if name in gaps else {}) | {"features": name})
    rows[0] |= {"control": 0.34, "minus_control": 0.28, "minus_control_low": 0.2, "selectivity": 0.21} | more
    return rows


def _table(**more) -> pd.DataFrame:
    values = {"z_omega": 0.62, "majority": 0.33, "pca": 0.6, "hand": 0.71, "random_encoder": 0.4}
    gaps = {"majority": (0.2, 0.3), "pca": (-0.02, 0.05), "hand": (-0.15, -0.02), "random_encoder": (0.1, 0.3)}
    return pd.DataFrame(_rows("return_class", values, gaps, **more), columns=COLUMNS)


def test_a_finding_says_what_is_beaten_what_is_better_and_what_is_level():
    assert sentences(_table()) == [
        "return_class (linear): z_omega .62 [.57, .67], chance .33; beats majority, random_encoder and its negative "
        "control; better than z_omega: hand (.71); no clear difference from pca; selectivity +.21."
    ]


def test_a_margin_that_reaches_zero_is_not_told_apart_from_the_control():
    (said,) = sentences(_table(minus_control_low=-0.01, note="only 7 test groups"))
    assert "NOT told apart from its negative control" in said and "and its negative control" not in said
    assert said.endswith("; note: only 7 test groups.")


def test_labels_are_sorted_with_the_confounds_last_and_failures_say_why():
    seed = _rows("split_group", {"z_omega": 0.5, "majority": 0.33}, {"majority": (0.1, 0.2)}, minus_control=NAN)
    checkpoint = _rows("checkpoint", {"z_omega": 0.35}, {}, minus_control=NAN)
    failed = dict.fromkeys(COLUMNS, NAN) | {"label": "a", "probe": "linear", "features": "z_omega"}
    failed |= {"note": "not evaluated: 1 class left"}
    table = pd.DataFrame([*seed, *checkpoint, *_table().to_dict("records"), failed], columns=COLUMNS)
    said = sentences(table)
    starts = ["a: not evaluated: 1 class left.", "return_class", "checkpoint", "split_group"]
    assert [line.startswith(start) for line, start in zip(said, starts, strict=True)] == [True] * 4
    assert "does not tell the checkpoint" in said[2] and "z_omega tells the group" in said[3]


def test_the_text_table_marks_the_best_and_what_is_clearly_better():
    text = format_table(_table(value=0.0))
    lines = {
        name: line for name in FEATURES for line in text.splitlines() if f" {name} " in f" {line} " and "  " in line
    }
    assert "hand * !" in lines["hand"] and ".71 [.66, .76]" in lines["hand"] and "-.09 [-.15, -.02]" in lines["hand"]
    assert "*" not in lines["pca"] and "!" not in lines["pca"]
    assert max(map(len, text.split("\n\n")[0].splitlines())) <= 108 and "…" not in text
    within = format_table(
        pd.DataFrame(_rows(WITHIN, {"z_omega": 0.5, "hand": 0.4}, {"hand": (-0.15, 0.3)}), columns=COLUMNS)
    )
    assert "return | checkpoint" in within and "…" not in within
    assert "\x1b" not in text and "better than z_omega: hand (.71)" in text


def test_a_value_of_one_keeps_its_digit():
    assert "1.00 [.95, 1.05]" in format_table(_table(value=1.0, ci_low=0.95, ci_high=1.05))
