"""Which features of which agent are real, as a data set's meta says it in JSON. N agents, Do observation, Da action."""

from typing import Any

import numpy as np
from jaxtyping import Bool

from data_gen.trajectory import ActionSpec, FeatureMask, InputError, TrajectoryBatch, all_real, check_features

KEY = "feature_mask"


def feature_mask_json(mask: FeatureMask) -> dict[str, list[list[int]]]:
    """The mask as the value of meta["feature_mask"]: 1 where a feature is real, a row an agent."""
    return {name: real.astype(int).tolist() for name, real in mask._asdict().items()}


def feature_mask_of(meta: dict[str, Any], batch: TrajectoryBatch, action: ActionSpec, where: str) -> FeatureMask:
    """The mask that meta holds; without one all is real. Raises InputError where it is garbled or does not fit."""
    if KEY not in meta:
        n_agents, n_obs = batch.obs.shape[2:]
        return all_real(n_agents, n_obs, action)
    found = meta[KEY]
    if not isinstance(found, dict) or found.keys() != set(FeatureMask._fields):
        raise InputError(
            f"{where}: meta.{KEY} must hold {' and '.join(FeatureMask._fields)}, and is {found!r}. "
            f"Record the data set again."
        )
    mask = FeatureMask(**{name: _flags(rows, f"{where}: meta.{KEY}.{name}") for name, rows in found.items()})
    check_features(batch, mask, action, where)
    return mask


def _flags(rows: Any, what: str) -> Bool[np.ndarray, "N F"]:
    lists = rows if isinstance(rows, list) and all(isinstance(row, list) for row in rows) else []
    if len({len(row) for row in lists}) != 1 or any(flag not in (0, 1) for row in lists for flag in row):
        raise InputError(
            f"{what} must be a list an agent, all of one length, of 1 where a feature is real and 0 where it is "
            f"padding. Record the data set again."
        )
    return np.array(lists, bool)
