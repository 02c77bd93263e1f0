"""What each label of a run's data is worth to a policy that is told it, beside what holding the label costs."""

from pathlib import Path

import numpy as np
import pandas as pd

from data_gen.trajectory import SPLITS, take
from launch.data import seen_of
from launch.progress import progress
from launch.rundir import config_of
from marl_vae.diagnostics.worth import told_log_likelihood
from marl_vae.model import Model
from probes.bootstrap import draw_weights, interval_of, sample
from probes.labels import Target, make_targets
from probes.scores import Sums

COLUMNS = "label nats nats_low nats_high entropy n_groups n_rows".split()
DRAWS = 2000


def worth_table(run: Path, labels: list[str], seed: int) -> pd.DataFrame:
    """log π(a | o, y) − log π(a | o) in nats an episode on test groups, and the label's entropy; columns `COLUMNS`.

    A label of one agent, and one that cannot be evaluated, have no row. A number has no entropy.
    """
    found, config = seen_of(run), Model(**config_of(run)["model"])
    rows = [found.rows_of(name) for name in SPLITS]
    parts = [take(found.batch, of_part) for of_part in rows]

    def likelihood(told: np.ndarray, name: str) -> np.ndarray:
        with progress(f"policy that is told {name}") as tell:
            values = [told[of_part] for of_part in rows]
            return told_log_likelihood(config, found.action, found.features, parts, values, seed=seed, report=tell)

    targets = make_targets(found.labels, found.rows, found.split, labels)
    plain = likelihood(np.zeros((len(found.split), 0), np.float32), "nothing")
    records = []
    for target in targets:
        if not target.failure and target.level == "team":
            gain = likelihood(as_told(target), target.name) - plain
            records.append(_record(target, gain, found.rows.group, rows[-1], seed))
    return pd.DataFrame.from_records(records, columns=COLUMNS)


def as_told(target: Target) -> np.ndarray:
    """The label as numbers [B, K], one-hot where it is a class; zeros where an episode has none."""
    values = target.values[:, None]
    shown = values == np.arange(len(target.classes)) if target.kind == "class" else values
    return np.where(target.keep[:, None], shown, 0).astype(np.float32)


def _record(target: Target, gain: np.ndarray, groups: np.ndarray, test: np.ndarray, seed: int) -> dict:
    kept = target.keep[test]
    codes = np.unique(groups[test][kept], return_inverse=True)[1].ravel()
    n_groups = int(codes.max()) + 1
    sums = Sums(
        *(np.bincount(codes, weights=part, minlength=n_groups)[:, None] for part in (gain[kept], 1.0 * kept[kept]))
    )
    one = sample([sums], draw_weights(seed, target.name, n_groups, {1}, DRAWS))
    low, high = interval_of(one)
    shares = np.bincount(target.values[test][kept].astype(int)) / kept.sum() if target.kind == "class" else np.zeros(0)
    entropy = float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum()) if len(shares) else np.nan
    told = {"nats": one.value, "nats_low": low, "nats_high": high, "entropy": entropy, "n_groups": n_groups}
    return {"label": target.name, **told, "n_rows": int(kept.sum())}
