"""Which test episodes are compared by an intervention: another one's latent is put in the place of an episode's own.

Letters: B rows, P pairs, K classes.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from data_gen.trajectory import SPLITS, RowIndex
from probes.labels import Target

LEAST_GROUPS = 2
LOW, HIGH = 1 / 3, 2 / 3


class Ends(NamedTuple):
    """Rows that a pair may take, and their class; of a number, 0 is its lowest third and 1 its highest.

    `failure` says why there is no pair, and is empty where there is.
    """

    codes: Int[np.ndarray, " B"]
    allowed: Bool[np.ndarray, " B"]
    failure: str


class Pairs(NamedTuple):
    """Row numbers: `b` has another class than `a`, `same` has its class; both are of other groups than `a`."""

    a: Int[np.ndarray, " P"]
    b: Int[np.ndarray, " P"]
    same: Int[np.ndarray, " P"]


def ends_of(
    target: Target, rows: RowIndex, split: Int32[np.ndarray, " B"], without: list[str], checkpoints: list[int]
) -> Ends:
    """The test rows of a target and of the checkpoints named (none: all), without those of the classes named.

    A class needs two test groups.
    """
    here = np.isin(rows.checkpoint, checkpoints) if checkpoints else np.ones(len(split), bool)
    allowed = target.keep & (split == SPLITS.index("test")) & here
    codes = np.zeros(len(split), int)
    if target.failure:
        return Ends(codes, allowed, target.failure)
    if target.kind == "class":
        codes = target.values.astype(int)
        left_out = [number for number, name in enumerate(target.classes) if name in without]
        allowed = allowed & ~np.isin(codes, left_out)
    elif allowed.any():
        low, high = np.quantile(target.values[allowed], (LOW, HIGH))
        codes = (target.values > low).astype(int)
        allowed = allowed & ((target.values <= low) | (target.values >= high))
    found = np.unique(codes[allowed])
    rich = [code for code in found if len(np.unique(rows.group[allowed & (codes == code)])) >= LEAST_GROUPS]
    allowed = allowed & np.isin(codes, rich)
    failure = "" if len(rich) > 1 else f"{len(rich)} class is left in {LEAST_GROUPS} or more test groups"
    return Ends(codes, allowed, failure)


def draw_pairs(ends: Ends, groups: Int32[np.ndarray, " B"], n_pairs: int, rng: np.random.Generator) -> Pairs:
    """Pairs in random order, as many of each ordered two classes as can be; a group of a class is as likely as another.

    Training seeds differ in how many of their episodes have a class, and none of them should speak for all.
    """
    found = np.flatnonzero(ends.allowed)
    members = {
        code: {group: found[(ends.codes[found] == code) & (groups[found] == group)] for group in of_class}
        for code in np.unique(ends.codes[found]).tolist()
        for of_class in [np.unique(groups[found][ends.codes[found] == code]).tolist()]
    }
    orders = [(one, other) for one in members for other in members if one != other]
    turns = rng.permutation(np.resize(rng.permutation(len(orders)), n_pairs))
    drawn = []
    for one, other in (orders[turn] for turn in turns):
        a = _episode(members[one], None, rng)
        own = int(groups[a])
        drawn.append((a, _episode(members[other], own, rng), _episode(members[one], own, rng)))
    return Pairs(*np.array(drawn).T)


def _episode(of_class: dict[int, np.ndarray], other_than: int | None, rng: np.random.Generator) -> int:
    """A random episode of a random group that is not `other_than`."""
    return int(rng.choice(of_class[rng.choice([group for group in of_class if group != other_than])]))
