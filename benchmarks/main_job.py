"""The main job from nothing, and whether it reaches what it should: `python benchmarks/main_job.py` (about 8 minutes).

Runs the pipeline on both domains in an empty folder, with no compilation cache, measures time and memory, and reads
every bar from the files that the runs left. The exit code is 1 where a bar is missed.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from data_gen.domains.coordination import goal_entropy
from data_gen.recording.learning import normalised_return
from data_gen.storage.dataset import read_dataset

BEATEN = ("majority", "random_encoder")


def bar(what: str, value: float, reached: bool) -> bool:
    """Print one bar."""
    print(f"  {'reached' if reached else 'MISSED '}  {what}: {value:.3g}", flush=True)
    return reached


def run(experiment: list[str], runs: Path) -> tuple[float, float]:
    """Seconds of one pipeline, and peak GiB of the largest process among those run so far."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "launch.pipeline", *experiment, f"runs={runs}"]
    subprocess.run(command, check=True, stdout=(runs / "log.txt").open("w"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    return time.perf_counter() - start, peak


def probes_win(run_folder: Path, label: str) -> list[bool]:
    """The paired bars of the linear probe of z_ω on one label."""
    table = pd.read_csv(run_folder / "probes.csv").query("label == @label and probe == 'linear'").set_index("features")
    own = table.loc["z_omega"]
    print(f"  {label}: " + ", ".join(f"{name} {row.value:.2f}" for name, row in table.iterrows()))
    found = [table.loc[name].zw_minus_low for name in BEATEN]
    return [
        *(bar(f"{label}: z_omega − {n}, low end", low, low > 0) for n, low in zip(BEATEN, found, strict=True)),
        bar(f"{label}: z_omega − its negative control, low end", own.minus_control_low, own.minus_control_low > 0),
    ]


def hill_climbing(runs: Path) -> list[bool]:
    """All bars of the default job."""
    seconds, peak = run([], runs)
    folder = runs / "hill_climbing"
    found = read_dataset(folder / "data")
    share = normalised_return(found.labels.values["team_return"], found.rows, found.meta["baselines"])
    used = json.loads((folder / "usage.json").read_text())
    return [
        bar("seconds in all (at most 360)", seconds, seconds <= 360),
        bar("peak GiB of the largest process (under 4)", peak, peak < 4),
        bar(
            "share of seeds with normalised return ≥ .6 (at least .9)",
            np.mean(share >= 0.6),
            np.mean(share >= 0.6) >= 0.9,
        ),
        bar("active units of z_omega (at least 3)", used["active_omega"], used["active_omega"] >= 3),
        bar("active units of z_alpha (at least 3)", used["active_alpha"], used["active_alpha"] >= 3),
        bar("NLL without latents − NLL (above 0)", gain := used["nll_without_latents"] - used["nll"], gain > 0),
        bar(
            "NLL shuffled − without (0 or above)", loss := used["nll_shuffled"] - used["nll_without_latents"], loss >= 0
        ),
        *probes_win(folder, "return_class"),
        *probes_win(folder, "dispersion_class"),
    ]


def coordination(runs: Path) -> list[bool]:
    """All bars of the coordination job."""
    seconds, _ = run(["experiment=coordination"], runs)
    folder = runs / "coordination"
    found = read_dataset(folder / "data")
    values, rows = found.labels.values, found.rows
    last = rows.checkpoint == rows.checkpoint.max()
    share = np.array([values["coordinated"][last & (rows.group == g)].mean() for g in np.unique(rows.group)])
    goals = next(spec for spec in found.labels.specs if spec.name == "goal").classes
    within, between = goal_entropy(values["goal"], rows, len(goals) - 1)
    held = values["convention"][last & np.isin(rows.group, np.unique(rows.group)[share > 0.9])]
    kinds = len(np.unique(held))
    return [
        bar("seconds in all", seconds, True),
        bar("share of seeds above 90 % coordinated (at least .8)", np.mean(share > 0.9), np.mean(share > 0.9) >= 0.8),
        bar("conventions (at least 3)", kinds, kinds >= 3),
        bar("entropy of the goal within a seed over between (under .2)", within / between, within / between < 0.2),
        *probes_win(folder, "goal"),
    ]


def main() -> None:
    """Run both jobs and print the bars."""
    reached = []
    for job in (hill_climbing, coordination):
        print(job.__name__, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            reached += job(Path(folder))
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
