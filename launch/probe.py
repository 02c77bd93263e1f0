"""Probe a trained run and write its report: `python -m launch.probe run=runs/hill_climbing`."""

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from data_gen.storage.dataset import read_dataset
from data_gen.storage.store import read_group
from data_gen.trajectory import Dataset, TrajectoryBatch, seen_rows, select
from launch.baselines import ceiling_of, flat_vae
from launch.entry import enter
from launch.log import NoLogger, logging_to
from launch.progress import progress
from launch.report import report
from launch.rundir import claim, config_of, data_of
from launch.schema import Probing
from marl_vae import load_untrained
from marl_vae.files import write_text
from probes.audit import check_labels
from probes.features import Encoded
from probes.findings import format_table
from probes.probe import Probe
from probes.table import label_efficiency, probe_table


def done(cfg: Probe, run: Path) -> bool:
    """Whether the run's report was made with these settings."""
    used = run / "probe.yaml"
    return (run / "report.html").exists() and used.exists() and yaml.safe_load(used.read_text()) == vars(cfg)


def folders_of(run: Path) -> list[Path]:
    """The folders of a run's encoder seeds: its own, and each seed_* in it."""
    return [run, *sorted(run.glob("seed_*"))]


def encoded_of(run: Path, batch: TrajectoryBatch, seed: int) -> Encoded:
    """The embeddings of every encoder seed, and of as many encoders that were never trained."""
    folders = folders_of(run)
    latents = [read_group(folder / "embeddings")[0] for folder in folders]
    untrained = [load_untrained(folder, seed=seed + i).embed(batch).omega_mean for i, folder in enumerate(folders)]
    return Encoded(
        z_omega=np.stack([found["omega_mean"] for found in latents]),
        z_alpha=np.stack([found["alpha_mean"] for found in latents]),
        random_encoder=np.stack(untrained),
    )


def inputs_of(found: Dataset) -> dict[str, Any]:
    """What the probes take of a data set."""
    return {name: getattr(found, name) for name in ("batch", "features", "rows", "split", "labels", "hand")}


def probe(cfg: Probe, run: Path, logger: NoLogger) -> None:
    """Write probes.csv, label_efficiency.csv where it is asked for, the figures and report.html; print the table."""
    (run / "report.html").unlink(missing_ok=True)
    (run / "label_efficiency.csv").unlink(missing_ok=True)
    write_text(run / "probe.yaml", yaml.safe_dump(vars(cfg), sort_keys=False))
    found, cache = read_dataset(data_of(run)), run / "probe_cache"
    rows = seen_rows(found, config_of(run)["train"]["hold_out"])
    seen, encoded = select(found, rows), encoded_of(run, found.batch, cfg.seed)
    if cfg.flat_vae:
        encoded = encoded._replace(flat_vae=flat_vae(run, found, seen))
    inputs = {**inputs_of(seen), "encoded": encoded.take(rows), "cache": cache}
    with progress("probe") as tell:
        ceiling = ceiling_of(run, seen, cache, tell) if cfg.ceiling else None
        table = probe_table(cfg, **inputs, ceiling=ceiling, progress=lambda done, total: tell(done / total))
    write_text(run / "probes.csv", table.to_csv(index=False))
    if cfg.efficiency:
        with progress("label efficiency") as tell:
            few = label_efficiency(cfg, **inputs, progress=lambda done, total: tell(done / total))
        write_text(run / "label_efficiency.csv", few.to_csv(index=False))
        logger.table("label_efficiency", few)
    print(format_table(table))
    report(run, found, table, encoded.z_omega[0])
    logger.table("probes", table)
    logger.figures(run / "figures")


def main(cfg: Probing) -> None:
    """Probe a run again, with settings that may be new."""
    run = Path(cfg.run)
    config_of(run)
    read_group(run / "embeddings")
    check_labels(cfg.probe, read_dataset(data_of(run)))
    with claim(run, {}, {"probe": cfg.probe.seed}):
        with logging_to(cfg.logger, run, run.name) as logger:
            probe(cfg.probe, run, logger)
    print(f"report {run / 'report.html'}")


if __name__ == "__main__":
    enter("probe", main)
