"""The table of regions and their images, and whether the tight ones are those in which the team does well.

Letters: G groups, M places, R regions.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import rankdata

from probes.coupling.images import Image, Outcome, Region, Scene, image_of, outcome_of, too_few
from probes.levels import collapsed, local_level
from probes.scores import interval
from probes.table.significance import holm

IMAGE_COLUMNS = ("agent", "region", "image", "spread", "ci_low", "ci_high", "elsewhere", "p", "p_holm", "p_least")
IMAGE_COLUMNS += ("return_mean", "return_low", "return_high", "return_elsewhere", "n_episodes", "n_groups", "note")
LEAST_REGIONS = 4
TREND_COLUMNS = ("against", "rho", "ci_low", "ci_high", "n_regions", "note")


def region_tables(
    regions: list[Region], places: Int[np.ndarray, "G M"], scene: Scene
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each region and each other agent, and the rank correlations of spread and return over regions."""
    agents = range(scene.present.shape[2])
    dead = [agent for agent in agents if _dead(scene, agent)]
    records: list[dict[str, Any]] = []
    seen: list[tuple[list[Image], Outcome]] = []
    for region in regions:
        here = region.rows[places] & scene.present[:, :, region.agent]
        facts = {"agent": region.agent, "region": region.name}
        facts |= {"n_episodes": int(here.sum()), "n_groups": int(here.any(axis=1).sum())}
        notes = {
            other: too_few(here & scene.present[:, :, other])
            or (f"not evaluated: {local_level(other)} has collapsed" if other in dead else "")
            for other in agents
            if other != region.agent
        }
        images = {other: image_of(here, other, scene) for other, note in notes.items() if not note}
        if images:
            seen.append((list(images.values()), outcome_of(here, scene)))
            facts |= _return_columns(seen[-1][1])
        for other, note in notes.items():
            columns = {} if note else _image_columns(images[other]) | {"p_least": 1 / len(scene.orders)}
            records.append(facts | {"image": other, "note": note} | columns)
    table = pd.DataFrame(records, columns=list(IMAGE_COLUMNS))
    tested = table["p"].notna()
    table.loc[tested, "p_holm"] = holm(table.loc[tested, "p"].to_numpy(float))
    return table, trend_table(seen, len(places))


def _dead(scene: Scene, agent: int) -> bool:
    here = scene.present[:, :, agent]
    return not here.any() or collapsed(scene.z_alpha[:, :, agent][here])


def _return_columns(outcome: Outcome) -> dict[str, Any]:
    low, high = outcome.interval
    columns = {"return_mean": outcome.mean, "return_low": low, "return_high": high}
    return columns | {"return_elsewhere": outcome.elsewhere}


def _image_columns(image: Image) -> dict[str, Any]:
    low, high = image.interval
    columns = {"spread": image.spread, "ci_low": low, "ci_high": high}
    return columns | {"elsewhere": image.elsewhere, "p": image.p}


def trend_table(seen: list[tuple[list[Image], Outcome]], n_groups: int) -> pd.DataFrame:
    """Spearman's rank correlation of spread, the mean over the other agents, with return, over regions.

    `everything` takes both as they are. `same place elsewhere` takes spread over, and return less, what the same
    checkpoints of other groups show, so that it is not the course of training alone. Intervals are over groups.
    """
    columns = list(TREND_COLUMNS)
    if len(seen) < LEAST_REGIONS:
        note = f"not evaluated: {len(seen)} region{'s' * (len(seen) != 1)}; {LEAST_REGIONS} are needed"
        return pd.DataFrame(
            [
                {"against": name, "n_regions": len(seen), "note": note}
                for name in ("everything", "same place elsewhere")
            ],
            columns=columns,
        )
    spreads = _over_images(seen, False), _over_images(seen, True)
    returns = np.array([np.append(outcome.mean, outcome.draws) for _, outcome in seen])
    less = returns - np.array([[outcome.elsewhere] for _, outcome in seen])
    records = []
    for name, x, y in (("everything", spreads[0], returns), ("same place elsewhere", spreads[1], less)):
        rho = np.array([_rank_correlation(x[:, d], y[:, d]) for d in range(x.shape[1])])
        facts = {"against": name, "rho": rho[0], "n_regions": len(seen)}
        if np.isnan(rho[0]):
            records.append(facts | {"note": "undefined: the spread or the return of every region is the same"})
            continue
        low, high = interval(rho[1:], n_groups)
        records.append(facts | {"ci_low": low, "ci_high": high, "note": ""})
    return pd.DataFrame(records, columns=columns)


def _over_images(seen: list[tuple[list[Image], Outcome]], relative: bool) -> Float[np.ndarray, "R _"]:
    """The mean spread over a region's images: of all groups, then of each draw."""
    return np.array(
        [
            np.mean([np.append(one.spread, one.draws) / (one.elsewhere if relative else 1.0) for one in images], axis=0)
            for images, _ in seen
        ]
    )


def _rank_correlation(x: Float[np.ndarray, " R"], y: Float[np.ndarray, " R"]) -> float:
    """Over the regions that a draw holds; NaN where they are too few, or one of the two is constant."""
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < LEAST_REGIONS or np.ptp(x[both]) == 0 or np.ptp(y[both]) == 0:
        return math.nan
    return float(np.corrcoef(rankdata(x[both]), rankdata(y[both]))[0, 1])
