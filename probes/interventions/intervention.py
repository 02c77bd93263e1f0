"""Interventions on the joint latent: what the team does in the simulator when z_omega is another one.

The model's decoder is the policy. Simulator and decoder come as callables, so nothing here knows of either.

Letters: B rows, P episodes played at once, R rollouts of an arm, N agents, Zw joint latent, Za local latent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from data_gen.trajectory import SPLITS, Dataset, InputError, Labels, TrajectoryBatch
from probes.controls import generator
from probes.interventions.directions import Axes, moved, random_axes
from probes.interventions.pairs import Pairs
from probes.labels import Target, check_names, make_targets, read_like
from probes.scores import LEAST_DRAWS

WITHOUT = ("none",)  # the class of episodes in which nothing happened, which not every label has


@dataclass
class Intervention:
    """How to intervene. Empty `labels` means all that an episode itself shows.

    `pairs` of test episodes a label, each rolled out `repeats` times an arm. `weights` are those of the second latent
    in interpolation, `shifts` the training deviations along a direction. Pairs leave out classes named in `without`,
    and where `checkpoints` are named, the episodes of others: a convention is settled only at the end of learning.
    """

    labels: list[str] = field(default_factory=list)
    pairs: int = 200
    repeats: int = 2
    weights: list[float] = field(default_factory=lambda: [0.0, 0.25, 0.5, 0.75, 1.0])
    shifts: list[float] = field(default_factory=lambda: [-2.0, -1.0, 0.0, 1.0, 2.0])
    without: list[str] = field(default_factory=lambda: list(WITHOUT))
    checkpoints: list[int] = field(default_factory=list)
    bootstrap: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("pairs", 1), ("repeats", 1), ("bootstrap", LEAST_DRAWS)):
            if getattr(self, name) < least:
                raise InputError(f"intervention.{name} is {getattr(self, name)}; it must be {least} or more.")
        if self.seed < 0:
            raise InputError(f"intervention.seed is {self.seed}; it must not be negative.")
        self.weights, self.shifts = sorted(set(self.weights)), sorted(set(self.shifts))
        if not {0.0, 1.0} <= set(self.weights) or not all(0 <= weight <= 1 for weight in self.weights):
            raise InputError(
                f"intervention.weights is {self.weights}; give 0 (the episode's own latent), 1 (the other's), and "
                f"numbers between."
            )
        if len(self.shifts) < 2 or 0.0 not in self.shifts or not np.isfinite(self.shifts).all():
            raise InputError(f"intervention.shifts is {self.shifts}; give 0 and one or more other finite numbers.")


class Behaviour(NamedTuple):
    """What was played: labels as recorded episodes have them, the team's return, and whether physics failed."""

    labels: Labels
    batch: TrajectoryBatch
    returns: Float[np.ndarray, " P"]
    failed: Bool[np.ndarray, " P"]


class Rollouts(NamedTuple):
    """Play one episode for each latent. With equal seeds the same row starts alike and meets the same noise.

    `joint` takes z_omega [P, Zw] and draws z_alpha from p(z_alpha | z_omega); `local` takes z_alpha [P, N, Za].
    """

    joint: Callable[[Float[np.ndarray, "P Zw"], int], Behaviour]
    local: Callable[[Float[np.ndarray, "P N Za"], int], Behaviour]


class Latents(NamedTuple):
    """Posterior means of the recorded episodes."""

    omega: Float[np.ndarray, "B Zw"]
    alpha: Float[np.ndarray, "B N Za"]


class Arm(NamedTuple):
    """One setting: `kind` is interpolate (0 is the baseline, 1 the swap), same, local, probe or random."""

    kind: str
    at: float


class Seen(NamedTuple):
    """An arm's rollouts: the target's value of each, -1 or NaN where physics failed, and what a reader must know.

    `outside` is the share of steps with an observation beyond what training episodes hold.
    """

    values: Num[np.ndarray, " R"]
    returns: float
    failed: float
    outside: float


class Trial(NamedTuple):
    """One target's interventions: the pair of each rollout, the class to move to along a direction, what was seen."""

    target: Target
    pairs: Pairs
    toward: Int[np.ndarray, " R"]
    converged: bool
    seen: dict[Arm, Seen]


