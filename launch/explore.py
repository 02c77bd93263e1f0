"""Clusters, coupling, changes, and a page to explore them in: `python -m launch.explore run=runs/hill_climbing`."""

from pathlib import Path

from data_gen.storage.dataset import read_dataset
from data_gen.storage.store import read_group
from data_gen.trajectory import InputError
from launch.analysis import analyse
from launch.data import hold_out_of
from launch.encoders import check_embeddings, folders_of
from launch.entry import enter
from launch.films import strips_of
from launch.progress import progress
from launch.rundir import claim, config_of, data_of
from launch.schema import Exploring
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
    check_embeddings(run)
    embedded, _ = read_group(folders[cfg.encoder] / "embeddings")
    found = read_dataset(data_of(run))
    with claim(run, {}, {}):
        clusters = {}
        if cfg.analysis:
            with progress("analysis"):
                others = [folder for folder in folders if folder != folders[cfg.encoder]]
                clusters = analyse(cfg, run, [folders[cfg.encoder], *others], found)
        with progress("explore"):
            content = explorer_of(
                name=run.name,
                found=found,
                z_omega=embedded["omega_mean"],
                z_alpha=embedded["alpha_mean"],
                hold_out=hold_out_of(run),
                clusters=clusters,
                strips=strips_of(data_of(run), found, cfg.films),
            )
            write_text(run / "explorer.html", explorer_page(content))
    print(f"explorer {run / 'explorer.html'}")


if __name__ == "__main__":
    enter("explore", main)
