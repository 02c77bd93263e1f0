"""A summary of a source in words: short lines for a terminal, and the same for a data set's card."""

from typing import Any

import numpy as np

from data_gen.ingest.recording import FAR
from data_gen.ingest.summary import MOST_SLOTS
from data_gen.trajectory import SPLITS


def summary_text(summary: dict[str, Any]) -> str:
    """The JSON of `summary_json`, aligned, in a screen or two."""
    facts = facts_of(summary)
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {said}" for name, said in facts]
    return "\n".join([*lines, "", *table_of(summary)])


def facts_of(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and words of each thing that was found."""
    recordings, groups, agents = summary["recordings"], summary["groups"], summary["agents"]
    numbers = ", ".join(f"{count} with {n}" for n, count in agents["recordings_by_number"].items())
    once = agents["at_once"]
    few = "; too few to train on, which takes 3; launch.embed takes any" if groups["count"] < len(SPLITS) else ""
    facts = [
        ("source", f"{summary['source']['format']}, {summary['source']['files']} file(s)"),
        ("recordings", f"{recordings['count']}; {recordings['terminated']} end because they terminated"),
        ("frames", f"{_spread(recordings['frames'])} a recording, {recordings['total_frames']:,} in all"),
        ("groups", f"{groups['count']}, of {_spread(groups['recordings'])} recordings: {_first(groups)}{few}"),
        ("agents", f"recordings by agents: {numbers}; {once['least']} to {once['most']} there at once"),
        ("roles", ", ".join(agents["roles"]) or "none: agents are exchangeable"),
        ("rate", _rate(summary["rate"])),
        *([("origin", f"places are measured from {origin_in_words(summary['origin'])}")] if summary["origin"] else []),
        *([("coarse", said)] if (said := _coarse(summary["columns"])) else []),
        ("irregular", _counted(summary["rate"]["irregular"], "recording(s) with irregular time stamps")),
        ("actions", _actions(summary["actions"])),
        ("rewards", f"{summary['rewards']['agent_steps_not_zero']:,} agent steps have one that is not zero"),
        *(("label", _label(label)) for label in summary["labels"]),
        ("duplicates", _copies(summary["duplicates"])),
        ("left out", _counted(summary["dropped"], "time(s) by the reader")),
    ]
    return [*facts, *_treated(summary["treated"])]


def origin_in_words(origin: list[float]) -> str:
    """What was taken from places."""
    return f"({', '.join(f'{value:,.10g}' for value in origin)})"


def table_of(summary: dict[str, Any]) -> list[str]:
    """A line for each measured column: its range, and the share that is missing, in all and of each agent."""
    columns, there = summary["columns"], summary["agents"]["there_by_slot"]
    names = summary["agents"]["roles"] or [f"agent {slot}" for slot in range(len(there))]
    shown = names[:MOST_SLOTS] if len(names) > 1 else []
    head = ["column", "unit", "low", "mean", "high", "missing", *shown]
    rows = [
        [one["name"], one["unit"] or "-", *(_number(one[key]) for key in ("low", "mean", "high"))]
        + [_percent(share) for share in (one["missing"], *one["missing_by_slot"][: len(shown)])]
        for one in columns
    ]
    if shown:
        rows.append(["(not there)", "", "", "", "", "", *(_absent(share) for share in there[: len(shown)])])
    lines = aligned([head, *rows]) if rows else []
    more = len(names) - len(shown)
    return [*lines, *([f"and {more} more agents; summary=json has them"] if shown and more else [])]


def aligned(rows: list[list[str]]) -> list[str]:
    """Columns of one width; the first to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in ([*zip(row, widths, strict=True)] for row in rows)
    ]


def _coarse(columns: list[dict[str, Any]]) -> str:
    """The column that lies farthest from 0, where single precision cannot tell near values apart any more."""
    far = [one for one in columns if one["step"] is not None and one["step"] >= np.spacing(np.float32(FAR))]
    if not far:
        return ""
    one = max(far, key=lambda one: one["step"])
    more = f", and {len(far) - 1} more column(s)" if len(far) > 1 else ""
    return (
        f"{one['name']} reaches {_number(max(one['low'], one['high'], key=abs))}{more}, and is kept in steps of "
        f"{_number(one['step'])}; take a constant from it before where smaller changes mean something"
    )


def _treated(treated: dict[str, Any]) -> list[tuple[str, str]]:
    actions, lost = treated["actions"], treated["recordings_without"]
    named = f" ({', '.join(actions['names'])})" if actions["names"] else ""
    rate = f"{_number(treated['rate'])} a second" if treated["rate"] else "rate not known"
    none = f"; {lost} recording(s) give none" if lost else ""
    return [
        ("episodes", f"{treated['episodes']:,} of up to {treated['steps']} steps, {treated['agents']} agents{none}"),
        ("masked", f"{_percent(treated['agent_steps_missing'])} of agent steps; padding {_percent(treated['padded'])}"),
        ("observed", f"{', '.join(treated['observations'])} (frame: {treated['frame']})"),
        ("acted", f"{actions['kind']}, {actions['size']}{named}; {treated['derived']}; {rate}"),
        ("probed", ", ".join(treated["labels"]) or "no label"),
        ("dropped", _counted(treated["dropped"], "time(s) by the treatment")),
    ]


def _rate(rate: dict[str, Any]) -> str:
    if not rate["stated"]:
        return f"not stated; {_spread(rate['frames_a_step'])} frames a step"
    return f"{_number(rate['stated'])} a second stated, {_spread(rate['measured'])} measured"


def _actions(actions: dict[str, Any]) -> str:
    if not actions["size"]:
        return "none in the source"
    if actions["kind"] == "continuous":
        return "; ".join(
            f"{one['name']} {_number(one['low'])} to {_number(one['high'])}"
            + (f" ({_percent(one['missing'])} missing)" if one["missing"] else "")
            for one in actions["columns"]
        )
    choices = ", ".join(f"{name} {count:,}" for name, count in actions["choices"].items())
    return choices + (f"; {actions['out_of_range']:,} out of range" if actions["out_of_range"] else "")


def _label(label: dict[str, Any]) -> str:
    unknown = f"; {label['unknown']:,} not known" if label["unknown"] else ""
    if label["kind"] == "class":
        said = ", ".join(f"{name} {count:,}" for name, count in label["classes"].items())
    else:
        said = f"{_number(label['low'])} to {_number(label['high'])}"
    return f"{label['name']} (by {label['scope']}): {said}{unknown}"


def _copies(copies: dict[str, Any]) -> str:
    said = [f"{one['recording']} is {one['is']} {one['other']}" for one in copies["first"]]
    more = copies["count"] - len(said)
    return "; ".join([*said, *([f"and {more} more"] if more else [])]) or "none"


def _counted(lines: dict[str, Any], what: str) -> str:
    first = f"; first: {lines['first'][0]}" if lines["first"] else ""
    return f"{lines['count']:,} {what}{first}" if lines["count"] else "none"


def _first(groups: dict[str, Any]) -> str:
    return ", ".join(groups["first"]) + (", …" if groups["count"] > len(groups["first"]) else "")


def _spread(spread: dict[str, Any]) -> str:
    least, median, most = (_number(spread[key]) for key in ("least", "median", "most"))
    return least if least == most else f"{least} to {most} (median {median})"


def _number(value: float | int | None) -> str:
    return "?" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _percent(share: float | int | None) -> str:
    return "-" if share is None else "0 %" if share == 0 else f"{share:.1%}".replace("%", " %")


def _absent(share: float | int | None) -> str:
    return _percent(None if share is None else 1 - share)
