"""What must hold before anything is probed: splits that share nothing, and labels that can be evaluated."""

import hashlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from data_gen.trajectory import SPLITS, ActionSpec, Dataset, InputError, RowIndex, TrajectoryBatch, check_batch
from probes.labels import CONFOUNDS, Target, make_targets
from probes.probe import Probe


def check_split(rows: RowIndex, split: Int32[np.ndarray, " B"]) -> None:
    """Raise InputError where a group is in two splits, or there is nothing to fit on or to score."""
    pairs = np.unique(np.stack([rows.group, split], 1), axis=0)
    groups, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        raise InputError(
            f"group {groups[counts > 1][0]} has episodes in more than one split, {(counts > 1).sum()} group(s) in all; "
            "a probe scored on it would be scored on what it was fitted on. Split the data set by group."
        )
    for name in ("train", "test"):
        if not (split == SPLITS.index(name)).any():
            raise InputError(
                f"the {name} split is empty, so no probe can be fitted and scored; split the groups again."
            )


def check_numbers(batch: TrajectoryBatch) -> None:
    """Raise InputError where an observation or action of a real step is not finite."""
    discrete = np.ndim(batch.actions) == 3
    size = int(np.max(batch.actions)) + 1 if discrete else np.shape(batch.actions)[-1]
    check_batch(batch, ActionSpec("discrete" if discrete else "continuous", size))


def check_copies(batch: TrajectoryBatch, split: Int32[np.ndarray, " B"]) -> None:
    """Raise InputError where one trajectory (equal bytes) is in two splits; episodes without a step do not count."""
    parts = [np.ascontiguousarray(part) for part in batch]
    first: dict[bytes, int] = {}
    for row in np.flatnonzero(parts[2].any(axis=(1, 2))).tolist():
        content = hashlib.blake2b(b"".join(part[row].tobytes() for part in parts), digest_size=16).digest()
        other = first.setdefault(content, row)
        if split[other] != split[row]:
            raise InputError(
                f"rows {other} ({SPLITS[split[other]]}) and {row} ({SPLITS[split[row]]}) are the same trajectory; a "
                "probe would be scored on what it was fitted on. Remove the copy, or put both into one group."
            )


def check_targets(targets: tuple[Target, ...], config: Probe) -> None:
    """Raise InputError where nothing of a label the user named can be evaluated, or no label at all can be."""
    for target in targets:
        if target.name in CONFOUNDS:
            raise InputError(f"a label is called '{target.name}', a name kept for the confound rows; rename the label.")
    for name in config.labels:
        chosen = [target for target in targets if name in (target.label, target.name)]
        if all(target.failure for target in chosen):
            raise InputError(f"probe.labels: '{name}' cannot be evaluated. {_reasons(chosen)} Name other labels.")
    if all(target.failure for target in targets):
        raise InputError(f"probes: the data set has no label that can be evaluated. {_reasons(targets)}")


def check_labels(config: Probe, found: Dataset) -> None:
    """Raise InputError, before any training, where a label to probe is not in the data set or cannot be evaluated."""
    check_targets(make_targets(found.labels, found.rows, found.split, config.labels), config)


def _reasons(targets: Sequence[Target]) -> str:
    return " ".join(f"{target.name}: {target.failure}." for target in targets)
