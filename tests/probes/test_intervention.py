"""Interventions in a planted world: a label that the latent sets, one that is in it but unused, and a number."""

import zlib

import numpy as np
import pandas as pd
import pytest

from data_gen.trajectory import ActionSpec, Dataset, InputError, Labels, LabelSpec, Outcomes, TrajectoryBatch
from probes.interventions.directions import probe_axes
from probes.interventions.intervention import (
    Arm,
    Behaviour,
    Intervention,
    Latents,
    Rollouts,
    arms,
    choose_targets,
    n_arms,
    observed_range,
    see,
    toward_of,
)
from probes.interventions.pairs import Pairs, draw_pairs, ends_of
from probes.interventions.rows import repeatable
from probes.interventions.used import check_interventions, decodable_and_used, intervene, reading
from probes.labels import make_targets, read_like
from probes.probe import Probe
from probes.table.table import probe_table
from tests.probes.planted import DA, DO, N, planted_data

CONFIG = Intervention(labels=["side", "mood", "speed"], pairs=120, repeats=2, bootstrap=300)
PROBE = Probe(probes=["linear"], permutations=0, bootstrap=300, jobs=1, labels=["side", "mood", "speed"])
SIDE, MOOD, SPEED = 0, slice(3, 5), 5  # columns of the planted z_omega
SPECS = (
    LabelSpec("side", "side", "class"),
    LabelSpec("mood", "mood", "class", classes=("calm", "none", "wild")),
    LabelSpec("speed", "speed", "real"),
    LabelSpec("speed_class", "speed", "quantile", bins=2),
)


@pytest.fixture(scope="module")
def found() -> Dataset:
    data = planted_data()
    n = len(data["split"])
    rewards = np.repeat(data["labels"].values["speed"][:, None, None], N, axis=2)
    still = np.zeros((n, 1), bool)
    return Dataset(
        batch=data["batch"],
        features=data["features"],
        rows=data["rows"],
        outcomes=Outcomes(rewards=np.repeat(rewards, 5, 1), terminated=np.repeat(still, 5, 1), truncated=still),
        labels=Labels(data["labels"].values, SPECS),
        hand=data["hand"],
        split=data["split"],
        action=ActionSpec("continuous", DA),
        meta={},
    )


@pytest.fixture(scope="module")
def latents() -> Latents:
    data = planted_data()
    # The local latents know the side wrongly, and so can act nothing out.
    return Latents(data["encoded"].z_omega[0], np.zeros((len(data["split"]), N, 1), np.float32))


def played(z: np.ndarray, seed: int) -> Behaviour:
    """The side is that of the latent and the speed its number; the mood is a coin that every latent throws anew."""
    coin = np.random.default_rng([seed, zlib.crc32(z.tobytes())])
    labels = {
        "side": (z[:, SIDE] > 0.5).astype(np.int32),
        "mood": coin.integers(0, 3, len(z)).astype(np.int32),
        "speed": z[:, SPEED].astype(np.float32),
    }
    obs = np.zeros((len(z), 2, N, DO), np.float32)
    obs[z[:, SIDE] > 0.5, 0] = 100.0
    batch = TrajectoryBatch(obs, np.zeros((len(z), 2, N, DA), np.float32), np.ones((len(z), 2, N), bool))
    return Behaviour(Labels(labels, SPECS), batch, returns=z[:, SPEED].astype(float), failed=np.zeros(len(z), bool))


def local(z: np.ndarray, seed: int) -> Behaviour:
    return played(np.zeros((len(z), 7)), seed)


ROLLOUTS = Rollouts(joint=played, local=local)


@pytest.fixture(scope="module")
def tables(found, latents) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    data = planted_data()
    probes = probe_table(PROBE, **data)
    effects, curves = intervene(CONFIG, PROBE, ROLLOUTS, found, latents)
    return effects, curves, decodable_and_used(effects, probes)


def row(table: pd.DataFrame, **where: object) -> pd.Series:
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


def test_a_label_that_the_latent_sets_has_effect_one(tables) -> None:
    swap = row(tables[0], label="side", kind="swap")
    assert swap.effect == swap.ci_low == swap.ci_high == swap.minus_control == 1 and swap.control == 0
    assert swap.reproduced == swap.changed == swap.possible == 1 and swap.changed_control == swap.stayed == 0
    assert swap.repeatable == 1  # the side is a training seed's
    assert (swap.n_pairs <= 120) and swap.n_rollouts == 240 and swap.n_groups == 12
    assert row(tables[2], label="side").reading == "decodable, used"


def test_a_label_that_is_in_the_latent_but_not_acted_out_is_decodable_and_not_used(tables) -> None:
    swap = row(tables[0], label="mood", kind="swap")
    assert swap.ci_low < 0 < swap.ci_high and swap.ci_high - swap.ci_low < 0.4
    assert abs(swap.reproduced - 1 / 3) < 0.12 and abs(swap.changed - 1 / 3) < 0.2
    both = row(tables[2], label="mood")
    assert both.decodable_low > 0.2 and both.along_low < 0 < both.along_high
    assert both.reading == "decodable, not seen to be used: the decoder does not act it out"


