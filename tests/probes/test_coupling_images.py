"""Images of regions against covariances of rows, resampled and moved by hand; planted regions."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from probes.coupling.images import Image, Outcome, Region, Scene, image_of, image_sums, outcome_of, spread
from probes.coupling.regions import region_tables, trend_table
from probes.pairings import orders_of
from tests.probes.oracles_scores import resample

G, M, N, ZA, W = 4, 6, 3, 2, 30


def scene_of(z: np.ndarray, returns: np.ndarray, seed: int = 0, permutations: int = 199, draws: int = W) -> Scene:
    rng = np.random.default_rng(seed)
    return Scene(
        z_alpha=z,
        present=np.ones(z.shape[:3], bool),
        returns=returns,
        orders=orders_of(len(z), permutations, rng),
        weights=rng.multinomial(len(z), np.full(len(z), 1 / len(z)), size=draws).astype(float),
    )


def covariance_ratio(some: np.ndarray, every: np.ndarray) -> float:
    return float(np.trace(np.cov(some.T)) / np.trace(np.cov(every.T)))


@pytest.fixture
def scene() -> Scene:
    rng = np.random.default_rng(1)
    found = scene_of(rng.normal(size=(G, M, N, ZA)) * [3.0, 0.2] + 50, rng.normal(size=(G, M)))
    return found._replace(present=rng.random((G, M, N)) < 0.9)


@pytest.fixture
def region() -> np.ndarray:
    return np.random.default_rng(2).random((G, M)) < 0.6


def test_the_spread_is_the_ratio_of_traces_of_covariances(scene: Scene, region: np.ndarray):
    here = scene.present[:, :, 1]
    z = scene.z_alpha[:, :, 1]
    found = image_of(region, 1, scene)
    assert found.spread == pytest.approx(covariance_ratio(z[region & here], z[here])) and found.agent == 1
    by_hand = []
    for order in scene.orders.tolist():
        there, z_there = here[order], z[order]
        by_hand.append(covariance_ratio(z_there[region & there], z[here]))
    assert found.elsewhere == pytest.approx(np.mean(by_hand[1:]))
    assert found.p == pytest.approx(np.mean(np.array(by_hand) <= by_hand[0] + 1e-9))


def test_draws_are_those_of_resampled_groups(scene: Scene, region: np.ndarray):
    groups = np.repeat(np.arange(G), M)
    z, here = scene.z_alpha[:, :, 2].reshape(-1, ZA), scene.present[:, :, 2].ravel()
    found, outcome = image_of(region, 2, scene), outcome_of(region, scene)
    inside, returns = region.ravel(), scene.returns.ravel()
    for d, weights in enumerate(scene.weights):
        rows = resample(groups, weights)
        some, every = rows[inside[rows] & here[rows]], rows[here[rows]]
        assert found.draws[d] == pytest.approx(covariance_ratio(z[some], z[every]))
        assert outcome.draws[d] == pytest.approx(returns[rows[inside[rows]]].mean())
    assert found.interval[0] < found.spread < found.interval[1]
    assert outcome.mean == pytest.approx(returns[inside].mean())
    moved = [scene.returns[order][region].mean() for order in scene.orders.tolist()]
    assert outcome.elsewhere == pytest.approx(np.mean(moved[1:]))


def test_random_episodes_have_spread_1_on_average_however_few():
    rng = np.random.default_rng(3)
    sums = image_sums(rng.normal(size=(1, 4000, ZA)), np.ones((1, 4000), bool))[0]
    few = spread(sums[rng.integers(0, 4000, (2000, 4))].sum(1), sums.sum(0))
    assert few.mean() == pytest.approx(1, abs=0.05)
    assert np.isnan(spread(sums[0], sums.sum(0))) and np.isnan(spread(sums[:5].sum(0), 0 * sums[0]))


def test_a_region_is_tight_in_the_coupled_agent_alone():
    """Two agents share a convention of their group; the third's is its own, and as tight within a group."""
    p = np.zeros((60, 2))
    for draw in range(60):
        rng = np.random.default_rng(draw)
        conventions = rng.permuted(np.tile(np.arange(16)[:, None] % 3, (1, 3)), axis=0)
        conventions[:, 1] = conventions[:, 0]
        z = np.eye(3)[conventions][:, None] * 5 + rng.normal(size=(16, 5, 3, 3))
        scene = scene_of(z, rng.normal(size=(16, 5)), draw)
        region = np.repeat(conventions[:, :1] == 0, 5, axis=1)
        p[draw] = [image_of(region, other, scene).p for other in (1, 2)]
    assert (p[:, 0] <= 0.05).all()
    assert (p[:, 1] <= 0.05).sum() <= 8  # at a rate of 5 %, more in one of 200 cases
    assert 0.3 < p[:, 1].mean() < 0.7


