"""A survey as JSON with stable keys, and that JSON as text for a terminal."""

from typing import Any

import numpy as np

from data_gen.ingest.clean import column_names
from data_gen.ingest.episodes import Outline
from data_gen.ingest.survey import Survey
from data_gen.ingest.tally import Lines, Tally, mean_of

MOST_SLOTS = 8  # agents that get a column of their own in the text
MOST_NAMES = 10


def summary_json(found: Survey, outline: Outline) -> dict[str, Any]:
    """All that a survey says, in JSON; None stands for what is not known."""
    return {
        "source": {"format": found.layout.source, "files": len(found.files), "digest": found.digest}
        | {"provenance": dict(found.layout.provenance)},
        "recordings": {"count": len(found.names), "terminated": found.terminated}
        | {"frames": _spread(found.lengths), "total_frames": int(found.lengths.sum())},
        "groups": {"count": len(found.groups), "recordings": _spread(np.bincount(found.group_of))}
        | {"first": list(found.groups[:MOST_NAMES])},
        "agents": _agents(found),
        "origin": list(found.layout.origin) if any(found.layout.origin) else [],
        "columns": _columns(column_names(found.layout), found.columns, found),
        "actions": _actions(found),
        "rewards": {"agent_steps_not_zero": found.rewarded},
        "labels": _labels(found),
        "rate": _rate(found),
        "duplicates": {"count": len(found.copies), "first": _copies(found)},
        "dropped": _lines(found.dropped),
        "treated": _treated(found, outline),
    }


def _spread(values: np.ndarray) -> dict[str, Any]:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return {"least": None, "median": None, "most": None}
    ends = (finite.min(), np.median(finite), finite.max())
    return dict(zip(("least", "median", "most"), map(_number, ends), strict=True))


def _number(value: Any) -> float | int | None:
    """As JSON has it, to six digits; None where it is not finite."""
    value = float(value)
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else float(f"{value:.6g}")


def _share(part: Any, whole: Any) -> float | int | None:
    return _number(part / whole) if whole else None


def _lines(lines: Lines) -> dict[str, Any]:
    return {"count": lines.count, "first": list(lines.first)}


def _agents(found: Survey) -> dict[str, Any]:
    counts, times = np.unique(found.agents, return_counts=True)
    return {
        "roles": list(found.layout.agents),
        "slots": found.n_agents,
        "recordings_by_number": {str(n): int(k) for n, k in zip(counts.tolist(), times.tolist(), strict=True)},
        "at_once": {"least": found.least_at_once, "most": found.most_at_once},
        "there_by_slot": [
            _share(*pair) for pair in zip(found.columns.there.tolist(), found.columns.frames.tolist(), strict=True)
        ],
    }


def _columns(names: tuple[str, ...], tally: Tally, found: Survey) -> list[dict[str, Any]]:
    units, means, there = found.layout.units, mean_of(tally), tally.there.tolist()
    place = units.get("position", "")
    n_places = len(found.layout.parts) * len(found.layout.axes)
    return [
        {
            "name": name,
            "unit": units.get(name, place if column < n_places else ""),
            "low": _number(tally.low[column]),
            "mean": _number(means[column]),
            "high": _number(tally.high[column]),
            "step": _number(np.spacing(np.float32(np.fmax(abs(tally.low[column]), abs(tally.high[column]))))),
            "missing": _share(tally.missing[:, column].sum(), sum(there)),
            "missing_by_slot": [_share(*pair) for pair in zip(tally.missing[:, column].tolist(), there, strict=True)],
        }
        for column, name in enumerate(names)
    ]


def _actions(found: Survey) -> dict[str, Any]:
    layout = found.layout
    about = {"kind": layout.action.kind, "size": layout.action.size}
    if layout.action.kind == "continuous":
        tally, means = found.actions, mean_of(found.actions)
        return about | {
            "columns": [
                {"name": name, "low": _number(tally.low[k]), "mean": _number(means[k]), "high": _number(tally.high[k])}
                | {"missing": _share(tally.missing[:, k].sum(), tally.there.sum())}
                for k, name in enumerate(layout.action_names)
            ]
        }
    *counts, outside = found.choices.tolist()
    names = layout.action_names or tuple(map(str, range(len(counts))))
    return about | {"choices": dict(zip(names, counts, strict=True)), "out_of_range": outside}


def _labels(found: Survey) -> list[dict[str, Any]]:
    labels = []
    for one in found.layout.labels:
        about = {"name": one.name, "scope": one.scope, "kind": one.kind}
        if one.kind == "class":
            *counts, unknown = found.classes[one.name].tolist()
            labels.append(about | {"classes": dict(zip(one.classes, counts, strict=True)), "unknown": unknown})
        else:
            tally = found.values[one.name]
            ends = {"low": _number(tally.low[0]), "mean": _number(mean_of(tally)[0]), "high": _number(tally.high[0])}
            labels.append(about | ends | {"unknown": int(tally.missing.sum())})
    return labels


def _rate(found: Survey) -> dict[str, Any]:
    return {
        "stated": _number(found.layout.rate) if found.layout.rate else None,
        "measured": _spread(found.rates) if found.layout.rate else None,
        "frames_a_step": None if found.layout.rate else _spread(1 / found.rates),
        "irregular": _lines(found.irregular),
    }


def _copies(found: Survey) -> list[dict[str, Any]]:
    return [
        {"recording": found.names[copy.number], "is": copy.kind, "other": found.names[copy.of]}
        | {"groups": [found.groups[found.group_of[number]] for number in (copy.number, copy.of)]}
        for copy in found.copies[:MOST_NAMES]
    ]


def _treated(found: Survey, outline: Outline) -> dict[str, Any]:
    treated, n_agents = found.treated, found.n_agents
    cells = int(treated.episodes.sum()) * treated.longest
    return {
        "episodes": int(treated.episodes.sum()),
        "recordings_without": int((treated.episodes == 0).sum()),
        "steps": treated.longest,
        "agents": n_agents,
        "padded": _share(cells - treated.steps, cells),
        "agent_steps_missing": _share(treated.steps * n_agents - treated.agent_steps, treated.steps * n_agents),
        "observations": list(outline.obs_names),
        "actions": {"kind": outline.action.kind, "size": outline.action.size, "names": list(outline.action_names)},
        "labels": [spec.name for spec in outline.labels],
        "rate": _number(outline.rate) if outline.rate else None,
        "frame": outline.frame,
        "derived": outline.derived,
        "dropped": _lines(treated.dropped),
    }
