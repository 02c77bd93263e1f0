"""The whole search on planted latents: what is found, what is undefined, and what may not have an influence."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from data_gen.trajectory import InputError, Labels, LabelSpec, RowIndex
from probes.concepts.concepts import ConceptTables, concept_tables
from probes.concepts.episodes import make_up, nearest_rows
from probes.concepts.vectors import Concepts, concept_scores
from probes.features import standardise
from probes.labels import Target, make_targets
from probes.probe import Probe
from probes.report.figures import records
from probes.scores import point
from probes.table.exam import group_exam, run_exam
from tests.probes.test_concept_vectors import matched

GROUPS, EACH, WIDTH, K = 40, 16, 6, 3
# Patterns lie at the corners of a cube and the planted concepts are its axes, so salience would pull concepts off them.
CONFIG = Concepts(most=4, salience=0.02, starts=2, nearest=5, per_group=2)
PROBE = Probe(probes=["linear"], strengths=[1e-2, 1e-4], bootstrap=300, permutations=0, jobs=1)


def planted(seed: int = 0) -> dict:
    """A latent of K orthogonal concepts, each there or not; `pattern` says which are, `noise` nothing."""
    rng = np.random.default_rng(seed)
    n = GROUPS * EACH
    there = rng.integers(0, 2, (n, K))
    directions = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    z = (2.0 * there - 1) @ directions[:K] + 0.15 * rng.normal(size=(n, WIDTH))
    values = {
        "pattern": (there @ [1, 2, 4]).astype(np.int32),
        "noise": rng.integers(0, 3, n).astype(np.int32),
        "strength": (2.0 * there[:, 0] - 1 + 0.2 * rng.normal(size=n)).astype(np.float32),
        "agent": rng.integers(0, 2, (n, 2)).astype(np.int32),
    }
    group = np.repeat(np.arange(GROUPS), EACH).astype(np.int32)
    number = np.arange(n, dtype=np.int32)
    rows = RowIndex(episode=number, group=group, checkpoint=number % 4, t0=0 * number)
    split = np.repeat([0, 1, 2], [20, 8, 12])[group].astype(np.int32)
    specs = [LabelSpec(name, name, "class") for name in ("pattern", "noise", "agent")]
    labels = Labels(values=values, specs=(*specs, LabelSpec("strength", "strength", "real")))
    targets = make_targets(labels, rows, split, [])
    return {"z_omega": z, "rows": rows, "split": split, "targets": targets, "planted": directions[:K]}


def tables(data: dict, config: Concepts = CONFIG, probe: Probe = PROBE) -> ConceptTables:
    return concept_tables(config, probe, **{name: data[name] for name in ("z_omega", "rows", "split", "targets")})


def only(data: dict, *names: str) -> dict:
    return data | {"targets": tuple(target for target in data["targets"] if target.name in names)}


def vectors_of(found: ConceptTables, label: str) -> np.ndarray:
    return of_label(found.vectors, label)[[f"z_{i}" for i in range(WIDTH)]].to_numpy(float)


@pytest.fixture(scope="module")
def found() -> ConceptTables:
    return tables(planted())


def row_of(found: ConceptTables, label: str) -> dict[str, Any]:
    (row,) = [row for row in records(found.concepts) if row["label"] == label]
    return row


def of_label(table: pd.DataFrame, label: str) -> pd.DataFrame:
    return pd.DataFrame(table[table["label"] == label]).reset_index(drop=True)


def test_planted_concepts_are_complete_at_their_number_and_not_below(found):
    row = row_of(found, "pattern")
    assert row["n_concepts"] == K and row["completeness"] > 0.93 and row["floor"] == 1 / 2**K
    assert row["ci_low"] <= row["completeness"] <= row["ci_high"] and row["n_groups"] == 12
    curve = of_label(found.curve, "pattern")["completeness"].tolist()
    # One concept is on or off, so it tells 2 of the 8 patterns apart.
    assert curve[0] < 0.2 and curve[1] < 0.8 and curve[2] > 0.93


def test_planted_directions_are_found_up_to_their_sign(found):
    data = planted()
    scale = data["z_omega"][data["split"] == 0].std(0)
    vectors = vectors_of(found, "pattern")
    # The label of all patterns stays the same when a concept is turned round, so each may be found as its opposite.
    both = np.concatenate([vectors, -vectors])
    assert matched(both, data["planted"] / scale).min() > 0.95


def test_a_real_target_needs_the_one_concept_that_it_follows(found):
    row = row_of(found, "strength")
    assert row["n_concepts"] == 1 and row["completeness"] == pytest.approx(1, abs=0.05) and row["metric"] == "r2"
    assert abs(matched(vectors_of(found, "strength"), planted()["planted"][:1])[0]) > 0.85


def test_a_label_that_the_latent_does_not_hold_is_undefined_and_shows_no_concept(found):
    row = row_of(found, "noise")
    assert np.isnan([row["completeness"], row["ci_low"], row["ci_high"]]).all() and "undefined" in row["note"]
    assert "noise" not in set(found.vectors["label"]) | set(found.episodes["label"])
    assert set(found.concepts["label"]) == {"pattern", "noise", "strength"}, "labels of one agent have no concepts"


def test_the_full_score_is_that_of_the_probe_table(found):
    data = planted()
    for target in data["targets"]:
        if target.level == "team":
            exam = group_exam(target, data["rows"], data["split"], PROBE)
            z = standardise(data["z_omega"], data["split"] == 0, False)
            assert row_of(found, target.name)["full"] == pytest.approx(point(run_exam(z, exam, "linear", PROBE).task))


def test_test_groups_choose_nothing(found):
    data = only(planted(), "pattern")
    test = data["split"] == 2
    (target,) = data["targets"]
    wrong = test & (np.random.default_rng(0).random(len(test)) < 0.3)
    other = data | {"targets": (target._replace(values=np.where(wrong, (target.values + 1) % 8, target.values)),)}
    other["z_omega"] = data["z_omega"] + 0.5 * test[:, None] * data["planted"][0]
    again = tables(other)
    pd.testing.assert_frame_equal(again.curve, of_label(found.curve, "pattern"))
    np.testing.assert_array_equal(vectors_of(again, "pattern"), vectors_of(found, "pattern"))
    assert 0.4 < row_of(again, "pattern")["full"] < 0.8 < row_of(found, "pattern")["full"]


def test_the_order_of_the_rows_does_not_matter(found):
    data = planted()
    order = np.random.default_rng(0).permutation(len(data["split"]))
    turned = {"z_omega": data["z_omega"][order], "split": data["split"][order]}
    turned["rows"] = RowIndex(*(column[order] for column in data["rows"]))
    turned["targets"] = tuple(
        target._replace(values=target.values[order], keep=target.keep[order], unit=target.unit[order])
        for target in data["targets"]
    )
    again = tables(turned)
    for name in ("concepts", "curve", "vectors"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))
    renamed = again.episodes.assign(row=order[again.episodes["row"]])
    pd.testing.assert_frame_equal(renamed, found.episodes)


def test_a_label_has_the_same_rows_alone_and_without_validation_groups_the_training_groups_choose(found):
    data = only(planted(), "strength")
    alone = tables(data | {"split": np.where(data["split"] == 1, 0, data["split"]).astype(np.int32)})
    row = row_of(alone, "strength")
    assert row["n_concepts"] == 1 and row["completeness"] == pytest.approx(1, abs=0.05)
    assert row_of(tables(data), "strength") == row_of(found, "strength")


def test_episodes_are_the_nearest_test_rows_with_at_most_two_of_a_group(found):
    data = planted()
    z = standardise(data["z_omega"], data["split"] == 0, False)
    vectors = vectors_of(found, "pattern")
    pattern = next(target for target in data["targets"] if target.name == "pattern")
    test = np.flatnonzero(data["split"] == 2)
    for j, vector in enumerate(vectors):
        of_pattern = of_label(found.episodes, "pattern")
        shown = pd.DataFrame(of_pattern[of_pattern["concept"] == j])
        cosine = z @ vector / np.linalg.norm(z, axis=1)
        want: list[int] = []
        for row in sorted(test, key=lambda row: -cosine[row]):
            if sum(data["rows"].group[row] == data["rows"].group[other] for other in want) < 2 and len(want) < 5:
                want.append(int(row))
        assert shown["row"].tolist() == want and shown["rank"].tolist() == [1, 2, 3, 4, 5]
        np.testing.assert_allclose(shown["cosine"], cosine[want])
        np.testing.assert_allclose(shown["score"], concept_scores(z, vectors, CONFIG.threshold)[want, j])
        assert shown["group"].tolist() == data["rows"].group[want].tolist()
        assert shown["value"].tolist() == [pattern.classes[pattern.values[row]] for row in want]


def test_the_make_up_of_a_concept_is_counted():
    target = Target(
        "a", "a", "team", "class", np.array([0, 0, 0, 1, 2, 2]), np.ones(6, bool), np.arange(6), ("x", "y", "z"), "", ""
    )
    about = make_up(target, np.array([0, 3]), np.arange(6))
    # x is half of the near rows as it is half of all rows; y rises from a sixth to a half.
    assert about == {"stands_for": "y", "make_up": "x 0.50 (all 0.50); y 0.50 (all 0.17); z 0.00 (all 0.33)"}
    real = target._replace(kind="real", values=np.arange(6) / 2, classes=())
    assert make_up(real, np.array([4, 5]), np.arange(6)) == {"stands_for": "", "make_up": "mean 2.25 (all 1.25)"}


def test_ties_in_the_cosine_go_by_group_and_episode():
    rows = RowIndex(*(np.array(column, np.int32) for column in ([3, 1, 2, 0], [1, 1, 0, 1], [0] * 4, [0] * 4)))
    assert nearest_rows(np.ones(4), rows, np.arange(4), 3, 2).tolist() == [2, 3, 1]
    assert nearest_rows(np.ones(4), rows, np.arange(4), 9, 1).tolist() == [2, 3]


def test_a_latent_that_never_changes_is_undefined_not_an_error():
    data = only(planted(), "pattern", "strength")
    flat = tables(data | {"z_omega": np.full_like(data["z_omega"], 0.3)}, Concepts(most=2, starts=1))
    assert len(flat.concepts) == 2 and len(flat.vectors) == 0
    for row in records(flat.concepts):
        assert np.isnan(row["completeness"]) and "undefined" in row["note"] and row["n_concepts"] == 1


def test_a_label_that_cannot_be_evaluated_is_a_row_that_says_why():
    data = only(planted(), "noise")
    broken = data | {"targets": (data["targets"][0]._replace(failure="1 class left"),)}
    row = row_of(tables(broken), "noise")
    assert row["note"] == "not evaluated: 1 class left" and np.isnan(row["completeness"])


def test_inputs_that_do_not_fit_are_refused():
    data = only(planted(), "noise")
    with pytest.raises(InputError, match="z_omega has 10 rows"):
        tables(data | {"z_omega": data["z_omega"][:10]})
    split = data["split"].copy()
    split[0] = 2
    with pytest.raises(InputError, match="group 0 has episodes in more than one split"):
        tables(data | {"split": split})


@pytest.mark.slow
def test_the_number_of_jobs_and_the_shallow_map_change_no_other_row(found):
    both = Probe(probes=["mlp", "linear"], strengths=PROBE.strengths, mlp_strengths=[0.01], bootstrap=300, jobs=2)
    again = tables(planted(), CONFIG, both)
    linear, shallow = (
        again._replace(concepts=pd.DataFrame(again.concepts[again.concepts["g"] == g])) for g in ("linear", "mlp")
    )
    pd.testing.assert_frame_equal(linear.concepts.reset_index(drop=True), found.concepts)
    assert row_of(shallow, "pattern")["completeness"] > 0.9 and np.isnan(row_of(shallow, "noise")["completeness"])
