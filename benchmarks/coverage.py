"""How often the probe table's intervals hold the truth, over simulated data sets with group effects.

python benchmarks/coverage.py                   a table by number of test groups (a few minutes)

A data set's truth is the score of its own fitted probe on very many further groups. In parentheses
what the plain percentile interval covers.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from data_gen.trajectory import RowIndex
from probes.bootstrap import Sample, draw_weights, interval_of, sample
from probes.interventions.effects import estimate
from probes.labels import Target
from probes.probe import Probe
from probes.scores import Sums, draw_groups, point
from probes.table.exam import Exam, group_exam, run_exam

TRAIN, EPISODES, WIDTH, CLASSES, FURTHER = 24, 12, 4, 3, 1200
MORE_ENCODERS = 60
CONFIG = Probe(probes=["linear"], permutations=0, strengths=[0.1], folds=2)


class Law(NamedTuple):
    """How a data set is drawn: `kind` of label, whether constant in a group, how plain, and how many encoder seeds."""

    kind: str
    constant: bool
    signal: float
    n_encoders: int = 1


LAWS = {
    "a class of each episode": Law("class", False, 1.2),
    "a class of whole groups": Law("class", True, 1.2),
    "a number of each episode": Law("real", False, 1.5),
    "five encoders": Law("class", False, 1.2, n_encoders=5),
}


def simulate(law: Law, seed: int, n_test: int, further: int = FURTHER) -> tuple[list[Sums], float]:
    """Sums over `n_test` test groups, one an encoder, and the mean score of their probes on `further` groups.

    An encoder adds a noise to the features, of a size of its own. The mean over five encoders stands for that
    over all, whose true score is taken from MORE_ENCODERS further ones.
    """
    rng = np.random.default_rng(seed)
    n_groups = TRAIN + n_test + further
    group = np.repeat(np.arange(n_groups), EPISODES)
    x, y = features_and_label(law, rng, group)
    exam = exam_of(law, y, group)
    views, scored = law.n_encoders if law.n_encoders == 1 else law.n_encoders + MORE_ENCODERS, []
    for _ in range(views):
        blur = rng.uniform(0, 2) if law.n_encoders > 1 else 0.0
        view = x + blur * rng.normal(size=x.shape)
        scored.append(run_exam(view, exam, "linear", CONFIG.fit_only()).task)
    truths = [point(Sums(*(part[n_test:] for part in one))) for one in scored]
    shown = [Sums(*(part[:n_test] for part in one)) for one in scored[: law.n_encoders]]
    return shown, float(np.mean(truths if law.n_encoders == 1 else truths[law.n_encoders :]))


def features_and_label(law: Law, rng: np.random.Generator, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A signal of the label, an effect of the group as large as the noise of the episode, and that noise."""
    n, n_groups = len(group), group.max() + 1
    size = (n_groups, 1) if law.constant else (n, 1)
    drawn = rng.integers(0, CLASSES, size) if law.kind == "class" else rng.normal(size=size)
    y = (drawn[group] if law.constant else drawn)[:, 0]
    x = rng.normal(size=(n_groups, WIDTH))[group] + rng.normal(size=(n, WIDTH))
    told = np.eye(WIDTH)[y.astype(int)] if law.kind == "class" else y[:, None] * np.eye(WIDTH)[0]
    return x + law.signal * told, y


def exam_of(law: Law, y: np.ndarray, group: np.ndarray) -> Exam:
    """The examination of a label on TRAIN groups, every other group a test group."""
    n = len(group)
    zeros, number = np.zeros(n, np.int32), group.astype(np.int32)
    rows = RowIndex(episode=np.arange(n, dtype=np.int32), group=number, checkpoint=zeros, t0=zeros)
    classes = tuple("abc") if law.kind == "class" else ()
    target = Target("y", "y", "team", law.kind, y, np.ones(n, bool), group, classes, note="", failure="")
    exam = group_exam(target, rows, np.where(group < TRAIN, 0, 2).astype(np.int32), CONFIG)
    return exam._replace(drawn_score=np.zeros(0, int))


def sampled(sums: list[Sums], seed: int, n_draws: int = 2000) -> Sample:
    """The bootstrap of simulated sums."""
    n_groups = len(sums[0].totals)
    return sample(sums, draw_weights(seed, "y", n_groups, {len(sums)}, n_draws))


def covered(law: Law, n_sets: int, sizes: list[int], further: int = FURTHER) -> Float[np.ndarray, "S 2"]:
    """The share of data sets whose interval holds the truth, by number of test groups; then the plain percentile's."""
    held = np.zeros((len(sizes), 2))
    for seed in range(n_sets):
        sums, truth = simulate(law, seed, max(sizes), further)
        for place, size in enumerate(sizes):
            one = sampled([Sums(*(part[:size] for part in each)) for each in sums], seed)
            plain = np.nanquantile(one.draws, (0.025, 0.975))
            held[place] += [low <= truth <= high for low, high in (interval_of(one), plain)]
    return held / n_sets


def covered_pairs(n_sets: int, n_groups: int) -> Float[np.ndarray, " 2"]:
    """The same for the mean over 400 pairs of episodes with an effect of the group at each end, as interventions have.

    Then the share where groups of one end alone are drawn.
    """
    rng, held = np.random.default_rng(n_groups), np.zeros(2)
    for _ in range(n_sets):
        a = rng.integers(0, n_groups, 400)
        b = (a + rng.integers(1, n_groups, 400)) % n_groups
        of_a, of_b = rng.normal(size=(2, n_groups))
        values = 0.3 + of_a[a] + of_b[b] + rng.normal(size=400)
        draws = draw_groups(rng, n_groups, 1000)
        found = [estimate(values, ends, draws) for ends in ([a, b], [a])]
        held += [one.low <= 0.3 <= one.high for one in found]
    return held / n_sets


def main() -> None:
    """Print the figures."""
    sizes = [3, 5, 10, 16, 24]
    print("| simulated data sets |", " | ".join(f"{size} groups" for size in sizes), "|")
    for name, law in LAWS.items():
        n_sets = 200 if law.n_encoders == 1 else 80
        shares = covered(law, n_sets, sizes)
        print(f"| {name} ({n_sets}) |", " | ".join(f"{a:.2f} ({b:.2f})" for a, b in shares), "|", flush=True)
    shares = [covered_pairs(400, size) for size in sizes]
    print("| pairs (400), one end drawn |", " | ".join(f"{a:.2f} ({b:.2f})" for a, b in shares), "|")


if __name__ == "__main__":
    main()
