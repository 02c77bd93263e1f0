"""The types that flow through the whole line, and the checks made where they enter it.

Letters: B episodes, T steps, N agents, Do observation, Da action, F features.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Shaped

if TYPE_CHECKING:
    AnyArray = Any  # a type checker cannot see that both kinds share the operators used on them
else:
    AnyArray = Array | np.ndarray

SPLITS = ("train", "validation", "test")


class InputError(ValueError):
    """The user's input is wrong. The message says what, where and what to do; entry points exit with code 2."""


class TrajectoryBatch(NamedTuple):
    """What the model may see. `mask` is presence: True where agent i's step t is real."""

    obs: Float32[AnyArray, "B T N Do"]
    actions: Float32[AnyArray, "B T N Da"] | Int32[AnyArray, "B T N"]
    mask: Bool[AnyArray, "B T N"]


class Episodes(ABC):
    """Abstract: episodes that are read when they are asked for, where a TrajectoryBatch would not fit into memory."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of episodes."""

    @abstractmethod
    def take(self, rows: Int32[np.ndarray, " K"]) -> TrajectoryBatch:
        """The given episodes, read now; safe to call from several threads at once."""

    @abstractmethod
    def part(self, rows: Int32[np.ndarray, " K"]) -> "Episodes":
        """The given episodes, unread."""


class RowIndex(NamedTuple):
    """Where a row comes from: its recording, the unit it is split by, the learner's checkpoint, its first step."""

    episode: Int32[np.ndarray, " B"]
    group: Int32[np.ndarray, " B"]
    checkpoint: Int32[np.ndarray, " B"]
    t0: Int32[np.ndarray, " B"]


class Outcomes(NamedTuple):
    """What happened to the agents; never an input of the model."""

    rewards: Float32[np.ndarray, "B T N"]
    terminated: Bool[np.ndarray, "B T"]
    truncated: Bool[np.ndarray, "B T"]


class LabelSpec(NamedTuple):
    """How a probe reads a ground-truth quantity: `kind` is class, quantile (cut into `bins` classes) or real.

    A quantile label is cut apart in each class of `within`, the source of a class label, where that is named. Of a
    value that is not known the class is -1, the number NaN.
    """

    name: str
    source: str
    kind: str
    bins: int = 0
    classes: tuple[str, ...] = ()
    within: str = ""


def spec_json(spec: LabelSpec) -> dict[str, Any]:
    """A label's spec as a store holds it: JSON, without `within` where it is empty, as stores were before it was."""
    found = {**spec._asdict(), "classes": list(spec.classes)}
    return found if spec.within else {key: value for key, value in found.items() if key != "within"}


class Labels(NamedTuple):
    """Ground truth per episode, outside the trainer's input: arrays [B], or [B, N] for a label of each agent."""

    values: dict[str, np.ndarray]
    specs: tuple[LabelSpec, ...]


class Features(NamedTuple):
    """Named columns computed from observations and actions alone, for comparison with latents."""

    values: Float32[np.ndarray, "B F"]
    names: tuple[str, ...]


class ActionSpec(NamedTuple):
    """`continuous`: `size` is Da. `discrete`: `size` is the number of choices."""

    kind: str
    size: int


class FeatureMask(NamedTuple):
    """True where a feature is real for that agent; agents of different widths are padded with zeros.

    For discrete actions Da is the number of choices.
    """

    obs: Bool[np.ndarray, "N Do"]
    actions: Bool[np.ndarray, "N Da"]


class Dataset(NamedTuple):
    """A whole data set in host memory. `split` numbers `SPLITS` per row; a group never straddles it."""

    batch: TrajectoryBatch
    features: FeatureMask
    rows: RowIndex
    outcomes: Outcomes
    labels: Labels
    hand: Features
    split: Int32[np.ndarray, " B"]
    action: ActionSpec
    meta: dict[str, Any]

    def rows_of(self, name: str) -> Int32[np.ndarray, " K"]:
        """Row numbers of one split."""
        return np.flatnonzero(self.split == SPLITS.index(name)).astype(np.int32)


