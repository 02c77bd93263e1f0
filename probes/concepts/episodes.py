"""What a concept looks like: its nearest episodes, and the values of the label among them.

Letters: B rows, F features, R rows chosen.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from data_gen.trajectory import RowIndex
from probes.labels import Target


def nearest_rows(
    cosine: Float[np.ndarray, " B"], rows: RowIndex, among: Int[np.ndarray, " n"], n_rows: int, per_group: int
) -> Int[np.ndarray, " R"]:
    """Rows of `among` with the highest cosine, at most `per_group` of one group, the nearest first."""
    columns = (rows.t0[among], rows.episode[among], rows.checkpoint[among], rows.group[among], -cosine[among])
    ranked = among[np.lexsort(columns)]
    groups = rows.group[ranked]
    place = np.zeros(len(ranked), int)
    for group in np.unique(groups):
        place[groups == group] = np.arange((groups == group).sum())
    return ranked[place < per_group][:n_rows]


def make_up(target: Target, near: Int[np.ndarray, " R"], among: Int[np.ndarray, " n"]) -> dict[str, str]:
    """The label among the nearest rows, against all rows it was chosen from.

    `stands_for` is the class whose share rises most; a real target has none, and its two means.
    """
    if target.kind == "real":
        means = target.values[near].mean(), target.values[among].mean()
        return {"stands_for": "", "make_up": f"mean {means[0]:.4g} (all {means[1]:.4g})"}
    shares, base = (
        np.bincount(target.values[part], minlength=len(target.classes)) / len(part) for part in (near, among)
    )
    both = zip(target.classes, shares, base, strict=True)
    words = [f"{name} {share:.2f} (all {whole:.2f})" for name, share, whole in both]
    return {"stands_for": target.classes[int(np.argmax(shares - base))], "make_up": "; ".join(words)}


def episode_records(
    target: Target,
    near: Int[np.ndarray, " R"],
    rows: RowIndex,
    numbers: Int[np.ndarray, " B"],
    cosine: Float[np.ndarray, " B"],
    scores: Float[np.ndarray, " B"],
) -> list[dict[str, Any]]:
    """One record a nearest episode; `numbers` are the rows' numbers in the data set."""
    return [
        {
            "rank": rank,
            "row": int(numbers[row]),
            "episode": int(rows.episode[row]),
            "group": int(rows.group[row]),
            "checkpoint": int(rows.checkpoint[row]),
            "t0": int(rows.t0[row]),
            "cosine": float(cosine[row]),
            "score": float(scores[row]),
            "value": target.classes[target.values[row]] if target.kind == "class" else f"{target.values[row]:.6g}",
        }
        for rank, row in enumerate(near.tolist(), start=1)
    ]
