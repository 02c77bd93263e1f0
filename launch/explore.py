"""Clusters, coupling, changes, and a page to explore them in: `python -m launch.explore run=runs/hill_climbing`."""

from pathlib import Path

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import InputError
from launch.analysed import clusters_in, is_newer_than_report
from launch.analysis import analyse
from launch.data import hold_out_of
from launch.encoders import embeddings_of, folders_of
from launch.entry import enter
from launch.films import strips_of
from launch.log import logging_to
from launch.probed import read_probes
from launch.progress import progress
from launch.report import check_files, report
from launch.rundir import claim, config_of, data_of
from launch.schema.explore import Exploring
from marl_vae.files import write_text
from probes.explorer.explorer import explorer_of
from probes.explorer.page import explorer_page


def main(cfg: Exploring) -> None:
    """Write analysis/ and explorer.html from the data set and the embeddings of one encoder seed."""
    run = Path(cfg.run)
    config_of(run)
    folders = folders_of(run)
    if not 0 <= cfg.encoder < len(folders):
        raise InputError(f"encoder={cfg.encoder}: {run} has {len(folders)} encoder seed(s); count them from 0.")
    chosen, stored = folders[cfg.encoder], embeddings_of(run)
    found = read_dataset(data_of(run))
    table = None
    if cfg.analysis and (run / "report.html").exists():
        check_files(run)
        table = read_probes(run)[0]
    with claim(run, {}, {}), logging_to(cfg.logger, run, run.name):
        if cfg.analysis:
            analyse(cfg, run, {chosen: stored[chosen]} | stored, found)
        if table is not None and is_newer_than_report(run):
            report(run, found, table, stored[run]["omega_mean"])
        with progress("explore"):
            content = explorer_of(
                name=run.name,
                found=found,
                z_omega=stored[chosen]["omega_mean"],
                z_alpha=stored[chosen]["alpha_mean"],
                hold_out=hold_out_of(run),
                clusters=clusters_in(run) if cfg.analysis else {},
                strips=strips_of(data_of(run), found, cfg.films),
            )
            write_text(run / "explorer.html", explorer_page(content))
    print(f"explorer {run / 'explorer.html'}")


if __name__ == "__main__":
    enter("explore", main)
