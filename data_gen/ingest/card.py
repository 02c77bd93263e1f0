"""A data set's card: what it holds, where it is from and what was left out, in Markdown, from its shards alone.

It lies beside the shards as README.md; readers of the data set do not look at it. A shard is in memory at a time.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data_gen.ingest.words import facts_of, origin_in_words, table_of
from data_gen.storage.dataset import digest, shard_path, whole_set
from data_gen.storage.leftovers import temporary
from data_gen.storage.split import split_groups
from data_gen.storage.store import read_arrays, read_manifest
from data_gen.trajectory import SPLITS, Labels, LabelSpec

CARD = "README.md"
MOST_LINES = 20
MOST_NAMES = 40


class Rows(NamedTuple):
    """What is known of each row, and how many of its agent steps are real."""

    group: np.ndarray
    episode: np.ndarray
    labels: Labels
    split: np.ndarray
    real: np.ndarray


def write_card(root: Path) -> None:
    """Write the card of a whole data set beside its shards, whole or not at all."""
    work = temporary(root / CARD)
    work.write_text(card(root))
    work.replace(root / CARD)


def card(root: Path) -> str:
    """The card of a whole data set. Raises InputError as its readers do."""
    manifests = [read_manifest(shard_path(root, index)) for index in whole_set(root)]
    attrs, meta = manifests[0]["attrs"], manifests[0]["attrs"]["meta"]
    rows = _rows(root, manifests)
    found = meta.get("found")
    sections = [
        ("Shape", _shape(manifests, attrs, rows)),
        ("Split", _split(rows, meta)),
        ("Labels", _labels(rows)),
        *([("What was found in the source", _found(found))] if found else []),
        *([("What was made of it", _settings(meta["treatment"]))] if "treatment" in meta else []),
        ("What was left out", _left_out(manifests)),
        ("Groups and recordings", _names(meta, rows)),
        ("Where it is from, and how to cite it", _origin(root, manifests, meta)),
        ("What to do with it", _commands(root, trains=0 in rows.split)),
    ]
    text = [f"# Data set {root.resolve().parent.name}", "", "Written with the data set; anything here follows from it."]
    for title, lines in sections:
        text += ["", f"## {title}", "", *lines]
    return "\n".join(text) + "\n"


def _rows(root: Path, manifests: list[dict[str, Any]]) -> Rows:
    attrs = manifests[0]["attrs"]
    names = [name for name in manifests[0]["arrays"] if name.startswith("label_")]
    parts = []
    for index in range(len(manifests)):
        own = read_arrays(shard_path(root, index), ["group", "episode", "mask", *names])
        parts.append(own | {"mask": own["mask"].sum((1, 2))})
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    specs = tuple(LabelSpec(**{**spec, "classes": tuple(spec["classes"])}) for spec in attrs["label_specs"])
    labels = Labels({name.removeprefix("label_"): whole[name] for name in names}, specs)
    how = attrs["meta"]["recording"]
    split = split_groups(whole["group"], labels, how["split"], how["seed"])
    return Rows(whole["group"], whole["episode"], labels, split, whole["mask"])


def _shape(manifests: list[dict[str, Any]], attrs: dict[str, Any], rows: Rows) -> Iterator[str]:
    meta, (_, steps, agents, width) = attrs["meta"], manifests[0]["arrays"]["obs"]["shape"]
    action = attrs["action"]
    named = f": {_named(meta['action_names'])}" if meta.get("action_names") else ""
    yield f"- {len(rows.split):,} episodes of up to {steps} steps and {agents} agents, in {len(manifests)} shard(s)"
    yield f"- {rows.real.sum():,} steps of an agent, {rows.real.sum() / (len(rows.split) * steps * agents):.1%} of all"
    yield f"- {width} observations: {_named(meta.get('obs_names', [])) or 'not named'}"
    yield f"- {action['kind']} actions of size {action['size']}{named}"
    if "frame" in meta:
        yield f"- frame of reference: {meta['frame']}; actions: {meta['derived']}"
        rate = f"{meta['rate']:g} steps a second" if meta["rate"] else "not known"
        yield f"- rate: {rate}"
        yield f"- units: {', '.join(f'{name} in {unit}' for name, unit in meta['units'].items()) or 'not stated'}"
        if "origin" in meta:
            yield f"- places are measured from {origin_in_words(meta['origin'])}"
        yield f"- agents: {', '.join(meta['agents']) or 'exchangeable'}"
    yield f"- hand features: {', '.join(attrs['hand_names']) or 'none'}"


def _named(names: list[str] | list[list[str]]) -> str:
    """Names of columns, by agent where each has its own."""
    if names and isinstance(names[0], list):
        return "; ".join(f"agent {agent}: {', '.join(own)}" for agent, own in enumerate(names))
    return ", ".join(map(str, names))


def _split(rows: Rows, meta: dict[str, Any]) -> Iterator[str]:
    yield from _table(
        ["split", "groups", "episodes", "agent steps"],
        [
            [name, len(np.unique(rows.group[here])), int(here.sum()), int(rows.real[here].sum())]
            for name, here in ((name, rows.split == number) for number, name in enumerate(SPLITS))
        ],
    )
    how = meta["recording"]
    yield ""
    yield f"By group, so that no group is in two splits: {how['split']} groups, drawn with seed {how['seed']}."


def _labels(rows: Rows) -> Iterator[str]:
    if not rows.labels.specs:
        yield "None."
        return
    counted = []
    for spec in rows.labels.specs:
        values = rows.labels.values[spec.source]
        who = "agent" if values.ndim == 2 else "episode"
        counted.append([spec.name, spec.kind, who, _said(spec, values), *_by_split(spec, values, rows.split)])
    yield from _table(["label", "kind", "of", "values", *SPLITS], counted)


def _said(spec: LabelSpec, values: np.ndarray) -> str:
    if spec.kind == "class":
        return ", ".join(f"{name} {count:,}" for name, count in _counts(spec, values).items())
    known = values[np.isfinite(values)]
    cut = f", cut into {spec.bins} classes at quantiles of the training groups" if spec.kind == "quantile" else ""
    return f"{known.min():.4g} to {known.max():.4g}, {len(known):,} known{cut}" if len(known) else "none known"


def _by_split(spec: LabelSpec, values: np.ndarray, split: np.ndarray) -> list[str]:
    parts = [values[split == number] for number in range(len(SPLITS))]
    if spec.kind == "class":
        names = list(_counts(spec, values))
        return [" / ".join(str(_counts(spec, part).get(name, 0)) for name in names) for part in parts]
    return [f"{np.isfinite(part).sum():,}" for part in parts]


def _counts(spec: LabelSpec, values: np.ndarray) -> dict[str, int]:
    """How often each class is there, in the order of their numbers; one of -1 is not known, and comes last."""
    codes, counts = np.unique(values, return_counts=True)
    pairs = sorted(zip(codes.tolist(), counts.tolist(), strict=True), key=lambda pair: (pair[0] < 0, pair[0]))
    return {spec.classes[c] if 0 <= c < len(spec.classes) else "not known" if c < 0 else str(c): n for c, n in pairs}


def _found(found: dict[str, Any]) -> list[str]:
    facts = [[name, said] for name, said in facts_of(found)]
    return [*_table(["", ""], facts), "", "```text", *table_of(found), "```"]


def _settings(settings: dict[str, Any]) -> list[str]:
    return [f"- {name}: {json.dumps(value)}" for name, value in settings.items()]


def _left_out(manifests: list[dict[str, Any]]) -> list[str]:
    lines = [line for manifest in manifests for line in manifest["attrs"].get("discarded", ())]
    more = len(lines) - MOST_LINES
    shown = [f"- {line}" for line in lines[:MOST_LINES]] or ["Nothing."]
    return shown + [f"- and {more:,} more, in `discarded` of the shards' manifests"] * (more > 0)


def _names(meta: dict[str, Any], rows: Rows) -> Iterator[str]:
    """Which groups are in which split; which number is which recording stands in the shards' manifests."""
    names = meta.get("groups")
    for number, name in enumerate(SPLITS):
        groups = np.unique(rows.group[rows.split == number]).tolist()
        shown = ", ".join(names[group] if names else str(group) for group in groups[:MOST_NAMES])
        yield f"- {name}: {shown}{f' and {len(groups) - MOST_NAMES} more' if len(groups) > MOST_NAMES else ''}"
    if "recordings" in meta:
        yield ""
        yield (
            "A row's `episode` is a place in `meta.recordings`, its `group` one in `meta.groups` (counted from 0), and "
            "its `t0` the step of the recording, at the stated rate, that the row begins with."
        )
        windows = Counter(rows.episode.tolist())
        yield f"{len(windows)} recording(s) gave {min(windows.values())} to {max(windows.values())} episode(s) each."


