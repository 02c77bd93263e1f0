"""One page that tells a run: self-contained HTML that opens offline, and its figures as PNG beside it."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from matplotlib.figure import Figure

from data_gen.trajectory import SPLITS, Dataset
from probes.groups import group_word
from probes.report.analysis import Analysis, analysis_sections
from probes.report.episodes import QUANTILES, pick_episodes
from probes.report.figures import learning_curves, probe_panels, probed_labels, training_curves
from probes.report.figures_plane import Track, colours_of, latent_maps, project, tracks
from probes.report.films import Films, film_section
from probes.report.page import Section, bullets, not_evaluated, page, probe_rows

DPI = 130
SCALED = "scaled so that a random team is at 0 and a scripted, near-optimal one at 1"
UNSCALED = "which may be longer than the recorded ones; the first checkpoint is an untrained team"


class Report(NamedTuple):
    """What a page is made from. `z_omega` is in the order of the data set's rows; empty parts are said to be absent.

    `films` are of data whose states were stored; without, tracks are shown where agents move in a plane.
    `key_figures` are (name, value, meaning); `metrics` the rows of metrics.jsonl; `table` and `sentences` the probes'.
    Without `analysis`, `not_analysed` says why.
    """

    name: str
    dataset: Dataset
    key_figures: Sequence[tuple[str, str, str]]
    metrics: Sequence[dict[str, Any]]
    table: pd.DataFrame | None
    sentences: Sequence[str]
    z_omega: Float[np.ndarray, "B Zw"] | None
    films: Films | None = None
    analysis: Analysis | None = None
    not_analysed: str = "Clusters, coupling and change points were not asked for."


def write_report(path: Path, report: Report) -> list[Path]:
    """Write the page to `path` and its figures to `figures/` beside it, each file whole or not at all.

    Returns the figures' paths.
    """
    sections = sections_of(report)
    folder = path.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    images: dict[str, bytes] = {}
    written: list[Path] = []
    for section in sections:
        file = folder / f"{section.name}.png"
        if section.figure is None:
            file.unlink(missing_ok=True)  # of an earlier report, which no longer holds
            continue
        images[section.name] = png(section.figure)
        _replace(file, images[section.name])
        written.append(file)
    _replace(path, page(report.name, facts_of(report.dataset), report.key_figures, sections, images).encode())
    return written


def png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    return buffer.getvalue()


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    partial.write_bytes(content)
    partial.replace(path)


def sections_of(report: Report) -> list[Section]:
    """The sections in the order of the page."""
    return [
        learning_section(report.dataset),
        training_section(report.metrics),
        probe_section(report.table, report.sentences),
        latent_section(report.dataset, report.z_omega),
        *analysis_sections(report.analysis, report.not_analysed),
        track_section(report.dataset)
        if report.films is None
        else film_section(report.films, report.dataset.batch.obs.shape[2]),
    ]


def learning_section(dataset: Dataset) -> Section:
    """How the agents learned."""
    curves = np.asarray(dataset.meta.get("curves", ()), np.float32)
    figure = None
    baselines = dataset.meta.get("baselines", {})
    if curves.ndim == 2 and np.isfinite(curves).any():
        figure = learning_curves(curves, baselines, dataset.meta.get("updates", ()))
    scaled = "scripted" in baselines
    return Section(
        name="learning",
        title="How the agents learned",
        caption=f"Team return of the learner's own episodes, {SCALED if scaled else UNSCALED}. Do not trust "
        "what follows if the curves are flat: then the episodes of all checkpoints are alike, and there is no learning "
        "for the latent to express.",
        figure=figure,
        absent="The data set holds no learning curves; data recorded elsewhere has none.",
    )


def training_section(metrics: Sequence[dict[str, Any]]) -> Section:
    """How the model trained."""
    return Section(
        name="training",
        title="How the model trained",
        caption="β of each level rises and holds in every cycle (bands); at the end of each (dotted) the "
        "validation bound at β = 1 (of an autoencoder, the data term) chooses the checkpoint (orange line). The lowest "
        "5 % of the bounds are cut off. Do not trust the latents if the validation bound falls while the training one "
        "rises (overfitting), or if a level has no active units at the chosen step (collapse).",
        figure=training_curves(metrics) if metrics else None,
        absent="There are no training metrics in this run.",
    )


def probe_section(table: pd.DataFrame | None, sentences: Sequence[str]) -> Section:
    """What the probes found."""
    drawn = table is not None and bool(probed_labels(table))
    below = "" if table is None else bullets(sentences) + not_evaluated(table) + probe_rows(table)
    return Section(
        name="probes",
        title="What the joint latent knows",
        caption="How well each label is read from z_ω and from the features it is compared with, on groups that no "
        "probe has seen; intervals are bootstrapped over those groups, and an arrow at the edge is a value further "
        "left. Do not trust a value whose negative control (×) is away from chance, or whose interval comes from fewer "
        "than 10 test groups; and read it beside the confounds: where the group or the checkpoint is read as "
        "well, a label may be read through them.",
        figure=probe_panels(table) if drawn and table is not None else None,
        absent="No label was evaluated in this run.",
        below=below,
    )


def latent_section(dataset: Dataset, z_omega: Float[np.ndarray, "B Zw"] | None) -> Section:
    """The joint latent in two dimensions."""
    colours = colours_of(dataset.labels)
    figure, percent = None, ""
    if z_omega is not None and len(z_omega) > 1 and colours:
        plane = project(z_omega)
        figure, percent = latent_maps(plane, colours), f"{plane.explained.sum():.0%}"
    return Section(
        name="latents",
        title="The joint latent in two dimensions",
        caption=f"Posterior means of z_ω of all {len(dataset.split)} episodes on their first two principal components, "
        "coloured by each label; every panel has the same points. Do not read absence of structure from it: these two "
        f"axes hold {percent or 'a part'} of the variance, and a label can lie in the rest. Do not read presence "
        "from it either: training episodes are among the points.",
        figure=figure,
        absent="There are no embeddings or no labels in this run.",
    )


def track_section(dataset: Dataset) -> Section:
    """Sample trajectories in the plane."""
    position = dataset.meta.get("position")
    picked = pick_tracks(dataset, tuple(position)) if position else []
    return Section(
        name="trajectories",
        title="What the agents do",
        caption="Episodes of the first and of the last checkpoint with low, median and high return among that "
        "checkpoint's (5th, 50th and 95th percentile). They are single episodes of single training seeds: do not take "
        "one for its checkpoint, let alone for the domain.",
        figure=tracks(picked, dataset.meta.get("landmarks", ()), len(QUANTILES)) if picked else None,
        absent="The data set does not say which observations are positions in a plane.",
    )


def pick_tracks(dataset: Dataset, position: tuple[int, int]) -> list[Track]:
    """The paths of the picked episodes."""
    obs, mask = np.asarray(dataset.batch.obs), np.asarray(dataset.batch.mask)
    return [
        Track(title=title, xy=obs[row][..., list(position)], present=mask[row]) for row, title in pick_episodes(dataset)
    ]


def facts_of(dataset: Dataset) -> list[tuple[str, str]]:
    """What the data set holds, in a few lines."""
    _, steps, agents, _ = dataset.batch.obs.shape
    seen, done = (_widths(real) for real in dataset.features)
    n_checkpoints = len(np.unique(dataset.rows.checkpoint))
    split = [
        f"{len(np.unique(dataset.rows.group[rows]))} {name} ({len(rows)} episodes)"
        for name, rows in ((name, dataset.rows_of(name)) for name in SPLITS)
    ]
    facts = [
        *_origin(dataset.meta),
        (
            "Episodes",
            f"{len(dataset.split)}, up to {steps} steps, {n_checkpoints} checkpoint(s)",
        ),
        ("Agents", f"{agents}; {seen} observations and {done} {dataset.action.kind} actions each"),
        ("Groups" if group_word(dataset.meta) == "group" else "Groups (training seeds)", ", ".join(split)),
        ("Labels", ", ".join(spec.name for spec in dataset.labels.specs) or "none"),
    ]
    own = next(iter(dataset.meta.get("provenance", ())), {})
    return facts + [("Recorded with", "; ".join(_said(key, value) for key, value in own.items()))] * bool(own)


def _origin(meta: dict[str, Any]) -> list[tuple[str, str]]:
    """The domain with its settings, the engine with what it changed or lacks, and how many episodes were discarded."""
    settings = dict(meta.get("domain", {}))
    name = settings.pop("name", "not named")
    said = ", ".join(f"{key} {value}" for key, value in settings.items() if isinstance(value, str | int | float))
    found = [("Domain", f"{name}: {said}" if said else name)]
    engine = dict(meta.get("engine", {}))
    if engine:
        notes = [engine.pop("name"), f"fields it cannot give: {', '.join(engine.pop('missing')) or 'none'}"]
        found.append(("Physics", "; ".join(notes + [f"{key}: {value}" for key, value in engine.items()])))
    lost, why = meta.get("discarded", ()), "Physics failed" if "engine" in meta else "Left out"
    return found + [(why, f"{len(lost)} time(s), first: {first}") for first in lost[:1]]


def _widths(real: Bool[np.ndarray, "N F"]) -> str:
    """How many features an agent has, and where that is fewer than the columns, how many those are."""
    counts = real.sum(1)
    own = str(counts.min()) if counts.min() == counts.max() else f"{counts.min()}–{counts.max()}"
    return own if real.all() else f"{own} (padded to {real.shape[1]})"


def _said(key: str, value: Any) -> str:
    """A value of the provenance in words; versions and seeds are dictionaries of their own."""
    if isinstance(value, dict):
        return f"{key}: " + ", ".join(f"{name} {item}" for name, item in value.items())
    return f"{key} {value}"