class OpenDataset(NamedTuple):
    """A data set whose episodes stay on disk, with what training needs to know of them."""

    batch: Episodes
    features: FeatureMask
    rows: RowIndex
    split: Int32[np.ndarray, " B"]
    action: ActionSpec

    def rows_of(self, name: str) -> Int32[np.ndarray, " K"]:
        """Row numbers of one split."""
        return np.flatnonzero(self.split == SPLITS.index(name)).astype(np.int32)


def select(found: Dataset, rows: Int32[np.ndarray, " K"]) -> Dataset:
    """The given episodes with all that is known of them."""
    return found._replace(
        batch=take(found.batch, rows),
        rows=RowIndex(*(field[rows] for field in found.rows)),
        outcomes=Outcomes(*(field[rows] for field in found.outcomes)),
        labels=found.labels._replace(values={name: value[rows] for name, value in found.labels.values.items()}),
        hand=found.hand._replace(values=found.hand.values[rows]),
        split=found.split[rows],
    )


def check_hold_out(hold_out: list[int], known: list[int]) -> None:
    """Raise InputError where a checkpoint to hold out is not among the known ones, or none would be left."""
    unknown = sorted(set(hold_out) - set(known))
    if unknown:
        raise InputError(f"train.hold_out: the data set has no checkpoint {unknown[0]}; its checkpoints are {known}.")
    if known and set(known) <= set(hold_out):
        raise InputError(f"train.hold_out={hold_out} leaves no checkpoint to train on; hold out fewer.")


def seen_rows(found: Dataset | OpenDataset, hold_out: list[int]) -> Int32[np.ndarray, " K"]:
    """Episodes of all checkpoints but those held out; InputError where a split has none of them, or nothing trains."""
    if SPLITS.index("train") not in found.split:
        raise InputError(
            f"the data set has {len(np.unique(found.rows.group))} group(s); training, validation and test need at "
            f"least one each, since rows of one group never straddle the split. Bring more recordings, or name a finer "
            f"group. A trained run embeds these as they are: launch.embed."
        )
    check_hold_out(hold_out, np.unique(found.rows.checkpoint).tolist())
    seen = ~np.isin(found.rows.checkpoint, hold_out)
    for number, name in enumerate(SPLITS):
        here = found.split == number
        if here.any() and not (here & seen).any():
            raise InputError(f"train.hold_out={hold_out} leaves no {name} episode; hold out fewer checkpoints.")
    return np.flatnonzero(seen).astype(np.int32)


def n_episodes(batch: TrajectoryBatch | Episodes) -> int:
    """How many episodes there are."""
    return len(batch.mask) if isinstance(batch, TrajectoryBatch) else len(batch)


def take(batch: TrajectoryBatch | Episodes, rows: Int32[np.ndarray, " K"]) -> TrajectoryBatch:
    """The given rows of every field."""
    if isinstance(batch, Episodes):
        return batch.take(rows)
    return TrajectoryBatch(*(field[rows] for field in batch))


def check_batch(batch: TrajectoryBatch, action: ActionSpec, where: str = "batch") -> None:
    """Raise InputError where shapes disagree, a real step is not finite, or a discrete action is out of range."""
    obs, actions, mask = (np.asarray(field) for field in batch)
    if obs.ndim != 4:
        raise InputError(f"{where}: obs has shape {obs.shape}; it must be [episodes, steps, agents, features].")
    if mask.shape != obs.shape[:3] or mask.dtype != bool:
        raise InputError(f"{where}: mask is {mask.dtype}{list(mask.shape)}; it must be bool{list(obs.shape[:3])}.")
    want = (*obs.shape[:3], action.size) if action.kind == "continuous" else obs.shape[:3]
    if actions.shape != want:
        raise InputError(f"{where}: {action.kind} actions have shape {actions.shape}; they must be {want}.")
    if obs.shape[0] == 0 or not mask.any():
        raise InputError(f"{where}: there is no episode with a real step; nothing could be learned or embedded.")
    _check_finite(obs, mask, f"{where}: obs")
    if action.kind == "continuous":
        _check_finite(actions, mask, f"{where}: actions")
        return
    wrong = np.argwhere(mask & ((actions < 0) | (actions >= action.size)))
    if len(wrong):
        b, t, n = wrong[0]
        raise InputError(
            f"{where}: action {actions[b, t, n]} at episode {b}, step {t}, agent {n} is outside 0..{action.size - 1}."
        )