def _origin(root: Path, manifests: list[dict[str, Any]], meta: dict[str, Any]) -> Iterator[str]:
    domain = meta.get("domain", {})
    yield f"- {'source' if 'found' in meta else 'domain'}: {domain.get('name', 'not named')}"
    if "found" in meta:
        source = meta["found"]["source"]
        yield from (f"- {name}: {json.dumps(value)}" for name, value in source["provenance"].items())
        yield f"- digest of the source (SHA-256 of all its values): `{source['digest']}`"
    yield f"- digest of this data set: `{digest(root)}`"
    made = manifests[0]["attrs"]["provenance"]
    yield from (f"- {name}: `{made[name]}`" for name in ("revision", "command") if name in made)
    yield ""
    yield (
        "Cite the source of the data by its own terms, the program by its `CITATION.cff`, and name both digests: they "
        "are the same wherever the same data were written with the same settings."
    )


def _commands(root: Path, *, trains: bool) -> list[str]:
    run = root.parent
    where = f"name={run.name}" + f" runs={run.parent}" * (run.parent != Path("runs"))
    train = [f"python -m launch.train {where}", f"python -m launch.pipeline {where} data={root}"]
    return [
        "```bash",
        *(train if trains else [f"python -m launch.embed run=a-trained-run data={root}"]),
        "```",
        "",
        f'In Python: `data_gen.storage.dataset.read_dataset(Path("{root}"))`; each shard also opens with '
        "`xarray.open_zarr(shard / 'arrays.zarr', consolidated=False)`.",
    ]


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = [list(head), ["---"] * len(head), *rows]
    return [f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |" for line in lines]
