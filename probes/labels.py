"""Ground truth as probe targets: classes and numbers, what is dropped and why, and the unit a label is constant in.

Letters: B rows, N agents.
"""

import difflib
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32, Num

from data_gen.trajectory import SPLITS, InputError, Labels, LabelSpec, RowIndex
from probes.quantiles import Edges, blocks_of, cut, edges_in, n_coincide

MIN_TRAIN_GROUPS, MIN_TEST_GROUPS = 3, 2
WITHIN = "return_class_within_checkpoint"
GROUP = "split_group"
CONFOUNDS = (GROUP, "checkpoint", WITHIN)


class Target(NamedTuple):
    """One thing to predict; `label` is the label it is (a column of), `name` its own name in the table.

    `values` are class numbers 0..K-1 or real numbers, and mean nothing where not `keep`. `unit` numbers the largest
    blocks within which the label is constant, (group, checkpoint) where it is constant in neither. `failure` says why
    the target cannot be evaluated, and is empty where it can.
    """

    label: str
    name: str
    level: str
    kind: str
    values: Num[np.ndarray, " B"]
    keep: Bool[np.ndarray, " B"]
    unit: Int[np.ndarray, " B"]
    classes: tuple[str, ...]
    note: str
    failure: str


def make_targets(
    labels: Labels, rows: RowIndex, split: Int32[np.ndarray, " B"], names: list[str]
) -> tuple[Target, ...]:
    """Every label, or those named, as targets; a label of each agent gives one target an agent.

    Raises InputError where a name is not a label, a label has no values, or its values do not fit its kind.
    """
    found = [target for spec in labels.specs for target in _targets_of(spec, labels, rows, split)]
    check_names(names, sorted({name for target in found for name in (target.label, target.name)}))
    return tuple(target for target in found if not names or {target.label, target.name} & set(names))


def columns_of(spec: LabelSpec, labels: Labels) -> list[str]:
    """The names of a label's columns, where each agent has one of its own."""
    values = labels.values[spec.source]
    return [f"{spec.name}_{i}" for i in range(values.shape[1])] if values.ndim == 2 else []


def names_of(labels: Labels) -> list[str]:
    """Every name that a label or a column of one goes by."""
    return sorted({name for spec in labels.specs for name in (spec.name, *columns_of(spec, labels))})


def check_names(names: list[str], known: list[str], key: str = "probe.labels", where: str = "the data set") -> None:
    """Raise InputError where a name, given under the config key, is no label that there is."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"The nearest is '{near[0]}'. " if near else ""
            raise InputError(f"{key}: {where} has no label '{name}'. {hint}Its labels are {known}.")


def checkpoint_target(rows: RowIndex, split: Int32[np.ndarray, " B"]) -> Target:
    """The learner's checkpoint as a target, split by group like any label."""
    spec = LabelSpec(name="checkpoint", source="checkpoint", kind="class")
    target = _class_target(spec, "checkpoint", rows.checkpoint.astype(int), np.ones(len(split), bool), rows, split, "")
    return target._replace(level="confound")


def group_target(rows: RowIndex) -> Target:
    """The group as a target; it cannot be split by group, so all that can be asked is whether it is known."""
    groups, codes, counts = np.unique(rows.group, return_inverse=True, return_counts=True)
    failure = "" if len(groups) > 1 and counts.max() > 1 else "there are not two groups with two episodes each"
    return Target(
        label=GROUP,
        name=GROUP,
        level="confound",
        kind="class",
        values=codes.ravel(),
        keep=(counts > 1)[codes.ravel()],
        unit=codes.ravel(),
        classes=tuple(str(group) for group in groups),
        note="episodes split within groups, since none is in two splits; no controls: permuting groups renames them",
        failure=failure,
    )


