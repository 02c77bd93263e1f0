"""A run's folder as a W&B run, under the names of docs/wandb.md."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import wandb

from data_gen.storage.dataset import digest
from data_gen.storage.store import sha256_of
from data_gen.trajectory import InputError
from launch.analysed import analysis_files
from launch.artifacts import data_artifact, embeddings_artifact, model_artifact
from launch.encoders import embedded_folders
from launch.log import Logging, NoLogger
from launch.logged import logged_of
from launch.probed import probed_files
from launch.rundir import config_of, data_of
from launch.summary import prefix_of, summary_of
from launch.tables import parsed
from marl_vae.metrics import read_metrics

LARGEST_PAGE = 10_000_000  # bytes; W&B shows a page whole or not at all
ROWS = wandb.Table.MAX_ARTIFACT_ROWS  # W&B cuts a longer table in silence


class WandbRun(NoLogger):
    """One W&B run a run directory: a resumed or later job goes on in the same one, and gives it nothing twice."""

    def __init__(self, cfg: Logging, run: Path, group: str):
        self._folder, self._works = run, True
        self._before = _work_below(run)
        self._logged = logged_of(run, os.environ.get("WANDB_RUN_ID"))
        try:
            self._run = wandb.init(
                project=cfg.project,
                entity=cfg.entity,
                mode=cast(Any, cfg.mode),
                group=group,
                name=run.name,
                id=self._logged.run_id,
                resume="allow",
                dir=str(run),
                config=config_of(run),
                allow_val_change=True,
                reinit="finish_previous",
                settings=wandb.Settings(console="off", silent=True),
            )
        except (wandb.Error, ValueError) as error:
            _restore(self._before)
            raise InputError(
                f"W&B could not be reached ({str(error).splitlines()[0]}). Log in with `wandb login`, or use "
                "logger.mode=offline, which needs no account."
            ) from error
        self._logged.rows = max(self._logged.rows, self._run.step)
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def metrics(self, row: dict[str, Any], place: Path) -> None:
        self._try(lambda: self._metrics(row, place))

    def publish(self) -> None:
        self._try(self._publish)

    def finish(self, failed: bool = False) -> None:
        self._works = True  # a log that broke is closed as well
        self._try(lambda: self._run.finish(exit_code=int(failed)))
        _restore(self._before)

    def _try(self, give: Callable[[], None]) -> None:
        """The log is a copy of what lies in the folder, so nothing that goes wrong in it may end the run."""
        if not self._works:
            return
        try:
            give()
        except Exception as error:
            self._works = False
            print(
                f"W&B took no more of the log ({type(error).__name__}: {error}). The results of {self._folder} are "
                "complete without it; the same command again logs what is missing.",
                file=sys.stderr,
            )

    def _metrics(self, row: dict[str, Any], place: Path) -> None:
        prefix = prefix_of(self._folder, place)
        if row["step"] > self._logged.steps.get(prefix, 0):
            self._log({name if name == "step" else prefix + name: value for name, value in row.items()})
            self._logged.steps[prefix] = row["step"]
            self._logged.write(self._folder)

    def _publish(self) -> None:
        for place in embedded_folders(self._folder):
            for row in read_metrics(place / "metrics.jsonl"):
                self._metrics(row, place)
        found = self._files()
        figures = summary_of(self._folder)
        gone = (set(self._logged.summary) - figures.keys()) | self._logged.forget(found.keys())
        self._run.summary.update(figures | dict.fromkeys(gone))  # of an earlier probing, say, of other labels
        self._logged.summary = sorted(figures)
        self._log_new(found)
        self._log_artifacts()
        self._logged.write(self._folder)

    def _files(self) -> dict[str, tuple[Path, Callable[[str], Any]]]:
        """Tables, figures and pages of the folder by their names in the log, and how each is shown."""
        (own, why_not), analysed = probed_files(self._folder), analysis_files(self._folder)
        if why_not:
            print(f"W&B gets no table, figure or page of the probing: {why_not}", file=sys.stderr)
        shown = {".csv": _table, ".png": wandb.Image, ".html": _page}
        names = {".csv": "", ".png": "figures/", ".html": ""}
        files = {names[file.suffix] + file.stem: file for file in own}
        files |= {(names[file.suffix] or "analysis/") + file.stem: file for file in analysed}
        return {name: (file, shown[file.suffix]) for name, file in files.items()}

    def _log_new(self, found: dict[str, tuple[Path, Callable[[str], Any]]]) -> None:
        """Log the files that changed since they were logged, in one row of the history."""
        now = {name: sha256_of(file) for name, (file, _) in sorted(found.items())}
        new = {name: found[name] for name, value in now.items() if self._logged.content.get(name) != value}
        shown = {name: make(str(file)) for name, (file, make) in new.items()}
        for name in (name for name, value in shown.items() if value is None):
            print(f"W&B shows no {name}: {new[name][0]} is too large for it. The file itself is whole.")
        if shown := {name: value for name, value in shown.items() if value is not None}:
            self._log({"step": self._logged.steps.get("", 0), **shown})
        self._logged.content |= {name: now[name] for name in new}

    def _log_artifacts(self) -> None:
        data, run_id = digest(data_of(self._folder)), self._run.id
        if config_of(self._folder).get("data") is None:
            self._log_artifact("dataset", data, lambda: self._run.log_artifact(data_artifact(self._folder)))
        elif not self._run.offline:  # W&B has no use of an artifact offline; data/digest is in the summary all the same
            self._log_artifact("dataset", data, lambda: self._run.use_artifact(data_artifact(self._folder)))
        places = embedded_folders(self._folder)
        if places:
            made = " ".join(sha256_of(place / "embeddings" / "manifest.json") for place in places)
            self._log_artifact("model", made, lambda: self._run.log_artifact(model_artifact(self._folder, run_id)))
            self._log_artifact(
                "embeddings", made, lambda: self._run.log_artifact(embeddings_artifact(self._folder, run_id))
            )

    def _log_artifact(self, kind: str, made_of: str, give: Callable[[], Any]) -> None:
        if self._logged.artifacts.get(kind) != made_of:
            give()
            self._logged.artifacts[kind] = made_of

    def _log(self, values: dict[str, Any]) -> None:
        self._run.log(values, step=self._logged.rows, commit=True)
        self._logged.rows += 1


def _table(path: str) -> wandb.Table | None:
    """A CSV as it stands, with null where it is empty: NaN is no JSON."""
    table = parsed(Path(path), "The command that wrote it writes it again.")
    if len(table) > ROWS:
        return None
    plain = table.astype(object).where(table.notna(), None)
    return wandb.Table(columns=list(table.columns), data=plain.to_numpy().tolist())


def _page(path: str) -> wandb.Html | None:
    return None if Path(path).stat().st_size > LARGEST_PAGE else wandb.Html(path, inject=False)


def _work_below(run: Path) -> dict[str, str | None]:
    """Have W&B keep copies and cache in the run's folder unless the user has said where; what was set before."""
    before = {name: os.environ.get(name) for name in ("WANDB_DATA_DIR", "WANDB_CACHE_DIR")}
    for name in before:
        os.environ.setdefault(name, str(run.resolve() / "wandb" / name.split("_")[1].lower()))
    return before


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
