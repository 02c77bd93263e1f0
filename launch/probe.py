"""Probe a trained run and write its report: `python -m launch.probe run=runs/hill_climbing`."""

from pathlib import Path

import yaml

from data_gen.storage.dataset import read_dataset
from data_gen.storage.store import read_group
from launch.entry import enter
from launch.log import NoLogger, logging_to
from launch.progress import progress
from launch.report import report
from launch.rundir import claim, config_of, data_of
from launch.schema import Probing
from marl_vae import load_untrained
from marl_vae.files import write_text
from probes.findings import format_table
from probes.probe import Probe
from probes.table import check_labels, probe_table


def done(cfg: Probe, run: Path) -> bool:
    """Whether the run's report was made with these settings."""
    used = run / "probe.yaml"
    return (run / "report.html").exists() and used.exists() and yaml.safe_load(used.read_text()) == vars(cfg)


def probe(cfg: Probe, run: Path, logger: NoLogger) -> None:
    """Write probes.csv, the figures and report.html, and print the table."""
    (run / "report.html").unlink(missing_ok=True)
    write_text(run / "probe.yaml", yaml.safe_dump(vars(cfg), sort_keys=False))
    latents, _ = read_group(run / "embeddings")
    found = read_dataset(data_of(run))
    untrained = load_untrained(run, seed=cfg.seed).embed(found.batch)
    with progress("probe") as tell:
        table = probe_table(
            cfg,
            batch=found.batch,
            features=found.features,
            rows=found.rows,
            split=found.split,
            labels=found.labels,
            hand=found.hand,
            z_omega=latents["omega_mean"],
            z_alpha=latents["alpha_mean"],
            random_encoder=untrained.omega_mean,
            progress=lambda done, total: tell(done / total),
        )
    write_text(run / "probes.csv", table.to_csv(index=False))
    print(format_table(table))
    report(run, found, table, latents["omega_mean"])
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