def test_a_reading_follows_the_intervals() -> None:
    linear = {"ci_low": 0.4, "chance": 0.3}
    swap, up, down = {"ci_low": 0.1, "minus_control_low": 0.1}, {"minus_control_low": 0.1}, {"minus_control_low": -0.1}
    for kinds, said in (
        ((swap, down, -0.1), "decodable, used"),
        ((swap | down, up, -0.1), "decodable, used along the probe's direction alone"),
        ((swap | {"ci_low": -0.1}, down, 0.1), "decodable, not seen to be used: lost in p(z_alpha | z_omega)"),
        ((swap | down, down, -0.1), "decodable, not seen to be used: the decoder does not act it out"),
    ):
        of_kind = {"swap": kinds[0], "direction": kinds[1], "swap_local": {"ci_low": kinds[2]}}
        assert reading(linear, of_kind) == said
        assert reading(linear | {"ci_low": 0.2}, of_kind) == f"not {said}"


def test_a_number_moves_by_what_is_possible(tables, found) -> None:
    swap = row(tables[0], label="speed", kind="swap")
    assert np.isclose(swap.effect, swap.possible, rtol=1e-5) and 1.5 < swap.possible < 3
    assert np.isclose(swap.reproduced, 1) and np.isnan(swap.changed)
    assert abs(swap.control) < 0.3
    drift = row(tables[0], label="speed", kind="direction")
    assert np.isclose(drift.effect, 1, atol=0.05)  # one training deviation of the latent is one of the label
    assert abs(drift.control) < 0.15 and drift.minus_control_low > 0.7


def test_interpolation_and_shifts_follow_the_latent_step_by_step(tables, found) -> None:
    curves = tables[1]
    side = curves[(curves.label == "side") & (curves.kind == "interpolate")].set_index("at").value
    training = found.labels.values["speed"][found.split == 0]
    speed = curves[(curves.label == "speed") & (curves.kind == "interpolate")].set_index("at").value
    np.testing.assert_allclose(np.diff(speed), np.full(4, (speed[1.0] - speed[0.0]) / 4), rtol=1e-4)
    # The side turns where the mixed latent passes one half: at the middle it is 0 whoever is mixed with whom.
    assert side[0.0] == side[0.25] == 0 and side[1.0] == side[0.75] == 1 and 0.4 < side[0.5] < 0.6
    swap = row(tables[0], label="side", kind="interpolate")
    assert np.isclose(swap.effect, np.polyfit(side.index, side.to_numpy(), 1)[0])
    shifted = curves[(curves.label == "side") & (curves.kind == "probe")].set_index("at").value
    assert shifted[2.0] == 1 and shifted[-2.0] == 0 and np.isclose(shifted[0.0], 0.5, atol=0.1)
    assert training.std() > 0


def test_what_broke_down_is_told(tables, found) -> None:
    swap = row(tables[0], label="side", kind="swap")
    assert np.isclose(swap.return_recorded, found.labels.values["speed"][found.split == 2].mean() * 5, atol=1)
    assert np.isclose(swap.outside_before, 0.25, atol=0.02) and swap.failed == 0  # half the steps of half the rollouts


def test_the_same_seed_gives_the_same_table_and_a_label_does_not_hang_on_its_company(tables, found, latents) -> None:
    alone, _ = intervene(Intervention(**vars(CONFIG) | {"labels": ["mood"]}), PROBE, ROLLOUTS, found, latents)
    pd.testing.assert_frame_equal(
        alone.reset_index(drop=True), tables[0][tables[0].label == "mood"].reset_index(drop=True)
    )


def test_every_arm_plays_the_latents_it_says_it_plays(found, latents) -> None:
    (target,) = choose_targets(found, ["side"])
    drawn = draw_pairs(ends_of(target, found.rows, found.split, [], []), found.rows.group, 6, np.random.default_rng(0))
    pairs = Pairs(*(np.repeat(rows, 2) for rows in drawn))
    toward = toward_of(target, pairs, 2)
    axes = probe_axes(target, latents.omega, found.rows, found.split, PROBE)
    z = dict(arms(CONFIG, latents, target, pairs, axes, toward))
    assert len(z) == n_arms(CONFIG)
    own, other = latents.omega[pairs.a], latents.omega[pairs.b]
    np.testing.assert_array_equal(z[Arm("interpolate", 0.0)], own)
    np.testing.assert_array_equal(z[Arm("interpolate", 1.0)], other)
    np.testing.assert_allclose(z[Arm("interpolate", 0.25)], 0.75 * own + 0.25 * other)
    np.testing.assert_array_equal(z[Arm("same", 1.0)], latents.omega[pairs.same])
    np.testing.assert_array_equal(z[Arm("local", 1.0)], latents.alpha[pairs.b])
    np.testing.assert_allclose(z[Arm("probe", 2.0)] - own, -(z[Arm("probe", -2.0)] - own), atol=1e-5)
    np.testing.assert_allclose(z[Arm("random", 2.0)] - own, 2 * (z[Arm("random", 1.0)] - own), atol=1e-5)
    values = target.values
    np.testing.assert_array_equal(toward[:4], [values[pairs.b[0]]] * 2 + [values[pairs.a[2]]] * 2)


