"""The probe table in words, and as text for a terminal."""

import math
from typing import Any

import pandas as pd
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from probes.labels import CONFOUNDS, GROUP, WITHIN
from probes.table.ceiling import PROBE as END_TO_END

WIDTH = 108
SHORT = {WITHIN: "return | checkpoint"}  # a name that would take the room of the figures
LEGEND = "* best of its block but for the ceiling   ! better than z_omega (paired 95 % interval below zero)"
Row = dict[str, Any]


def format_table(table: pd.DataFrame) -> str:
    """The table for a terminal, in blocks by label and probe, with the legend and the findings in words."""
    title = "What can be read from what (95 % intervals over test groups and encoder seeds)"
    shown = Table(title=title, box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("label", "features"):
        shown.add_column(name, no_wrap=True)
    for name in ("value", "z_omega - this", "chance", "control", "selectivity"):
        shown.add_column(name, justify="right", no_wrap=True)
    blocks = blocks_of(table)
    for (label, probe), block in blocks.items():
        rivals = [row["value"] for row in block if row["probe"] != END_TO_END and not math.isnan(row["value"])]
        best = max(rivals, default=math.nan)
        for place, row in enumerate(block):
            heading = (SHORT.get(label, label), f"  {probe}")[place] if place < 2 else ""
            shown.add_row(heading, *_cells(row, best), end_section=place == len(block) - 1)
    console = Console(width=WIDTH, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(shown)
    return capture.get() + LEGEND + "\n\n" + "\n".join(sentences(table)) + "\n"


def _cells(row: Row, best: float) -> list[str]:
    if math.isnan(row["value"]):
        return ["not evaluated"]
    name = row["features"] + " *" * int(row["value"] == best) + " !" * int(row["zw_minus_high"] < 0)
    return [
        name,
        ranged(row["value"], row["ci_low"], row["ci_high"]),
        ranged(row["zw_minus_this"], row["zw_minus_low"], row["zw_minus_high"], sign="+"),
        *(number(row[column]) for column in ("chance", "control")),
        number(row["selectivity"], sign="+"),
    ]


def blocks_of(table: pd.DataFrame) -> dict[tuple[str, str], list[Row]]:
    """Rows by (label, probe): labels by name, then the confounds, each in the table's own order.

    The supervised ceiling, which has no probe, stands in its label's first block, with which it is compared.
    """
    blocks: dict[tuple[str, str], list[Row]] = {}
    firsts: dict[str, str] = {}
    for row in table.to_dict("records"):
        label = str(row["label"])
        probe = firsts.setdefault(label, str(row["probe"])) if row["probe"] == END_TO_END else str(row["probe"])
        firsts.setdefault(label, probe)
        blocks.setdefault((label, probe), []).append({str(key): row[key] for key in row})
    return dict(sorted(blocks.items(), key=lambda block: (block[0][0] in CONFOUNDS, block[0])))


def sentences(table: pd.DataFrame) -> list[str]:
    """One finding in plain words for each label and probe: what z_omega says of it, and what says it better."""
    return [_sentence(label, probe, block) for (label, probe), block in blocks_of(table).items()]


def _sentence(label: str, probe: str, block: list[Row]) -> str:
    own = next(row for row in block if row["features"] == "z_omega")
    if math.isnan(own["value"]):
        return f"{label}: {own['note']}."
    value = ranged(own["value"], own["ci_low"], own["ci_high"])
    said = [f"{label} ({probe}): z_omega {value}, chance {number(own['chance'])}"]
    said += _confounded(label, own) if label in CONFOUNDS else _compared(own, block)
    if own["note"]:
        said.append(f"note: {own['note']}")
    return "; ".join(said) + "."


def _compared(own: Row, block: list[Row]) -> list[str]:
    """z_omega against every other row: a difference counts where its interval leaves out zero."""
    others = [row for row in block if row["features"] != "z_omega"]
    beaten = [row["features"] for row in others if row["zw_minus_low"] > 0]
    better = sorted((row for row in others if row["zw_minus_high"] < 0), key=lambda row: -row["value"])
    level = [row["features"] for row in others if row["zw_minus_low"] <= 0 <= row["zw_minus_high"]]
    controlled = not math.isnan(own["minus_control"])
    if own["minus_control_low"] > 0:
        beaten.append("its negative control")
    said = [] if own["ci_low"] > own["chance"] else ["NOT clearly above chance"]
    said.append(f"beats {_listed(beaten)}" if beaten else "beats none of the rows it is compared with")
    if controlled and not own["minus_control_low"] > 0:
        said.append("NOT told apart from its negative control")
    if better:
        said.append("better than z_omega: " + _listed([f"{r['features']} ({number(r['value'])})" for r in better]))
    if level:
        said.append(f"no clear difference from {_listed(level)}")
    if not math.isnan(own["selectivity"]):
        said.append(f"selectivity {number(own['selectivity'], sign='+')}")
    if not math.isnan(own["of_ceiling"]):
        said.append(f"{number(own['of_ceiling'])} of the supervised ceiling's skill above chance")
    return said


def _confounded(label: str, own: Row) -> list[str]:
    """What a decoded group or checkpoint means for every other row."""
    told = own["ci_low"] > own["chance"]
    if label == WITHIN:
        if told:
            return ["z_omega tells the return class within a checkpoint, so it holds more of the return than progress"]
        return ["z_omega does not tell it, so a return class may be read through the checkpoint alone"]
    what = "group" if label == GROUP else "checkpoint"
    if told:
        return [f"z_omega tells the {what}, so a label that follows the {what} may be read through it"]
    return [f"z_omega does not tell the {what}"]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def number(value: float, sign: str = "") -> str:
    """Two decimals without the leading zero; empty where there is no number."""
    if math.isnan(value):
        return ""
    text = f"{value:{sign}.2f}"
    return text.replace("0.", ".", 1) if abs(value) < 0.995 else text


def ranged(value: float, low: float, high: float, sign: str = "") -> str:
    if math.isnan(value):
        return ""
    return f"{number(value, sign)} [{number(low, sign)}, {number(high, sign)}]"
