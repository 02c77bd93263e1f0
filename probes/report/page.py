"""The report as one HTML file that opens offline: no script, no network, images and style inside.

What it says comes from `report`; here it is only set.
"""

import base64
import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from probes.report.figures import records

HEADS = ("label", "features", "probe", "metric", "value", "chance", "control", "selectivity", "z_ω minus this")


class Section(NamedTuple):
    """A figure, or the reason why there is none; what it shows, and what would make it untrustworthy.

    `pictures` are PNGs that were drawn elsewhere, and stand where the figure would.
    """

    name: str
    title: str
    caption: str
    figure: Figure | None
    absent: str
    below: str = ""
    pictures: tuple[bytes, ...] = ()


def page(
    name: str,
    facts: Sequence[tuple[str, str]],
    key_figures: Sequence[tuple[str, str, str]],
    sections: Sequence[Section],
    images: dict[str, bytes],
) -> str:
    """The whole page; `images` are PNGs by section name."""
    name = html.escape(name)
    links = " ".join(f'<a href="#{section.name}">{html.escape(section.title)}</a>' for section in sections)
    key = _rows(key_figures, "key") if key_figures else '<p class="absent">None were given.</p>'
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}: marl-vae report</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<header><p>marl-vae report</p><h1>{name}</h1><nav>{links}</nav></header><main>"
        f"<section><h2>The data set</h2>{_rows(facts, 'facts')}</section><section><h2>Key figures</h2>{key}</section>"
        + "".join(
            _section(section, (images[section.name],) if section.name in images else section.pictures)
            for section in sections
        )
        + "</main></body></html>\n"
    )


def _section(section: Section, images: Sequence[bytes]) -> str:
    title = html.escape(section.title)
    shown = f'<p class="absent">{html.escape(section.absent)}</p>'
    if images:
        shown = f'<p class="caption">{html.escape(section.caption)}</p>' + "".join(
            f'<img alt="{title}" src="data:image/png;base64,{base64.b64encode(image).decode()}">' for image in images
        )
    return f'<section id="{section.name}"><h2>{title}</h2>{shown}{section.below}</section>'


def _cells(values: Sequence[Any]) -> str:
    return "".join(f"<td>{html.escape(str(value))}</td>" for value in values)


def _rows(rows: Sequence[Sequence[str]], kind: str) -> str:
    return f'<table class="{kind}">' + "".join(f"<tr>{_cells(row)}</tr>" for row in rows) + "</table>"


def bullets(sentences: Sequence[str]) -> str:
    """A list, or nothing where there is nothing to list."""
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<ul>{items}</ul>" if items else ""


def not_evaluated(table: pd.DataFrame) -> str:
    """Why labels have no value."""
    failed = [row for row in records(table) if str(row["note"]).startswith("not evaluated")]
    return bullets([f"{row['label']}: {row['note']}" for row in failed])


def probe_rows(table: pd.DataFrame) -> str:
    """Every row of the probe table, folded away until it is asked for."""
    best = table.groupby(["label", "probe"])["value"].transform("max")
    lines = []
    for row, top in zip(records(table), best, strict=True):
        cells = [row["label"], row["features"], row["probe"], row["metric"]]
        cells.append(_interval(row, "value", "ci_low", "ci_high"))
        cells += [_number(row[name]) for name in ("chance", "control", "selectivity")]
        cells += [_interval(row, "zw_minus_this", "zw_minus_low", "zw_minus_high"), row["n_groups"], row["note"]]
        kind = ' class="best"' if row["value"] == top else ""
        lines.append(f"<tr{kind}>{_cells(cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in (*HEADS, "test groups", "note"))
    return (
        f"<details><summary>All {len(table)} rows of the probe table (best of each label and probe in bold)</summary>"
        f'<div class="wide"><table class="probes"><thead><tr>{head}</tr></thead><tbody>'
        + "".join(lines)
        + "</tbody></table></div></details>"
    )


def _number(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:.3f}"


def _interval(row: dict[str, Any], value: str, low: str, high: str) -> str:
    shown = _number(row[value])
    return shown if pd.isna(row[low]) else f"{shown} [{_number(row[low])}, {_number(row[high])}]"


STYLE = """
:root { color: #222; background: #f6f7f8; font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
body { margin: 0; }
header, main { max-width: 1160px; margin: 0 auto; padding: 0 20px; }
header p { margin: 28px 0 0; color: #777; letter-spacing: .04em; }
h1 { margin: 0 0 8px; font-size: 34px; line-height: 1.2; overflow-wrap: anywhere; }
nav a { color: #0072b2; margin-right: 18px; text-decoration: none; }
section { background: #fff; border: 1px solid #e4e6e8; border-radius: 8px; padding: 18px 26px 24px; margin: 20px 0; }
h2 { margin: 0 0 10px; font-size: 21px; }
img { width: 100%; height: auto; display: block; }
.caption { max-width: 90ch; color: #555; margin: 0 0 16px; }
.absent { color: #777; font-style: italic; margin: 0; }
ul { padding-left: 20px; } li { margin: 3px 0; }
table { border-collapse: collapse; } td, th { text-align: left; padding: 5px 18px 5px 0; vertical-align: top; }
tr + tr td { border-top: 1px solid #eee; }
.facts td:first-child, .key td:first-child { color: #666; white-space: nowrap; }
.key td:nth-child(2) { font-weight: 600; font-variant-numeric: tabular-nums; max-width: 20em; }
.probes { font-size: 12.5px; font-variant-numeric: tabular-nums; }
.probes td, .probes th { padding: 3px 12px 3px 0; }
.probes td:not(:last-child) { white-space: nowrap; }
.best td { font-weight: 600; }
.wide { overflow-x: auto; margin-top: 10px; } summary { cursor: pointer; color: #0072b2; }
"""
