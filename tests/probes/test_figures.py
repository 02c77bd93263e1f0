"""What is drawn is what was given: values are read back from the figures and compared with hand-made ones."""

from typing import cast

import matplotlib.colors as mcolors
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from sklearn.decomposition import PCA

from data_gen.trajectory import Labels, LabelSpec
from probes.report import figures
from probes.report.figures import learning_curves, normalise, probe_panels, probed_labels, series, training_curves
from probes.report.figures_plane import (
    Colour,
    Plane,
    Track,
    class_colours,
    colours_of,
    in_order,
    latent_maps,
    project,
    tracks,
)

BASELINES = {"random": 2.0, "scripted": 12.0}


def ydata(ax: Axes, colour: str) -> list[list[float]]:
    """The y values of every line of a colour."""
    lines = [line for line in ax.get_lines() if line.get_color() == colour]
    return [np.asarray(line.get_ydata(), float).tolist() for line in lines]


def metrics() -> list[dict]:
    rows = [
        {"step": 50 * k, "beta_omega": min(1, k % 4 / 2), "beta_alpha": 0.5 * min(1, k % 4 / 2), "recon": -10.0 + k}
        | {"train_bound": -12.0 + k, "kl_omega": 2.0 * k, "kl_alpha": 3.0 * k}
        for k in range(1, 9)
    ]
    rows[3] |= {"val_bound": -9.5, "active_omega": 2, "active_alpha": 4, "cycle_end": True, "best_step": 200}
    rows[7] |= {"val_bound": -11.0, "active_omega": 3, "active_alpha": 5, "cycle_end": True, "best_step": 200}
    return rows


def table() -> pd.DataFrame:
    rows = []
    for label, metric, chance in (
        ("checkpoint", "balanced_accuracy", 0.2),
        ("goal", "balanced_accuracy", 0.25),
        ("speed", "r2", 0.0),
    ):
        for probe, shift in (("linear", 0.0), ("mlp", 0.05)):
            for k, features in enumerate(("majority", "hand", "z_omega", "odd_one")):
                value = chance + 0.1 * k + shift
                control = np.nan if features == "majority" else chance - 0.01
                rows.append(
                    dict(label=label, features=features, probe=probe, metric=metric, value=value, ci_low=value - 0.04)
                    | dict(ci_high=value + 0.03, chance=chance, control=control, note="", n_groups=16, selectivity=0.1)
                    | dict(zw_minus_this=0.2 - 0.1 * k, zw_minus_low=0.0, zw_minus_high=0.3)
                )
    rows.append(
        dict(label="rare", features="z_omega", probe="linear", metric="r2", n_groups=0, note="not evaluated: <3")
    )
    return pd.DataFrame(rows)


def test_returns_are_normalised():
    curves = np.array([[2.0, 7.0, 12.0], [-3.0, 2.0, 17.0]], np.float32)
    expected = [[0, 0.5, 1], [-0.5, 0, 1.5]]
    np.testing.assert_allclose(normalise(curves, BASELINES), expected)
    assert normalise(curves, {"random": 1.0}) is None and normalise(curves, {"random": 1.0, "scripted": 1.0}) is None


@pytest.mark.parametrize("baselines", [BASELINES, {}])
def test_learning_curves_show_every_seed_and_the_median(baselines: dict[str, float]):
    curves = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    (ax,) = learning_curves(curves, baselines, [0, 7]).axes
    expected = (curves - 2) / 10 if baselines else curves
    np.testing.assert_allclose(ydata(ax, figures.PALETTE[4]), expected, rtol=1e-5)
    np.testing.assert_allclose(ydata(ax, figures.PALETTE[0]), [np.sort(expected, axis=0)[2]], rtol=1e-5)
    assert {line.get_xdata()[0] for line in ax.get_lines() if line.get_color() == figures.MARKED} == {0, 7}  # pyright: ignore
    assert ydata(ax, figures.DARK) == ([[0, 0], [1, 1]] if baselines else [])


def test_learning_curves_pass_over_updates_in_which_no_episode_ended():
    curves = np.array([[np.nan, 2, np.nan, 4, np.nan], [np.nan, 6, 1, np.nan, np.nan]], np.float32)
    (ax,) = learning_curves(curves, {}).axes
    lines = [line for line in ax.get_lines() if line.get_color() == figures.PALETTE[4]]
    assert [np.asarray(line.get_xdata()).tolist() for line in lines] == [[2, 4], [2, 3]]
    assert ydata(ax, figures.PALETTE[4]) == [[2, 4], [6, 1]] and ydata(ax, figures.PALETTE[0]) == [[4, 1, 4]]


def test_series_skip_rows_without_a_value():
    rows = [
        {"step": 1, "x": 2.0},
        {"step": 2},
        {"step": 3, "x": None},
        {"step": 4, "x": float("nan")},
        {"step": 5, "x": 0},
    ]
    steps, values = series(rows, "x")
    assert steps.tolist() == [1, 5] and values.tolist() == [2, 0]
    assert series([], "x")[0].size == 0


