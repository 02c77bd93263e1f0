"""The completeness figure draws the curve it was given."""

from typing import cast

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from probes.concepts.figure import HIGHEST_SHOWN, completeness_curves, look


def curve() -> pd.DataFrame:
    values = {"goal": [0.2, 0.9, 7.0], "speed": [-0.1, 0.4, 0.6], "noise": [np.nan] * 3}
    rows = [
        {"label": label, "g": g, "n_concepts": m, "completeness": value + shift, "chosen": m == 2}
        for g, shift in (("linear", 0.0), ("mlp", 0.05))
        for label, of_label in values.items()
        for m, value in enumerate(of_label, start=1)
    ]
    return pd.DataFrame(rows)


def drawn(ax: Axes, i: int) -> list[list[float]]:
    """The y values of the lines in the colour of label i: its curve, then the number chosen."""
    lines = [line for line in ax.get_lines() if line.get_color() == look(i)[0]]
    return [np.asarray(line.get_ydata(), float).round(6).tolist() for line in lines]


def test_every_label_with_a_value_is_a_line_and_the_number_chosen_is_marked():
    figure = completeness_curves(curve())
    linear, mlp = (cast(Axes, ax) for ax in figure.axes)
    assert drawn(linear, 0) == [[0.2, 0.9, HIGHEST_SHOWN], [0.9]]
    assert drawn(mlp, 1) == [[-0.05, 0.45, 0.65], [0.45]]
    assert drawn(linear, 2) == []
    assert {"undefined: noise", "all of z_ω", "floor"} <= {text.get_text() for text in linear.texts}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["goal", "speed", "noise"]


def test_labels_do_not_share_a_look():
    assert len({look(i) for i in range(21)}) == 21
