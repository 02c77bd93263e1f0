"""The study's tables and what they say, from the tables of its runs."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int32
from scipy.stats import t

from data_gen.trajectory import SPLITS

CEILING, SHARE = 0.90, 2 / 3
BARS = (
    "label metric chance z_omega z_omega_low z_omega_high pca supervised of_ceiling minus_pca minus_pca_low "
    "minus_pca_high near_ceiling beats_pca note"
).split()
USAGE = ("kl_omega", "kl_alpha", "active_omega", "active_alpha", "nll", "nll_without_latents", "verdict")


def for_validation(split: Int32[np.ndarray, " B"]) -> tuple[Int32[np.ndarray, " K"], Int32[np.ndarray, " K"]]:
    """The rows that are no test rows, and their split with the validation groups in the place of the test groups."""
    keep = np.flatnonzero(split != SPLITS.index("test")).astype(np.int32)
    kept = split[keep]
    return keep, np.where(kept == SPLITS.index("validation"), SPLITS.index("test"), kept).astype(np.int32)


def mean_skill(table: pd.DataFrame) -> dict[str, float]:
    """(value − chance) / (1 − chance) of z_omega's linear probe for every label of a probe table, and their mean.

    A label that could not be evaluated is left out.
    """
    rows = table[(table.features == "z_omega") & (table.probe == "linear") & (table.level != "confound")]
    rows = pd.DataFrame(rows).dropna(subset="value")
    skill = (rows.value - rows.chance) / (1 - rows.chance)
    return {"mean_skill": float(skill.mean()), **dict(zip(rows.label, skill.astype(float), strict=True))}


def summary_of(usage: dict[str, Any]) -> dict[str, Any]:
    """What the study shows of usage.json."""
    return {name: usage[name] for name in USAGE}


def best_arm(search: pd.DataFrame) -> str:
    """The arm with the highest mean skill; of equal ones the first, which is the default. NaN is none."""
    return str(search.arm[int(np.nanargmax(search.mean_skill.to_numpy(float)))])


def bars(probes: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """For each label: z_omega's linear value, the ceiling's, the share of the ceiling's skill, and z_omega less PCA."""
    linear = probes[probes.probe == "linear"].set_index(["features", "label"])
    ceiling = probes[probes.features == "supervised"].set_index("label")
    rows = []
    for label in labels:
        if ("pca", label) not in linear.index:
            rows.append({"label": label, "note": "not evaluated"})
            continue
        own, pca = linear.loc[("z_omega", label)], linear.loc[("pca", label)]
        rows.append(
            {
                "label": label,
                "metric": own.metric,
                "chance": own.chance,
                "z_omega": own.value,
                "z_omega_low": own.ci_low,
                "z_omega_high": own.ci_high,
                "pca": pca.value,
                "supervised": ceiling.value[label],
                "of_ceiling": own.of_ceiling,
                "minus_pca": pca.zw_minus_this,
                "minus_pca_low": pca.zw_minus_low,
                "minus_pca_high": pca.zw_minus_high,
                "near_ceiling": bool(own.of_ceiling >= CEILING),
                "beats_pca": bool(pca.zw_minus_low > 0),
                "note": "the ceiling does not beat chance" if np.isnan(own.of_ceiling) else "",
            }
        )
    return pd.DataFrame(rows, columns=BARS)


def reached(bar: pd.DataFrame, column: str) -> str:
    """How many labels meet a bar, and whether two thirds do."""
    met, n = sum(value is True for value in bar[column].tolist()), len(bar)
    return f"{met} of {n} labels" + (" (reached)" if met >= SHARE * n else " (not reached)")


def schedule_verdict(schedules: pd.DataFrame) -> str:
    """Which schedule has the highest mean skill, and whether it stands apart from each other one.

    The seeds and the test groups are the same for all, so differences are paired over seeds: apart where their 95 %
    interval by Student's t leaves out 0, the 5 % shared by the comparisons (Bonferroni).
    """
    skills = {name: rows.mean_skill.to_numpy() for name, rows in schedules.groupby("schedule", sort=False)}
    best = max(skills, key=lambda name: skills[name].mean())
    others, told = [name for name in skills if name != best], []
    for name in others:
        gaps = skills[best] - skills[name]
        reach = t.ppf(1 - 0.025 / len(others), len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
        told.append(f"{gaps.mean():+.3f} over {name} ({'apart' if gaps.mean() > reach else 'not told apart'})")
    return f"{best} has the highest mean skill: {', '.join(told)}"
