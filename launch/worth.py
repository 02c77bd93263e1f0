"""What each label of a run's data is worth to a policy that is told it, beside what holding the label costs."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float, Int32, Num

from data_gen.trajectory import SPLITS, take
from launch.data import seen_of
from launch.encoders import embeddings_of
from launch.progress import progress
from launch.rundir import config_of
from marl_vae.diagnostics.worth import told_log_likelihood
from marl_vae.model import Model
from probes.bootstrap import Sample, draw_weights, interval_of, sample
from probes.labels import Target, make_targets
from probes.scores import Sums

COLUMNS = "label nats nats_low nats_high beyond beyond_low beyond_high entropy n_groups n_rows".split()
DRAWS = 2000


def worth_table(run: Path, labels: list[str], seed: int) -> pd.DataFrame:
    """What telling the label saves, in nats an episode on test groups, and the label's entropy; columns `COLUMNS`.

    `nats` is log π(a | o, y) − log π(a | o), and `beyond` log π(a | o, z_ω, y) − log π(a | o, z_ω): what is left of it
    for policies that are told the first encoder's mean of z_ω as well. A label of one agent, and one that cannot be
    evaluated, have no row. A number has no entropy.
    """
    found, config = seen_of(run), Model(**config_of(run)["model"])
    rows = [found.rows_of(name) for name in SPLITS]
    parts = [take(found.batch, of_part) for of_part in rows]

    def likelihood(told: np.ndarray, name: str) -> np.ndarray:
        with progress(f"policy that is told {name}") as tell:
            values = [told[of_part] for of_part in rows]
            return told_log_likelihood(config, found.action, found.features, parts, values, seed=seed, report=tell)

    targets = make_targets(found.labels, found.rows, found.split, labels)
    held = next(iter(embeddings_of(run).values()))["omega_mean"]
    plain, knowing = likelihood(held[:, :0], "nothing"), likelihood(held, "z_omega")
    records = []
    for target in targets:
        if not target.failure and target.level == "team":
            told, kept = as_told(target), target.keep[rows[-1]]
            gain = likelihood(told, target.name) - plain
            left = likelihood(np.concatenate([held, told], 1), f"z_omega and {target.name}") - knowing
            groups = found.rows.group[rows[-1]][kept]
            own = {"label": target.name, "n_groups": len(np.unique(groups)), "n_rows": len(groups)}
            for name, saved in (("nats", gain), ("beyond", left)):
                one = _an_episode(saved[kept], groups, target.name, seed)
                own |= {name: one.value} | dict(zip((f"{name}_low", f"{name}_high"), interval_of(one), strict=True))
            records.append({**own, "entropy": _entropy(target.values[rows[-1]][kept], target.kind)})
    return pd.DataFrame.from_records(records, columns=COLUMNS)


def as_told(target: Target) -> np.ndarray:
    """The label as numbers [B, K], one-hot where it is a class; zeros where an episode has none."""
    values = target.values[:, None]
    shown = values == np.arange(len(target.classes)) if target.kind == "class" else values
    return np.where(target.keep[:, None], shown, 0).astype(np.float32)


def _an_episode(saved: Float[np.ndarray, " B"], groups: Int32[np.ndarray, " B"], name: str, seed: int) -> Sample:
    """The mean over episodes, and over draws of whole groups."""
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    n_groups = int(codes.max()) + 1
    parts = (np.bincount(codes, weights=part, minlength=n_groups)[:, None] for part in (saved, np.ones(len(codes))))
    return sample([Sums(*parts)], draw_weights(seed, name, n_groups, {1}, DRAWS))


def _entropy(values: Num[np.ndarray, " B"], kind: str) -> float:
    """In nats; NaN of a number."""
    if kind != "class":
        return np.nan
    shares = np.bincount(values.astype(int)) / len(values)
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