def _check_finite(values: np.ndarray, mask: np.ndarray, what: str) -> None:
    wrong = np.argwhere(~np.isfinite(values) & mask[..., None])
    if len(wrong):
        b, t, n, f = wrong[0]
        raise InputError(
            f"{what} is {values[b, t, n, f]} at episode {b}, step {t}, agent {n}, feature {f}, and "
            f"{len(wrong)} value(s) in all. Mask the steps that were not observed, or repair the values."
        )


def all_real(n_agents: int, n_obs: int, action: ActionSpec) -> FeatureMask:
    """The mask of agents that all have every feature."""
    return FeatureMask(obs=np.ones((n_agents, n_obs), bool), actions=np.ones((n_agents, action.size), bool))


def check_features(batch: TrajectoryBatch, features: FeatureMask, action: ActionSpec, where: str) -> None:
    """Raise InputError where the mask does not fit the batch, or padding holds a value at a real step."""
    n_agents, n_obs = batch.obs.shape[2:]
    for name, real, width in (("obs", features.obs, n_obs), ("actions", features.actions, action.size)):
        if real.dtype != bool or real.shape != (n_agents, width):
            raise InputError(
                f"{where}: the feature mask of {name} is {real.dtype}{list(real.shape)}; it must be "
                f"bool{[n_agents, width]}, a row an agent and a column a feature. Record the data set again."
            )
    _check_padding(batch.obs, batch.mask, features.obs, f"{where}: obs")
    if action.kind == "continuous":
        _check_padding(batch.actions, batch.mask, features.actions, f"{where}: actions")
        return
    wrong = np.argwhere(~features.actions)
    if len(wrong):
        n, choice = wrong[0]
        raise InputError(
            f"{where}: the feature mask takes choice {choice} from agent {n}, which is not supported for discrete "
            f"actions. Give every agent all {action.size} choices."
        )


def _check_padding(values: AnyArray, mask: AnyArray, real: Bool[np.ndarray, "N F"], what: str) -> None:
    values, mask = np.asarray(values), np.asarray(mask)
    for n, f in np.argwhere(~real):
        wrong = np.argwhere((values[:, :, n, f] != 0) & mask[:, :, n])
        if len(wrong):
            b, t = wrong[0]
            raise InputError(
                f"{what} is {values[b, t, n, f]} at episode {b}, step {t}, agent {n}, feature {f}, which the feature "
                f"mask calls padding. Padding must be 0: the mask is wrong, or the values are. Record the data set "
                f"again."
            )


def alike_columns(
    values: Shaped[np.ndarray, "B T N F"], mask: Bool[np.ndarray, "B T N"], real: Bool[np.ndarray, "N F"]
) -> Iterator[tuple[Bool[np.ndarray, " F"], Shaped[np.ndarray, "K _"]]]:
    """Each set of columns that are real for the same agents, with those agents' values at real steps.

    Columns for which there is no value are left out.
    """
    for agents in np.unique(real, axis=1).T:
        columns, seen = (real == agents[:, None]).all(0), mask & agents
        if seen.any():
            # Compressed, not indexed, which would turn the memory round and with it the order of later sums.
            yield columns, np.compress(columns, values[seen], axis=1)


def cleared(batch: TrajectoryBatch) -> TrajectoryBatch:
    """The batch as NumPy arrays; masked values become zero, so that what lies under the mask cannot matter."""
    obs, actions, mask = batch
    keep = np.asarray(mask)
    actions = np.where(keep[..., None] if actions.ndim == 4 else keep, actions, 0)
    return TrajectoryBatch(obs=np.where(keep[..., None], obs, 0), actions=actions, mask=keep)


def to_device(batch: TrajectoryBatch) -> TrajectoryBatch:
    """The batch, cleared, as JAX arrays."""
    return TrajectoryBatch(*(jnp.asarray(field) for field in cleared(batch)))