def _seen(spreads: np.ndarray, returns: np.ndarray, elsewhere: np.ndarray, poorer: np.ndarray):
    """Regions with two images each, whose draws are their value with noise."""
    rng = np.random.default_rng(0)
    for s, r, other, less in zip(spreads, returns, elsewhere, poorer, strict=True):
        draws = [s + 0.01 * rng.normal(size=50) for _ in range(2)]
        images = [Image(k, s, (0.0, 2.0), other, 0.5, draws[k]) for k in range(2)]
        yield images, Outcome(r, (0.0, 9.0), less, r + 0.01 * rng.normal(size=50))


def test_the_trend_is_spearmans_over_regions_plain_and_against_the_same_place_elsewhere():
    rng = np.random.default_rng(4)
    spreads, returns, elsewhere, poorer = rng.uniform(0.2, 1.5, (4, 9))
    plain, against = trend_table(list(_seen(spreads, returns, elsewhere, poorer)), 12).to_dict("records")
    assert plain["rho"] == pytest.approx(spearmanr(spreads, returns)[0])
    assert against["rho"] == pytest.approx(spearmanr(spreads / elsewhere, returns - poorer)[0])
    assert against["ci_low"] <= against["rho"] <= against["ci_high"] and plain["n_regions"] == 9
    few = trend_table(list(_seen(spreads[:3], returns[:3], elsewhere[:3], poorer[:3])), 12)
    assert few["rho"].isna().all() and few["note"].str.contains("3 regions").all()
    alike = [(images, one._replace(mean=1.0, draws=0 * one.draws)) for images, one in _seen(*[spreads] * 4)]
    assert trend_table(alike, 12)["note"].tolist()[0].startswith("undefined")


def test_the_course_of_training_alone_makes_a_trend_that_vanishes_against_the_same_checkpoints():
    """Latents widen and returns rise with training, and nothing else goes together."""
    rng = np.random.default_rng(5)
    places, scale = np.arange(40 * 12).reshape(40, 12), np.linspace(0.2, 2, 12)
    z = rng.normal(size=(40, 12, 2, 2)) * scale[:, None, None]
    returns = np.broadcast_to(np.linspace(0, 5, 12), (40, 12)) + 0.1 * rng.normal(size=(40, 12))
    chosen = rng.random((6, 40, 12)) < np.abs(np.arange(6)[:, None, None] * 2 - np.arange(12)) / 12
    regions = [Region(agent=0, name=str(k), rows=one.ravel()) for k, one in enumerate(chosen)]
    table, trend = region_tables(regions, places, scene_of(z, returns, 5, draws=200))
    plain, against = trend.to_dict("records")
    assert plain["rho"] > 0.8
    assert against["ci_low"] < 0 < against["ci_high"]
    assert len(table) == 6 and (table["p"] > 0.01).all()
    np.testing.assert_allclose(table["spread"] / table["elsewhere"], 1, atol=0.25)


def test_regions_that_cannot_be_judged_say_why():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(6, 10, 3, 2))
    z[:, :, 2] *= 0.05
    scene = scene_of(z, rng.normal(size=(6, 10)))
    scene.present[:, ::2, 0] = False
    scene.present[:, 3:, 1] = False
    places = np.arange(60).reshape(6, 10)
    one_group, all_of_it = np.zeros(60, bool), np.ones(60, bool)
    one_group[10:30] = True
    regions = [Region(0, "small", one_group & (np.arange(60) < 22)), Region(0, "whole", all_of_it)]
    table, _ = region_tables(regions, places, scene)
    rows = {(row["region"], row["image"]): row for row in table.to_dict("records")}
    assert rows["small", 1]["note"] == "not evaluated: 2 episodes of 2 groups; 10 of 2 are needed"
    assert rows["whole", 2]["note"] == "not evaluated: z_alpha_2 has collapsed" and np.isnan(rows["whole", 2]["p"])
    assert rows["whole", 1]["n_episodes"] == 30 and np.isnan(rows["whole", 1]["p"])
    assert rows["whole", 1]["note"].startswith("not evaluated: 6 episodes of 6 groups")
