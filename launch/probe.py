"""Probe a run and write its report: `python -m launch.probe run=runs/hill_climbing`. Many: `'runs=runs/*'`."""

from pathlib import Path

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import Dataset, seen_rows, select
from launch.baselines import ceiling_of, flat_vae
from launch.comparing import comparing
from launch.data import hold_out_of, inputs_of
from launch.deeper import DEEPER, deeper
from launch.encoders import check_embeddings, encoded_of, folders_of
from launch.entry import enter
from launch.log import logging_to
from launch.probed import NOTE, TABLE, keep_table
from launch.progress import progress
from launch.report import report
from launch.rundir import claim, data_of
from launch.schema.probe import Probing
from probes.audit import check_labels
from probes.probe import Probe
from probes.table.findings import format_table
from probes.table.table import probe_table


def probe(cfg: Probe, run: Path, found: Dataset) -> None:
    """Write probes.csv, the figures and report.html, and the tables of `deeper` that are asked for; print the first."""
    rows = seen_rows(found, hold_out_of(run))
    seen, encoded = select(found, rows), encoded_of(folders_of(run), found.batch, cfg.seed)
    for name in ("report.html", TABLE, NOTE, "decodable_and_used.csv", *DEEPER):
        (run / name).unlink(missing_ok=True)
    cache = run / "probe_cache"
    if cfg.flat_vae:
        encoded = encoded._replace(flat_vae=flat_vae(run, found, seen))
    inputs = {**inputs_of(seen), "encoded": encoded.take(rows), "cache": cache}
    with progress("probe") as tell:
        ceiling = ceiling_of(run, seen, cache, tell) if cfg.ceiling else None
        table = probe_table(cfg, **inputs, ceiling=ceiling, progress=lambda done, total: tell(done / total))
    keep_table(cfg, run, table)
    print(format_table(table))
    deeper(cfg, run, inputs)
    report(run, found, table, encoded.z_omega[0])  # the last, since it says that the probing is done


def main(cfg: Probing) -> None:
    """Probe a run again, with settings that may be new, or several beside each other."""
    if cfg.runs:
        return comparing(cfg, cfg.runs)
    run = Path(cfg.run)
    check_embeddings(run)
    found = read_dataset(data_of(run))
    check_labels(cfg.probe, select(found, seen_rows(found, hold_out_of(run))))
    with claim(run, {}, {"probe": cfg.probe.seed}):
        with logging_to(cfg.logger, run, run.name):
            probe(cfg.probe, run, found)
    print(f"report {run / 'report.html'}")


if __name__ == "__main__":
    enter("probe", main)