def within_checkpoint_target(labels: Labels, rows: RowIndex, split: Int32[np.ndarray, " B"]) -> Target | None:
    """The return class with edges of its own in each checkpoint, so that no checkpoint has more of one class.

    None where the data set has no label return_class that is cut at quantiles. A checkpoint without training episodes
    has no edges, and loses its rows.
    """
    found = [spec for spec in labels.specs if spec.name == "return_class" and spec.kind == "quantile"]
    if not found:
        return None
    spec, of_label = found[0], blocks_of(found[0], labels)
    pairs = np.stack([rows.checkpoint, of_label], 1)
    block = np.where(of_label < 0, -1, np.unique(pairs, axis=0, return_inverse=True)[1].ravel())
    values = labels.values[spec.source]
    edges = edges_in(values, block, split == SPLITS.index("train"), spec.bins)
    codes, n_equal = cut(values, block, edges), n_coincide(edges, spec.bins)
    where = f"class(es) of '{spec.within}' in a checkpoint" if spec.within else "checkpoint(s)"
    note = f"quantile edges coincide in {n_equal} {where}" if n_equal else ""
    spec = LabelSpec(name=WITHIN, source=spec.source, kind="class")
    return _class_target(spec, WITHIN, np.maximum(codes, 0), codes >= 0, rows, split, note)._replace(level="confound")


def _targets_of(spec: LabelSpec, labels: Labels, rows: RowIndex, split: np.ndarray) -> list[Target]:
    if spec.source not in labels.values:
        raise InputError(
            f"label '{spec.name}' is made from '{spec.source}', which the data set does not hold; it holds "
            f"{sorted(labels.values)}. Generate the data set again, or correct the label's source."
        )
    values = labels.values[spec.source]
    if len(values) != len(split):
        raise InputError(
            f"label '{spec.name}' has {len(values)} values for {len(split)} episodes; record it for each one."
        )
    level, columns = "team", {spec.name: values}
    if values.ndim == 2:
        level, columns = "agent", {f"{spec.name}_{i}": values[:, i] for i in range(values.shape[1])}
    targets = []
    for name, column in columns.items():
        read, keep, note = _read(spec, name, column, blocks_of(spec, labels), split)
        make = _real_target if spec.kind == "real" else _class_target
        targets.append(make(spec, name, read, keep, rows, split, note)._replace(level=level))
    return targets


