"""What the maxima of β do to the joint latent: `python benchmarks/beta.py` (about 7 minutes; needs `make run` first).

Trains the default model on runs/hill_climbing/data under other maxima and reads z_ω with the linear probe.
"""

import sys
import tempfile
from pathlib import Path

import jax

from data_gen.storage.dataset import digest, read_dataset
from data_gen.trajectory import SPLITS, take
from marl_vae import load, load_untrained
from marl_vae.diagnostics.units import active_units
from marl_vae.model import Model, dims_of
from marl_vae.objectives import BetaBound
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.task import Task, Train
from marl_vae.train import fit
from probes.features import Encoded
from probes.probe import Probe
from probes.table.table import probe_table

DATA = Path("runs/hill_climbing/data")
MAXIMA = [(1.0, 1.0), (0.3, 1.0), (0.3, 0.5)]
LABELS = ["return_class", "dispersion_class", "hill", "progress"]
SHOWN = ["return_class", "dispersion_class", "hill_0", "progress"]


def main() -> None:
    """Print a row a pair of maxima."""
    if not DATA.exists():
        sys.exit(f"{DATA} is not there; run `make run` first.")
    found = read_dataset(DATA)
    parts = [take(found.batch, found.rows_of(name)) for name in SPLITS]
    dims = dims_of(found)
    print("| β_ω, β_α | bound at β = 1, validation | KL of z_ω | active units |", " | ".join(SHOWN), "|")
    for joint, local in MAXIMA:
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            schedule = Schedule(joint=Cyclical(maximum=joint), local=Cyclical(maximum=local))
            task = Task(Model(), dims, found.features, BetaBound(), schedule, Train(), digest(DATA))
            (state,) = fit(parts[0], parts[1], task, run, lambda row: None)
            latents, untrained = load(run).embed(found.batch), load_untrained(run, seed=0).embed(found.batch)
            test = load(run).embed(parts[2])
            spread = load(run).elbo(parts[2], key=jax.random.key(0)).kl_joint.sum(-1).mean()
        table = probe_table(
            Probe(labels=LABELS, probes=["linear"], permutations=0),
            batch=found.batch,
            features=found.features,
            rows=found.rows,
            split=found.split,
            labels=found.labels,
            hand=found.hand,
            encoded=Encoded(*(mean[None] for mean in (latents.omega_mean, latents.alpha_mean, untrained.omega_mean))),
        )
        own = table[table.features == "z_omega"].set_index("label").value
        units = int(active_units(test, parts[2].mask).omega.sum())
        cells = [f"{joint:g}, {local:g}", f"{float(state.best_bound):.1f}", f"{spread:.1f}", str(units)]
        print("|", " | ".join(cells + [f"{own[name]:.2f}" for name in SHOWN]), "|", flush=True)


if __name__ == "__main__":
    main()