def test_training_curves_show_what_was_logged():
    beta, bound, divergence, active = training_curves(metrics()).axes
    assert ydata(beta, figures.PALETTE[0]) == [[0.5, 1, 1, 0, 0.5, 1, 1, 0]]
    assert ydata(beta, figures.PALETTE[1]) == [[0.25, 0.5, 0.5, 0, 0.25, 0.5, 0.5, 0]]
    assert ydata(bound, figures.PALETTE[0]) == [[-12 + k for k in range(1, 9)]]
    assert [-9.5, -11.0] in ydata(bound, figures.PALETTE[5])
    assert ydata(divergence, figures.PALETTE[1]) == [[3 * k for k in range(1, 9)]]
    assert ydata(active, figures.PALETTE[0]) == [[2, 3]] and ydata(active, figures.PALETTE[1]) == [[4, 5]]


def test_training_curves_mark_cycle_ends_and_the_chosen_checkpoint():
    figure = training_curves(metrics())
    for ax in figure.axes:
        upright = [line for line in ax.get_lines() if np.asarray(line.get_ydata()).tolist() == [0, 1]]
        found = [(line.get_color(), line.get_xdata()[0]) for line in upright]  # pyright: ignore
        assert found == [(figures.PALE, 200), (figures.PALE, 400), (figures.MARKED, 200)]
    assert figure.axes[0].get_title(loc="left") == "chosen checkpoint: step 200"


def test_training_curves_of_a_run_that_has_just_begun():
    figure = training_curves(metrics()[:1])
    assert figure.axes[0].get_title(loc="left") == ""
    figure.canvas.draw()


def test_labels_without_a_value_are_left_out_and_confounds_come_last():
    assert probed_labels(table()) == ["goal", "speed", "checkpoint"]


def test_probe_panels_show_the_table():
    axes = probe_panels(table()).axes
    assert [ax.get_title(loc="left") for ax in axes] == ["goal", "speed", "confound: checkpoint"]
    for ax, label, chance in zip(axes, ("goal", "speed", "checkpoint"), (0.25, 0.0, 0.2), strict=True):
        assert [text.get_text() for text in axes[0].get_yticklabels()] == [
            "z_ω",
            "hand features",
            "majority",
            "odd_one",
        ]
        drawn = {}
        for line in ax.get_lines():
            if line.get_marker() in ("o", "D"):
                (x,), (y,) = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
                drawn[line.get_marker(), round(y)] = round(float(x), 6)
        given = table()[table()["label"] == label]
        for row in given.to_dict("records"):  # pyright: ignore
            place = ["z_omega", "hand", "majority", "odd_one"].index(row["features"])
            assert drawn.pop(({"linear": "o", "mlp": "D"}[row["probe"]], place)) == pytest.approx(row["value"])
            bars = [np.asarray(line.get_xdata(), float).tolist() for line in ax.get_lines()]
            assert [row["ci_low"], row["ci_high"]] in bars
        assert not drawn
        crosses = [np.asarray(line.get_xdata(), float)[0] for line in ax.get_lines() if line.get_marker() == "x"]
        np.testing.assert_allclose(np.array(crosses)[np.isfinite(crosses)], [chance - 0.01] * 6)
        dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
        assert [np.asarray(line.get_xdata()).tolist() for line in dashed] == [[chance, chance]]


def test_a_value_far_below_zero_is_an_arrow_at_the_edge():
    rows = table()
    rows.loc[(rows["label"] == "speed") & (rows["features"] == "hand"), ["value", "ci_low", "ci_high"]] = [
        -2.0,
        -3.0,
        -1.0,
    ]
    ax = probe_panels(rows).axes[1]
    arrows = [line for line in ax.get_lines() if line.get_marker() == "<"]
    assert [round(float(np.asarray(line.get_ydata())[0])) for line in arrows] == [1, 1]
    assert all(ax.get_xlim()[0] < float(np.asarray(line.get_xdata())[0]) == figures.LOWEST_SHOWN for line in arrows)


def test_principal_components_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    z = (rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5)) + 3).astype(np.float32)
    plane, oracle = project(z), PCA(2).fit(z)
    np.testing.assert_allclose(plane.explained, oracle.explained_variance_ratio_, rtol=1e-4)
    np.testing.assert_allclose(abs(plane.points), abs(oracle.transform(z)), rtol=1e-3, atol=1e-4)
    assert np.corrcoef(plane.points.T)[0, 1] == pytest.approx(0, abs=1e-6)


def test_a_latent_of_one_dimension_or_none_that_varies_is_drawn_too():
    one = project(np.arange(4, dtype=np.float32)[:, None])
    assert one.explained.tolist() == pytest.approx([1, 0]) and (one.points[:, 1] == 0).all()
    assert project(np.ones((4, 3), np.float32)).explained.tolist() == [0, 0]


