"""What an episode can be coloured, filtered and listed by: where it comes from, its labels and its clusters."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib import colormaps
from matplotlib.colors import to_hex

from data_gen.trajectory import SPLITS
from probes.explorer.arrays import ABSENT, Store
from probes.explorer.explorer import HELD_OUT, Explorer
from probes.report.figures import PALETTE
from probes.report.figures_plane import class_colours, colours_of, frequent_colours, in_order

EPISODE, LABEL, CLUSTER = "episode", "labels", "clusters"
SHADES = [to_hex(colour) for colour in colormaps["viridis"](np.linspace(0, 0.95, 64))]
PALETTE_HEX = [to_hex(colour) for colour in PALETTE]
NOISE, OTHER = -1, "#8c8c8c"  # the grey of what has no colour of its own, darker than what is not selected
ENDS = (2, 98)  # percentiles between which numbers are coloured, as in the report


def variables_of(content: Explorer, store: Store) -> list[dict[str, Any]]:
    """All variables as the page reads them, under names that are all different."""
    found: list[dict[str, Any]] = []
    for variable in _all(content, store):
        taken = {other["name"] for other in found}
        while variable["name"] in taken:
            variable["name"] += f" ({variable['group']})"
        found.append(variable)
    return found


def _all(content: Explorer, store: Store) -> Iterator[dict[str, Any]]:
    for name, values in ((content.group, content.rows.group), ("checkpoint", content.rows.checkpoint)):
        codes, classes = numbered(values)
        yield class_variable(store, EPISODE, name, codes, looks_of(codes, classes, nominal=name == content.group))
    yield class_variable(store, EPISODE, "split", content.split, looks_of(content.split, split_names(content)))
    yield number_variable(store, EPISODE, "return", content.returns)
    for colour in colours_of(content.labels):
        if colour.classes:
            looks = looks_of(colour.values, colour.classes)
            yield class_variable(store, LABEL, colour.title, colour.values, looks)
        else:
            yield number_variable(store, LABEL, colour.title, colour.values.astype(np.float64))
    for name, values in content.clusters.items():
        yield cluster_variable(store, name, values)


def split_names(content: Explorer) -> tuple[str, ...]:
    """The splits, with that of held-out checkpoints where there is one."""
    return (*SPLITS, HELD_OUT) if content.split.max() == len(SPLITS) else SPLITS


def numbered(values: Int[np.ndarray, " B"]) -> tuple[Int[np.ndarray, " B"], tuple[str, ...]]:
    """Codes from 0 and the names of the numbers that occur; numbers below 0 have the code -1."""
    known = np.unique(values[values >= 0])
    codes = np.where(values >= 0, np.searchsorted(known, values), -1)
    return codes, tuple(map(str, known.tolist()))


def cluster_variable(store: Store, name: str, values: Int[np.ndarray, " B"]) -> dict[str, Any]:
    """Clusters by number; -1 is noise, which is grey, and what is less is of no cluster."""
    codes, classes = numbered(values)
    looks = looks_of(codes, classes, nominal=True)
    if (values == NOISE).any():
        codes = np.where(values == NOISE, len(looks), codes)
        looks.append({"name": "noise", "colour": OTHER, "folded": False, "shape": 0})
    return class_variable(store, CLUSTER, name, codes, looks)


def looks_of(codes: Int[np.ndarray, " B"], classes: tuple[str, ...], nominal: bool = False) -> list[dict[str, Any]]:
    """Name, colour and shape of each class; `nominal` numbers have no order, and so no scale of colours."""
    ordered = in_order(classes) and not nominal
    colours, names = (frequent_colours if nominal else class_colours)(codes[codes >= 0], classes)
    hexes = [to_hex(colour) for colour in colours]
    return [
        {
            "name": name,
            "colour": colour if shown else OTHER,
            "folded": not shown,
            "shape": 0 if ordered or not shown else PALETTE_HEX.index(colour),
        }
        for name, colour, shown in zip(classes, hexes, names, strict=True)
    ]


def class_variable(
    store: Store, group: str, name: str, codes: Int[np.ndarray, " B"], looks: list[dict[str, Any]]
) -> dict[str, Any]:
    """A class of each episode, -1 for none."""
    values = store.put(np.where(codes >= 0, codes, ABSENT), "u2")
    return {"name": name, "group": group, "kind": "class", "values": values, "classes": looks}


def number_variable(store: Store, group: str, name: str, values: Float[np.ndarray, " B"]) -> dict[str, Any]:
    """A number of each episode, NaN for none."""
    real = values[np.isfinite(values)]
    low, high = np.percentile(real, ENDS).tolist() if len(real) else (0.0, 1.0)
    kept = store.put(values, "f4")
    return {"name": name, "group": group, "kind": "number", "values": kept, "low": low, "high": high}
