"""Do the default agents learn? `python benchmarks/learning.py` trains both domains as the main job does.

Prints the time, the peak memory, and each bar with the figure reached; the exit code is 1 where a bar is missed.
"""

import resource
import sys
import time

import numpy as np

from data_gen.domains import DOMAIN_CONFIGS, DOMAINS
from data_gen.domains.coordination import goal_entropy
from data_gen.learners.ppo import PPO
from data_gen.recording.learning import normalised_return
from data_gen.recording.recording import Recording, record_shard
from data_gen.storage.shard import Shard
from data_gen.trajectory import RowIndex


def generate(name: str) -> list[Shard]:
    """The default data set of a domain, in shards."""
    domain, recording = DOMAINS[name](DOMAIN_CONFIGS[name]()), Recording()
    start = time.perf_counter()
    shards = [record_shard(domain, PPO(), recording, k, lambda share: None) for k in range(recording.shards)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    cpu = time.process_time()
    print(f"{name}: {time.perf_counter() - start:.0f} s, {cpu:.0f} s of processor so far, peak {peak:.2f} GiB so far")
    return shards


def joined(shards: list[Shard]) -> tuple[RowIndex, dict[str, np.ndarray]]:
    """Rows and label values of all shards."""
    rows = RowIndex(*(np.concatenate(field) for field in zip(*(shard.rows for shard in shards), strict=True)))
    names = shards[0].labels.values
    return rows, {name: np.concatenate([shard.labels.values[name] for shard in shards]) for name in names}


def bar(what: str, value: float, least: float) -> bool:
    """Print one bar and say whether it is reached."""
    print(f"  {'reached' if value >= least else 'MISSED '}  {what}: {value:.3g} (at least {least:.3g})")
    return value >= least


def by_checkpoint(values: np.ndarray, rows: RowIndex) -> str:
    """Means at the checkpoints, in order."""
    return " ".join(f"{values[rows.checkpoint == c].mean():.2f}" for c in np.unique(rows.checkpoint))


def hill_bars(shards: list[Shard]) -> bool:
    """Hill-climbing: share of seeds near the scripted team, and how many role assignments they found."""
    rows, values = joined(shards)
    reference = shards[0].meta["baselines"]
    share = normalised_return(values["team_return"], rows, reference)
    span = reference["scripted"] - reference["random"]
    course = (values["team_return"] - reference["random"]) / span
    print(f"  random {reference['random']}, scripted {reference['scripted']}")
    print(f"  normalised return by checkpoint: {by_checkpoint(course, rows)}; lowest seed {share.min():.2f}")
    last = rows.checkpoint == rows.checkpoint.max()
    roles = [np.unique(values["hill"][last & (rows.group == g)], axis=0, return_counts=True) for g in range(len(share))]
    kinds = {tuple(map(int, found[counts.argmax()])) for found, counts in roles}
    print(f"  role assignments that are some seed's commonest: {len(kinds)}")
    return bar("share of seeds with normalised return of .6 or more", float(np.mean(share >= 0.6)), 0.9)


def coordination_bars(shards: list[Shard]) -> bool:
    """Coordination: share of seeds that coordinate, and whether each has a convention of its own."""
    rows, values = joined(shards)
    n_goals = len(shards[0].meta["landmarks"])
    last = rows.checkpoint == rows.checkpoint.max()
    seeds = np.unique(rows.group)
    share = np.array([values["coordinated"][last & (rows.group == g)].mean() for g in seeds])
    convention = np.array([values["convention"][rows.group == g][0] for g in seeds])
    counts = np.bincount(convention, minlength=n_goals + 1)
    within, between = goal_entropy(values["goal"], rows, n_goals)
    print(f"  coordinated by checkpoint: {by_checkpoint(values['coordinated'], rows)}")
    print(f"  seeds by convention: {counts[:n_goals].tolist()}, without one: {counts[n_goals]}")
    print(f"  goal entropy within a seed {within:.3f}, between seeds {between:.3f} nats")
    reached = [
        bar("share of seeds above 90 % coordinated", float(np.mean(share > 0.9)), 0.8),
        bar("conventions", int((counts[:n_goals] > 0).sum()), 3),
        bar("entropy between seeds over entropy within", between / max(within, 1e-9), 5.0),
    ]
    return all(reached)


BARS = {"hill_climbing": hill_bars, "coordination": coordination_bars}


def main() -> None:
    """Both domains; exit code 1 where a bar is missed."""
    reached = [check(generate(name)) for name, check in BARS.items()]
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