def _read(
    spec: LabelSpec, name: str, column: np.ndarray, block: np.ndarray, split: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Class numbers or real numbers of one column, the rows that have a value, and a note."""
    if spec.kind not in ("class", "quantile", "real"):
        raise InputError(f"label '{name}' is of kind '{spec.kind}'; the kinds are class, quantile and real.")
    if spec.kind == "class":
        if not (np.issubdtype(column.dtype, np.integer) or column.dtype == bool):
            raise InputError(
                f"label '{name}' is of kind class but holds {column.dtype}; store class numbers as integers."
            )
        codes = column.astype(int)
        if codes.min() < -1 or (spec.classes and codes.max() >= len(spec.classes)):
            raise InputError(
                f"label '{name}' holds class {codes.min()}..{codes.max()}, but names {len(spec.classes)} classes "
                f"{list(spec.classes)}. Number the classes from 0 (-1: not known), and name every one of them, or none."
            )
        return codes, codes >= 0, _missing(codes >= 0)
    keep = np.isfinite(column)
    if spec.kind == "real":
        return np.where(keep, column, 0).astype(float), keep, _missing(keep)
    edges = _training_edges(spec, column, block, split)
    codes = cut(column, block, edges)
    notes = [_missing(keep), _no_edges(spec, keep & (codes < 0)), _coincide(spec, edges)]
    return np.maximum(codes, 0), codes >= 0, "; ".join(note for note in notes if note)


def _training_edges(spec: LabelSpec, column: np.ndarray, block: np.ndarray, split: np.ndarray) -> Edges:
    return edges_in(column, block, split == SPLITS.index("train"), spec.bins)


def _missing(keep: np.ndarray) -> str:
    return "" if keep.all() else f"{(~keep).sum()} episodes have no value"


def _no_edges(spec: LabelSpec, lost: np.ndarray) -> str:
    where = f"their class of '{spec.within}' is not known or" if spec.within else "the label"
    return f"{lost.sum()} episodes have no quantile edges, since {where} has no training episode" if lost.any() else ""


def _coincide(spec: LabelSpec, edges: Edges) -> str:
    n_equal = n_coincide(edges, spec.bins)
    if spec.within:
        return f"quantile edges coincide in {n_equal} class(es) of '{spec.within}'" if n_equal else ""
    return f"quantile edges coincide: {len(edges[0])} of {spec.bins - 1} differ" if n_equal else ""


def read_like(target: Target, stored: Labels, split: Int32[np.ndarray, " B"], fresh: Labels) -> Num[np.ndarray, " P"]:
    """A target's values of other episodes than the stored ones, on the target's own scale.

    Classes have the target's numbers, and -1 is a class that it has not. Quantiles are cut at the edges of the stored
    training episodes. Numbers may be NaN.
    """
    spec = next(spec for spec in stored.specs if spec.name == target.label)
    known, column = (_column_of(target, labels.values[spec.source]) for labels in (stored, fresh))
    if spec.kind == "real":
        return column.astype(float)
    if spec.kind == "quantile":
        edges = _training_edges(spec, known, blocks_of(spec, stored), split)
        column = cut(column, blocks_of(spec, fresh), edges)
    numbers = {name: number for number, name in enumerate(target.classes)}
    return np.array([numbers.get(class_name(spec, code), -1) for code in column.astype(int).tolist()])


def _column_of(target: Target, values: np.ndarray) -> np.ndarray:
    """The values of a label, or those of the agent whose label the target is."""
    return values if values.ndim == 1 else values[:, int(target.name.removeprefix(f"{target.label}_"))]


def _class_target(
    spec: LabelSpec, name: str, codes: np.ndarray, keep: np.ndarray, rows: RowIndex, split: np.ndarray, note: str
) -> Target:
    """Classes with too few groups lose their rows; the others are numbered anew from 0."""
    kept, dropped = [], []
    for code in np.unique(codes[keep]).tolist():
        here = keep & (codes == code)
        n_train, n_test = (_n_groups(rows, here & (split == SPLITS.index(part))) for part in ("train", "test"))
        if n_train >= MIN_TRAIN_GROUPS and n_test >= MIN_TEST_GROUPS:
            kept.append(code)
        else:
            dropped.append(f"'{class_name(spec, code)}' in {n_train} and {n_test}")
    notes = [note] * bool(note) + [_dropped(dropped)] * bool(dropped)
    failure = "" if len(kept) > 1 else "; ".join([f"{len(kept)} class left", *notes])
    keep = keep & np.isin(codes, kept)
    values = np.searchsorted(np.array(kept, int), codes) if kept else np.zeros(len(codes), int)
    return Target(
        label=spec.name,
        name=name,
        level="team",
        kind="class",
        values=values,
        keep=keep,
        unit=label_units(values, keep, rows),
        classes=tuple(class_name(spec, code) for code in kept),
        note="; ".join(notes),
        failure=failure,
    )


def _dropped(dropped: list[str]) -> str:
    more = f" and {len(dropped) - 3} more" if len(dropped) > 3 else ""
    return (
        f"{len(dropped)} class(es) dropped for too few training and test groups ({MIN_TRAIN_GROUPS} and "
        f"{MIN_TEST_GROUPS} needed): {', '.join(dropped[:3])}{more}"
    )


def class_name(spec: LabelSpec, code: int) -> str:
    """The name of a class, or its number where the label names none; a class of -1 is not known."""
    return spec.classes[code] if 0 <= code < len(spec.classes) else "not known" if code == -1 else str(code)


def _real_target(
    spec: LabelSpec, name: str, values: np.ndarray, keep: np.ndarray, rows: RowIndex, split: np.ndarray, note: str
) -> Target:
    failure = ""
    for part, least in (("train", MIN_TRAIN_GROUPS), ("test", MIN_TEST_GROUPS)):
        here = keep & (split == SPLITS.index(part))
        if _n_groups(rows, here) < least:
            failure = f"values in {_n_groups(rows, here)} {part} groups ({least} needed)"
        elif np.ptp(values[here]) == 0:
            failure = f"the label never changes in the {part} groups"
    unit = label_units(values, keep, rows)
    return Target(spec.name, name, "team", "real", values, keep, unit, classes=(), note=note, failure=failure)


def _n_groups(rows: RowIndex, here: Bool[np.ndarray, " B"]) -> int:
    return len(np.unique(rows.group[here]))


def label_units(values: Num[np.ndarray, " B"], keep: Bool[np.ndarray, " B"], rows: RowIndex) -> Int[np.ndarray, " B"]:
    """Numbers of the coarsest unit within which the label is constant: the group, else (group, checkpoint)."""
    groups = np.unique(rows.group, return_inverse=True)[1].ravel()
    seen = np.unique(np.stack([groups[keep], np.unique(values[keep], return_inverse=True)[1].ravel()], 1), axis=0)
    if len(seen) == len(np.unique(groups[keep])):
        return groups
    return np.unique(np.stack([rows.group, rows.checkpoint], 1), axis=0, return_inverse=True)[1].ravel()