def test_physics_that_failed_has_no_label(found) -> None:
    (side,), (speed,) = choose_targets(found, ["side"]), choose_targets(found, ["speed"])
    z = np.ones((4, 7))
    lost = played(z, 0)._replace(failed=np.array([False, True, False, False]))
    reach = (np.full((N, DO), -1.0), np.full((N, DO), 1.0))
    seen = see(lost, side, found, reach)
    np.testing.assert_array_equal(seen.values, [1, -1, 1, 1])
    assert seen.failed == 0.25 and seen.outside == 0.5
    np.testing.assert_array_equal(np.isnan(see(lost, speed, found, reach).values), lost.failed)


def test_repeatable_is_the_share_of_the_teams_other_episodes(found) -> None:
    (target,) = choose_targets(found, ["mood"])
    rows = np.flatnonzero(found.split == 2)[:9]
    want = []
    for row in rows:
        team = (found.rows.group == found.rows.group[row]) & (found.rows.checkpoint == found.rows.checkpoint[row])
        same = int((target.values[team] == target.values[row]).sum())
        want.append((same - 1) / (team.sum() - 1))
    assert 0 < np.mean(want) < 1 and np.isclose(repeatable(target, rows, found.rows), np.mean(want))


def test_what_training_episodes_hold_is_their_real_steps_alone(found) -> None:
    obs, mask = found.batch.obs.copy(), found.batch.mask.copy()
    mask[3, 2:, 0] = False
    obs[3, 2:, 0], obs[found.split == 2] = 1e3, -1e3
    low, high = observed_range(found._replace(batch=found.batch._replace(obs=obs, mask=mask)))
    training = np.where(mask[..., None], obs, np.nan)[found.split == 0]
    np.testing.assert_array_equal(low, np.nanmin(training, (0, 1)))
    np.testing.assert_array_equal(high, np.nanmax(training, (0, 1)))
    assert np.abs([low, high]).max() < 10


def test_quantiles_of_rollouts_are_cut_where_training_episodes_were(found) -> None:
    targets = {target.name: target for target in make_targets(found.labels, found.rows, found.split, [])}
    edge = np.median(found.labels.values["speed"][found.split == 0].astype(float))
    speed = np.array([edge - 1e-3, edge + 1e-3, 50.0, 60.0, np.nan], np.float32)
    fresh = Labels({"speed": speed, "mood": np.array([2, 0, 1, 1, 7], np.int32)}, SPECS)
    found_here = read_like(targets["speed_class"], found.labels, found.split, fresh)
    np.testing.assert_array_equal(found_here, [0, 1, 1, 1, -1])
    np.testing.assert_array_equal(read_like(targets["mood"], found.labels, found.split, fresh), [2, 0, 1, 1, -1])
    np.testing.assert_allclose(read_like(targets["speed"], found.labels, found.split, fresh), speed)


def test_a_label_of_each_agent_is_read_from_its_own_column() -> None:
    data = planted_data()
    target = make_targets(data["labels"], data["rows"], data["split"], ["hill_1"])[0]
    fresh = Labels({"hill": np.array([[0, 1], [1, 0], [1, 1]], np.int32)}, data["labels"].specs)
    np.testing.assert_array_equal(read_like(target, data["labels"], data["split"], fresh), [1, 0, 1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pairs": 0}, "intervention.pairs is 0"),
        ({"weights": [0.0, 0.5]}, "1 \\(the other's\\)"),
        ({"weights": [0.0, 1.0, 1.5]}, "intervention.weights"),
        ({"shifts": [-1.0, 1.0]}, "give 0 and"),
        ({"shifts": [0.0, float("nan")]}, "finite"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_wrong_settings_name_themselves(change: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Intervention(**change)


def test_what_cannot_be_done_is_said_before_any_rollout(found, latents) -> None:
    probes = pd.DataFrame({"label": ["side"], "features": "z_omega", "probe": "linear", "value": 0.9})
    for change, said in (
        ({"labels": ["sid"]}, "no label 'sid'. The nearest is 'side'"),
        ({"labels": ["mood"]}, "no linear probe of z_omega for mood"),
        ({"labels": ["side"], "checkpoints": [9]}, "no checkpoint 9; it has \\[0, 1, 2\\]"),
        ({"labels": ["mood"], "without": ["calm", "wild"]}, "no label has two kinds"),
    ):
        with pytest.raises(InputError, match=said):
            check_interventions(Intervention(**change), found, latents, probes)
    with pytest.raises(InputError, match="embed this data set again"):
        check_interventions(CONFIG, found, latents._replace(omega=latents.omega[1:]), probes)
    check_interventions(Intervention(labels=["side"]), found, latents, probes)
