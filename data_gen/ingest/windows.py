"""Windows of a recording: the steps that become an episode each, and the labels of those steps.

Letters: T steps of a recording, W of a window, N agents.
"""

import numpy as np
from jaxtyping import Bool, Int, Shaped

from data_gen.ingest.recording import LabelColumn, Recording
from data_gen.ingest.resample import Track


def spans(n_steps: int, window: int, stride: int) -> list[tuple[int, int]]:
    """First step and the one after the last of each window, the last window as long as there are steps left.

    `window` 0 is the whole recording, `stride` 0 the window. A window that a former one holds whole is left out.
    """
    if not window or window >= n_steps:
        return [(0, n_steps)]
    stride = stride or window
    starts = [0, *(start for start in range(stride, n_steps, stride) if start - stride + window < n_steps)]
    return [(start, min(start + window, n_steps)) for start in starts]


def label_of(
    label: LabelColumn,
    recording: Recording,
    track: Track,
    mask: Bool[np.ndarray, "W N"],
    slots: Int[np.ndarray, " N"],
    here: slice,
    n_agents: int,
) -> Shaped[np.ndarray, "..."]:
    """The label's value in the steps that are `here`, or that of each agent, put into its slot.

    A label of frames is summed up over the steps, one of frames and agents over those at which the agent is there. -1
    and NaN where it is not known, or a slot has no agent.
    """
    dtype, unknown = (np.int32, -1) if label.kind == "class" else (np.float32, np.nan)
    if label.scope in ("recording", "agent"):
        value = np.array(recording.labels[label.name], dtype)  # a copy: a view would keep all rows in memory
    else:
        counted = mask if label.scope == "frame and agent" else np.ones(len(mask), bool)
        value = summary(track.labels[label.name][here], counted, label)
    if "agent" not in label.scope:
        return value
    everyone = np.full(n_agents, unknown, dtype)
    everyone[slots[slots >= 0]] = value[slots >= 0]
    return everyone


def summary(
    values: Shaped[np.ndarray, "W ..."], here: Bool[np.ndarray, "W ..."], label: LabelColumn
) -> Shaped[np.ndarray, "..."]:
    """One value of the steps that are `here`: the commonest class (of equally common ones the first), or the mean.

    Not known (-1, NaN) where fewer than half of those steps have a value.
    """
    known = here & ((values >= 0) if label.kind == "class" else np.isfinite(values))
    enough = known.any(0) & (2 * known.sum(0) >= here.sum(0))
    if label.kind == "class":
        counts = np.stack([(known & (values == code)).sum(0) for code in range(max(1, len(label.classes)))])
        return np.where(enough, counts.argmax(0), -1).astype(np.int32)
    total = np.where(known, values, 0).sum(0, dtype=np.float64)
    return np.where(enough, total / np.maximum(known.sum(0), 1), np.nan).astype(np.float32)
