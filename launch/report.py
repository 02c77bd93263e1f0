"""A run's report from its own files: figures as PNG, and one page that opens offline."""

from pathlib import Path

import numpy as np
import pandas as pd

from data_gen.trajectory import Dataset, InputError
from launch.analysed import analysis_of
from launch.embedding import read_usage
from launch.films import films_of
from launch.progress import progress
from launch.rundir import damaged, data_of
from marl_vae.diagnostics.words import key_figures
from marl_vae.metrics import read_metrics
from probes.report.report import Report, write_report
from probes.table.findings import sentences


def check_files(run: Path) -> None:
    """Raise InputError where a file that the report shows is missing."""
    for path in (run / "usage.json", run / "metrics.jsonl"):
        if not path.exists():
            raise InputError(damaged(path, "it is missing"))


def report(run: Path, found: Dataset, table: pd.DataFrame, z_omega: np.ndarray) -> None:
    """Write `report.html` and `figures/`."""
    check_files(run)
    with progress("report"):
        analysis, why_not = analysis_of(run)
        content = Report(
            name=run.name,
            dataset=found,
            key_figures=key_figures(read_usage(run)),
            metrics=read_metrics(run / "metrics.jsonl"),
            table=table,
            sentences=sentences(table),
            z_omega=z_omega,
            films=films_of(data_of(run), found),
            analysis=analysis,
            not_analysed=why_not,
        )
        write_report(run / "report.html", content)
