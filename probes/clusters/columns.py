"""Labels, training seeds and checkpoints as plain columns, of which a cluster is made up.

Letters: B episodes.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Int32

from data_gen.trajectory import SPLITS, InputError, Labels, LabelSpec, RowIndex
from probes.labels import GROUP, columns_of
from probes.quantiles import blocks_of, cut, edges_in


class Classes(NamedTuple):
    """A label of classes; `agent` is whose label it is, -1 the team's. `codes` mean nothing where not `keep`."""

    name: str
    agent: int
    codes: Int[np.ndarray, " B"]
    keep: Bool[np.ndarray, " B"]
    names: tuple[str, ...]


class Numbers(NamedTuple):
    """A label that is a number; NaN where an episode has none."""

    name: str
    agent: int
    values: Float[np.ndarray, " B"]


class Columns(NamedTuple):
    """All there is to describe a cluster by."""

    classes: tuple[Classes, ...]
    numbers: tuple[Numbers, ...]


def make_columns(labels: Labels, rows: RowIndex, split: Int32[np.ndarray, " B"]) -> Columns:
    """Every label, also those too rare to probe. A quantile label is cut at its edges in the training groups, and is a
    number as well, under its source's name. Raises InputError where a label has not one value an episode, or classes
    are not numbered from 0.
    """
    classes = [_numbered(GROUP, rows.group), _numbered("checkpoint", rows.checkpoint)]
    numbers: dict[str, Numbers] = {}
    for spec in labels.specs:
        for name, agent, values in _split_up(spec, labels, len(split)):
            if spec.kind == "class":
                classes.append(_named(name, agent, values, spec.classes))
                continue
            values = values.astype(float)
            if spec.kind == "quantile":
                classes.append(_cut(name, agent, values, blocks_of(spec, labels), split, spec.bins))
            source = name if spec.kind == "real" else name.replace(spec.name, spec.source, 1)
            numbers[source] = Numbers(source, agent, np.where(np.isfinite(values), values, np.nan))
    return Columns(tuple(classes), tuple(numbers.values()))


def _split_up(spec: LabelSpec, labels: Labels, n: int) -> list[tuple[str, int, np.ndarray]]:
    values = labels.values[spec.source]
    if len(values) != n:
        raise InputError(f"label '{spec.name}' has {len(values)} values for {n} episodes; record it for each one.")
    names = columns_of(spec, labels)
    return [(name, i, values[:, i]) for i, name in enumerate(names)] if names else [(spec.name, -1, values)]


def _named(name: str, agent: int, values: np.ndarray, names: tuple[str, ...]) -> Classes:
    if not (np.issubdtype(values.dtype, np.integer) or values.dtype == bool):
        raise InputError(f"label '{name}' is of kind class but holds {values.dtype}; store class numbers as integers.")
    codes = values.astype(int)
    names = names or tuple(map(str, range(codes.max() + 1)))
    if codes.min() < -1 or codes.max() >= len(names):
        raise InputError(
            f"label '{name}' holds class {codes.min()}..{codes.max()}; number the classes 0..{len(names) - 1} (-1: not "
            "known), or name every one of them."
        )
    return Classes(name, agent, np.maximum(codes, 0), codes >= 0, names)


def _numbered(name: str, values: Int32[np.ndarray, " B"]) -> Classes:
    names, codes = np.unique(values, return_inverse=True)
    return Classes(name, -1, codes.ravel(), np.ones(len(values), bool), tuple(map(str, names.tolist())))


def _cut(name: str, agent: int, values: np.ndarray, block: np.ndarray, split: np.ndarray, bins: int) -> Classes:
    edges = edges_in(values, block, split == SPLITS.index("train"), bins)
    codes, most = cut(values, block, edges), max((len(inner) for inner in edges.values()), default=0)
    return Classes(name, agent, np.maximum(codes, 0), codes >= 0, tuple(map(str, range(most + 1))))


def take_columns(columns: Columns, here: Int[np.ndarray, " n"], agents: tuple[int, ...]) -> Columns:
    """The given episodes, without the labels of other agents."""
    whose = (-1, *agents)
    return Columns(
        tuple(
            one._replace(codes=one.codes[here], keep=one.keep[here]) for one in columns.classes if one.agent in whose
        ),
        tuple(one._replace(values=one.values[here]) for one in columns.numbers if one.agent in whose),
    )
