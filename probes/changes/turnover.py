"""Which clusters come and go at a change.

Letters: n rows.
"""

from typing import Any

import numpy as np
from jaxtyping import Int

from probes.changes.series import Series

SHOWN = 3


def turnover(
    series: Series, checkpoints: Int[np.ndarray, " n"], clusters: Int[np.ndarray, " n"]
) -> list[dict[str, Any]]:
    """At each change, the clusters whose share rises most and falls most, three of each, the largest first.

    Shares are of all episodes between the change before and this one, and of those between this one and the next; -1,
    no cluster, counts as one.
    """
    edges = [-np.inf, *(change.after for change in series.changes), np.inf]
    found = []
    for change, start, middle, end in zip(series.changes, edges, edges[1:], edges[2:], strict=False):
        before, after = (clusters[(checkpoints >= a) & (checkpoints < b)] for a, b in ((start, middle), (middle, end)))
        moves = [(float((after == k).mean()), float((before == k).mean()), k) for k in np.unique(clusters).tolist()]
        ranked = sorted(moves, key=lambda move: (move[1] - move[0], move[2]))
        rises = [move for move in ranked if move[0] > move[1]][:SHOWN]
        falls = [move for move in reversed(ranked) if move[0] < move[1]][:SHOWN]
        found += [
            {
                "before": change.before,
                "after": change.after,
                "cluster": cluster,
                "share_before": share_before,
                "share_after": share_after,
                "rise": share_after - share_before,
            }
            for share_after, share_before, cluster in rises + falls
        ]
    return found