def test_colours_follow_the_labels():
    labels = Labels(
        values={
            "team_return": np.array([0.5, 1.5, 2.5], np.float32),
            "goal": np.array([3, 0, 3], np.int32),
            "known": np.array([1, -1, 0], np.int32),
            "hill": np.array([[0, 1], [1, 1], [0, 0]], np.int32),
        },
        specs=(
            LabelSpec("return_class", "team_return", "quantile", 3),
            LabelSpec("goal", "goal", "class", classes=("a", "b", "c", "none")),
            LabelSpec("known", "known", "class", classes=("no", "yes")),
            LabelSpec("hill", "hill", "class"),
        ),
    )
    found = [(c.title, c.values.tolist(), c.classes) for c in colours_of(labels)]
    assert found == [
        ("team_return (return_class)", [0.5, 1.5, 2.5], ()),
        ("goal", [1, 0, 1], ("a", "none")),
        ("known", [2, 0, 1], ("not known", "no", "yes")),
        ("hill, agent 0", [0, 1, 0], ("0", "1")),
        ("hill, agent 1", [1, 1, 0], ("0", "1")),
    ]


@pytest.mark.parametrize(
    ("classes", "ordered"),
    [
        (("checkpoint 0", "checkpoint 1", "checkpoint 2"), True),
        (("1", "2", "10"), True),
        (("2", "1", "3"), False),
        (("a 1", "b 2", "a 3"), False),
        (("none", "1", "2"), False),
        (("0", "1"), False),
    ],
)
def test_ordered_classes_are_told_by_their_names(classes: tuple[str, ...], ordered: bool):
    assert in_order(classes) is ordered


def test_many_classes_keep_the_most_frequent():
    classes = tuple("abcdefghij")
    codes = np.repeat(np.arange(10), [9, 8, 1, 7, 6, 2, 5, 4, 3, 0])
    colours, names = class_colours(codes, classes)
    assert names == ["a", "b", "", "d", "e", "", "g", "h", "i", ""]
    assert [colours[k] for k in (2, 5, 9)] == [figures.PALE] * 3
    assert sorted(c for c, name in zip(colours, names, strict=True) if name) == sorted(figures.PALETTE)


def test_latent_maps_colour_each_point_by_its_own_class():
    points = np.random.default_rng(1).normal(size=(30, 2))
    codes = np.random.default_rng(2).integers(0, 2, 30)
    numbers = np.arange(30.0)
    numbers[4] = np.nan
    plane = Plane(points=points, explained=np.array([0.6, 0.3]))
    figure = latent_maps(plane, [Colour("side", codes, ("left", "right")), Colour("speed", numbers, ())])
    figure.canvas.draw()
    side, speed = (cast(PathCollection, figure.axes[k].collections[0]) for k in (0, 1))
    drawn = {
        tuple(xy): mcolors.to_hex(c)
        for xy, c in zip(np.asarray(side.get_offsets()), side.get_facecolors(), strict=True)
    }  # pyright: ignore
    for xy, code in zip(points, codes, strict=True):
        assert drawn[tuple(xy)].upper() == figures.PALETTE[code]
    shown = {
        tuple(xy): value
        for xy, value in zip(np.asarray(speed.get_offsets()), np.asarray(speed.get_array()), strict=True)
    }
    assert shown == {tuple(xy): value for xy, value in zip(points, numbers, strict=True) if np.isfinite(value)}
    assert (
        figure.axes[0].get_xlabel() == "PC 1 (60% of variance)"
        and figure.axes[0].get_ylabel() == "PC 2 (30% of variance)"
    )


def test_tracks_break_where_an_agent_is_absent():
    xy = np.arange(5 * 3 * 2, dtype=np.float32).reshape(5, 3, 2)
    present = np.ones((5, 3), bool)
    present[[0, 2], 0] = False
    present[:, 2] = False
    hill = {"name": "A", "x": 1.0, "y": 2.0, "radius": 0.5, "height": 0.5}
    plain = {"name": "B", "x": 0.0, "y": 0.0, "radius": 0.5}
    figure = tracks([Track("one", xy, present), Track("two", xy, present)], [hill, plain], 3)
    ax = figure.axes[0]
    path, start, end = (line for line in ax.get_lines() if line.get_color() == figures.PALETTE[0])
    nan = np.nan
    np.testing.assert_array_equal(path.get_xdata(), [nan, 6, nan, 18, 24])
    np.testing.assert_array_equal(path.get_ydata(), [nan, 7, nan, 19, 25])
    assert [start.get_xdata()[0], end.get_xdata()[0]] == [6, 24]  # pyright: ignore
    assert [start.get_markerfacecolor(), end.get_markerfacecolor()] == ["white", figures.PALETTE[0]]
    assert ydata(ax, figures.PALETTE[2]) == []
    assert [text.get_text() for text in ax.texts] == ["A: 0.5", "B: 1"]
    assert {patch.center for patch in ax.patches} == {(1.0, 2.0), (0.0, 0.0)}  # pyright: ignore
