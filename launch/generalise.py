"""Ask how far a trained run carries: `python -m launch.generalise run=runs/hill_climbing other=runs/discrete/data`."""

from pathlib import Path

import numpy as np

from data_gen.domains.translation import in_actions_of
from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import Dataset, InputError, seen_rows, select
from launch.data import hold_out_of
from launch.encoders import check_embeddings
from launch.entry import enter
from launch.judges import Judges
from launch.log import logging_to
from launch.progress import progress
from launch.rundir import claim, config_of, data_of
from launch.schema.generalise import Generalising
from marl_vae.files import write_text
from probes.labels import check_names, names_of
from probes.table.generalisation import format_generalisation, generalisation_table


def sets_of(cfg: Generalising, run: Path) -> tuple[Dataset, dict[str, Dataset]]:
    """The episodes that the run was made with, and by name those to try it on; InputError where there are none."""
    found, hold_out = read_dataset(data_of(run)), hold_out_of(run)
    seen, others = seen_rows(found, hold_out), {}
    if hold_out:
        rest = np.setdiff1d(np.arange(len(found.split), dtype=np.int32), seen)
        others["held-out checkpoints"] = select(found, rest)
    if cfg.other:
        other = in_actions_of(found, read_dataset(Path(cfg.other)), cfg.other)
        same = ~np.isin(other.rows.checkpoint, hold_out)  # one change at a time
        others["other actions"] = select(other, np.flatnonzero(same).astype(np.int32))
    if not others:
        raise InputError(
            f"{run} was trained on every checkpoint, and other= names no data set, so there is nothing to try it on. "
            "Train a run with train.hold_out=[...], or give the data of the same domain with the other kind of action."
        )
    return select(found, seen), others


def main(cfg: Generalising) -> None:
    """Write generalisation.csv and print how values change from the test groups to each set."""
    run = Path(cfg.run)
    config_of(run)
    check_embeddings(run)
    seen, others = sets_of(cfg, run)
    check_names(cfg.probe.labels, names_of(seen.labels))
    with claim(run, {}, {"probe": cfg.probe.seed}), logging_to(cfg.logger, run, run.name):
        judges = Judges(run, seen, cfg.probe.seed)
        evidence = {name: judges.evidence(found) for name, found in others.items()}
        with progress("probe") as tell:
            table = generalisation_table(
                cfg.probe,
                seen.features,
                judges.evidence(seen),
                evidence,
                progress=lambda done, total: tell(done / total),
            )
        write_text(run / "generalisation.csv", table.to_csv(index=False))
    print(format_generalisation(table))
    print(f"table {run / 'generalisation.csv'}")


if __name__ == "__main__":
    enter("generalise", main)
