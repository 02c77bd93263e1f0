"""The tables of coupling as a whole, their figures and their words."""

from typing import cast

import numpy as np
import pytest
from matplotlib.axes import Axes

from data_gen.trajectory import InputError, RowIndex
from probes.coupling.coupling import Coupling, CouplingTables, coupling_tables
from probes.coupling.figure import contingency_figure, coupling_figure
from probes.coupling.text import coupling_sentences
from probes.report.figures import DARK, PALETTE
from tests.probes.planted_teams import grid_rows, teams

QUICK = Coupling(permutations=199, bootstrap=100)


def planted(n_groups: int = 12) -> dict:
    """Agents 0 and 1 are coupled, agent 2 is not; the team is paid for having learned. Latents show the clusters."""
    rng = np.random.default_rng(0)
    rows = grid_rows(n_groups, 4, 6)
    ids = teams(rows, True, rng)
    return {
        "joint_clusters": ids[:, 0].copy(),
        "agent_clusters": ids,
        "z_alpha": np.eye(4)[ids] * 4 + 0.5 * rng.normal(size=(*ids.shape, 4)),
        "present": np.ones(ids.shape, bool),
        "returns": (ids < 3).sum(1) + 0.1 * rng.normal(size=len(ids)),
        "rows": rows,
    }


@pytest.fixture(scope="module")
def tables() -> CouplingTables:
    return coupling_tables(QUICK, **planted())


def test_the_coupled_pair_alone_is_coupled_and_its_regions_alone_are_tight(tables: CouplingTables):
    p = {(row["first"], row["second"]): row["p_holm"] for row in tables.pairs.to_dict("records")}
    assert p["z_alpha_0", "z_alpha_1"] <= 0.015 and p["z_omega", "z_alpha_0"] <= 0.015
    assert p["z_alpha_0", "z_alpha_2"] > 0.05 < p["z_alpha_1", "z_alpha_2"]
    learned = tables.images[tables.images["region"] != "3"].to_dict("records")
    coupled = [row["p"] for row in learned if {row["agent"], row["image"]} == {0, 1}]
    apart = [row["p"] for row in learned if 2 in (row["agent"], row["image"])]
    assert len(coupled) == 6 and np.mean(np.array(coupled) <= 0.05) > 0.8 and np.mean(np.array(apart) <= 0.05) < 0.2
    assert np.nanmax(coupled) < np.median(apart)


def test_absent_agents_have_no_cluster_and_no_image():
    arguments = planted()
    gone = arguments["rows"].episode % 5 == 0
    arguments["present"][gone, 1] = False
    arguments["z_alpha"][gone, 1] = 1e3
    found = coupling_tables(QUICK, **arguments)
    left = {(row["first"], row["second"]): row["left_out"] for row in found.pairs.to_dict("records")}
    assert left["z_alpha_0", "z_alpha_1"] == gone.sum() == left["z_omega", "z_alpha_1"]
    assert left["z_alpha_0", "z_alpha_2"] == 0
    assert found.images.loc[found.images["image"] == 1, "spread"].max() < 2
    of_agent = found.images[(found.images["agent"] == 1) & (found.images["image"] == 0)]
    assert of_agent["n_episodes"].sum() == (~gone).sum()


def test_the_same_seed_gives_the_same_numbers_in_any_order_of_the_rows(tables: CouplingTables):
    arguments = planted()
    order = np.random.default_rng(3).permutation(len(arguments["returns"]))
    moved = {name: value[order] for name, value in arguments.items() if name != "rows"}
    found = coupling_tables(QUICK, **moved, rows=RowIndex(*(column[order] for column in arguments["rows"])))
    for one, other in zip(found, tables, strict=True):
        assert one.equals(other) or np.allclose(
            one.select_dtypes("number"), other.select_dtypes("number"), equal_nan=True
        )


def test_groups_without_a_common_checkpoint_are_refused():
    arguments = planted(2)
    rows = arguments["rows"]
    arguments["rows"] = rows._replace(checkpoint=(rows.checkpoint + 10 * rows.group).astype(np.int32))
    with pytest.raises(InputError, match="no checkpoint is held by all 2 groups"):
        coupling_tables(QUICK, **arguments)