BASE, SWAP, SAME = Arm("interpolate", 0.0), Arm("interpolate", 1.0), Arm("same", 1.0)
OWN_LOCAL, SWAP_LOCAL = Arm("local", 0.0), Arm("local", 1.0)


def choose_targets(found: Dataset, names: list[str]) -> tuple[Target, ...]:
    """The targets of the labels named, all for none.

    Raises InputError where a rollout does not have such a label.
    """
    targets = make_targets(found.labels, found.rows, found.split, [])
    known = sorted({name for target in targets for name in (target.label, target.name)})
    check_names(names, known, "intervention.labels", "a rollout (which has no label of its training run)")
    return tuple(target for target in targets if not names or {target.label, target.name} & set(names))


def try_out(
    config: Intervention,
    rollouts: Rollouts,
    found: Dataset,
    latents: Latents,
    target: Target,
    pairs: Pairs,
    axes: Axes,
    tell: Callable[[], None],
) -> Trial:
    """Roll every arm of one target out; `tell` is called after each."""
    pairs = Pairs(*(np.repeat(rows, config.repeats) for rows in pairs))
    toward = toward_of(target, pairs, config.repeats)
    reach, seen = observed_range(found), {}
    for arm, z in arms(config, latents, target, pairs, axes, toward):
        play = rollouts.local if arm.kind == "local" else rollouts.joint
        seen[arm] = see(play(z, config.seed), target, found, reach)
        tell()
    return Trial(target, pairs, toward, axes.converged, seen)


def n_arms(config: Intervention) -> int:
    """How many times the rollouts of a target are played."""
    return len(config.weights) + 3 + 2 * (len(config.shifts) - 1)


def toward_of(target: Target, pairs: Pairs, repeats: int) -> Int[np.ndarray, " R"]:
    """The class to move toward: the other episode's and the own one's in turn, so that it can rise and fall."""
    if target.kind == "real":
        return np.zeros(len(pairs.a), int)
    own = np.arange(len(pairs.a)) // repeats % 2 == 1
    return np.where(own, target.values[pairs.a], target.values[pairs.b]).astype(int)


def arms(
    config: Intervention, latents: Latents, target: Target, pairs: Pairs, axes: Axes, toward: Int[np.ndarray, " R"]
) -> Iterator[tuple[Arm, np.ndarray]]:
    """Every setting with the latents to play; a shift of 0 is the baseline, which interpolation has."""
    a, b, same = (latents.omega[rows] for rows in pairs)
    for weight in config.weights:
        yield Arm("interpolate", weight), (1 - weight) * a + weight * b
    yield SAME, same
    for arm, rows in ((OWN_LOCAL, pairs.a), (SWAP_LOCAL, pairs.b)):
        yield arm, latents.alpha[rows]
    strange, nobody = random_axes(axes, toward, generator(config.seed, target.name, "random axes")), np.arange(len(a))
    for shift in config.shifts:
        if shift != 0:
            yield Arm("probe", shift), moved(a, axes, toward, shift)
            yield Arm("random", shift), moved(a, strange, nobody, shift)


def see(
    played: Behaviour,
    target: Target,
    found: Dataset,
    reach: tuple[Float[np.ndarray, "N Do"], Float[np.ndarray, "N Do"]],
) -> Seen:
    """An arm's rollouts on the target's own scale."""
    values = read_like(target, found.labels, found.split, played.labels)
    lost = np.nan if target.kind == "real" else -1
    sound = ~played.failed
    obs, mask = (np.asarray(part) for part in (played.batch.obs, played.batch.mask))
    beyond = np.any((obs < reach[0][None, None]) | (obs > reach[1][None, None]), axis=-1)
    return Seen(
        values=np.where(sound, values, lost),
        returns=float(played.returns[sound].mean()) if sound.any() else np.nan,
        failed=float(played.failed.mean()),
        outside=float(beyond[mask].mean()),
    )


def observed_range(found: Dataset) -> tuple[Float[np.ndarray, "N Do"], Float[np.ndarray, "N Do"]]:
    """Lowest and highest value of each observation of each agent in the training episodes' real steps."""
    training = found.split == SPLITS.index("train")
    obs, mask = (np.asarray(part)[training] for part in (found.batch.obs, found.batch.mask))
    low = np.where(mask[..., None], obs, np.inf).min((0, 1))
    high = np.where(mask[..., None], obs, -np.inf).max((0, 1))
    return low, high