def test_figures_show_the_tables(tables: CouplingTables):
    left, right = (cast(Axes, ax) for ax in coupling_figure(tables.pairs, tables.images).axes)
    dots = [line for line in left.get_lines() if line.get_marker() == "o"]
    assert [np.asarray(line.get_xdata())[0] for line in dots] == tables.pairs["nmi"].tolist()
    kinds = [PALETTE[1] if kind == "agents" else PALETTE[0] for kind in tables.pairs["kind"]]
    assert [line.get_color() for line in dots] == kinds
    hollow = [line.get_markerfacecolor() == "white" for line in dots]
    assert hollow == (tables.pairs["p_holm"] >= 0.05).tolist() and True in hollow and False in hollow
    crosses = [line for line in left.get_lines() if line.get_marker() == "x"]
    assert [np.asarray(line.get_xdata())[0] for line in crosses] == tables.pairs["null_mean"].tolist()
    assert {line.get_color() for line in crosses} == {DARK}
    marks = [line for line in right.get_lines() if line.get_marker() != "None"]
    shown = [(np.asarray(line.get_xdata())[0], np.asarray(line.get_ydata())[0]) for line in marks]
    assert shown == list(zip(tables.images["spread"], tables.images["return_mean"], strict=True))
    first = cast(Axes, contingency_figure(tables.contingency, tables.pairs).axes[0])
    best = tables.pairs.sort_values("nmi").iloc[-1]
    here = (tables.contingency["first"] == best["first"]) & (tables.contingency["second"] == best["second"])
    np.testing.assert_allclose(np.asarray(first.images[0].get_array()).ravel(), tables.contingency[here]["share"])


def test_the_words_say_what_is_coupled_how_tight_and_what_to_doubt(tables: CouplingTables):
    pairs, regions = coupling_sentences(tables)
    assert pairs.startswith("1 of 3 pairs of agents have coupled clusters")
    assert "z_α of agent 0 with z_α of agent 1" in pairs and "same pace" in pairs and "are few" not in pairs
    tested = tables.images["p_holm"]
    assert regions.startswith(f"{(tested < 0.05).sum()} of {tested.notna().sum()} images")
    few = coupling_sentences(coupling_tables(QUICK, **planted(3)))[0]
    assert "3 groups are few: no p below 0.17 is possible" in few
    assert "possible after Holm" not in pairs


def test_what_no_permutation_could_show_is_said(tables: CouplingTables):
    """199 permutations give no p below .005, which Holm over 24 images makes .12."""
    few = tables._replace(images=tables.images.head(9))
    assert (tables.images["p_least"] == 1 / 200).all() and len(tables.images) == 24
    assert "no p below 0.12 is possible after Holm over 24" in coupling_sentences(tables)[1]
    assert "possible after Holm" not in coupling_sentences(few)[1]
    pairs, regions = coupling_sentences(coupling_tables(QUICK, **planted(3)))
    assert "To doubt: 3 groups are few; no p below 1 is possible after Holm over " in regions
    assert "no p below 0.5 is possible after Holm over 3" in pairs


def test_one_group_and_one_agent_have_words_and_figures_too():
    alone = planted(1)
    found = coupling_tables(QUICK, **alone)
    assert "was not evaluated: 1 group, and 2 can be permuted" in coupling_sentences(found)[0]
    assert found.images["p"].isna().all() and coupling_sentences(found)[1].startswith("How tight")
    coupling_figure(found.pairs, found.images)
    contingency_figure(found.contingency, found.pairs)
    single = planted() | {name: planted()[name][:, :1] for name in ("agent_clusters", "z_alpha", "present")}
    assert "there is one agent" in coupling_sentences(coupling_tables(QUICK, **single))[0]


@pytest.mark.parametrize("settings", [{"permutations": 18}, {"bootstrap": 39}, {"seed": -1}])
def test_settings_that_make_no_sense_are_refused(settings: dict):
    with pytest.raises(InputError, match="at least 19 permutations"):
        Coupling(**settings)
