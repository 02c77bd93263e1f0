"""Recording of a data set: train seeds, snapshot their policies, play episodes with each snapshot.

S training seeds of a shard, C checkpoints, P episodes a checkpoint.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data_gen.domains import RUN_LABELS
from data_gen.keys import named_key
from data_gen.learners.learner import Progress
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import team_return
from data_gen.recording.world import Played, World
from data_gen.storage.shard import Shard
from data_gen.trajectory import InputError, Labels, LabelSpec, Outcomes, RowIndex, check_batch, spec_json


@dataclass
class Recording:
    """Size of a data set. `split`: training seeds for training, validation and test; `seed` names the whole set."""

    seeds: int = 48
    checkpoints: int = 6
    episodes: int = 16
    shards: int = 4
    seed: int = 0
    split: list[int] = field(default_factory=lambda: [24, 8, 16])

    def __post_init__(self):
        self.split = [int(size) for size in self.split]
        for name in ("seeds", "checkpoints", "episodes", "shards"):
            if getattr(self, name) < 1:
                raise InputError(f"recording: {name} is {getattr(self, name)}; it must be at least 1.")
        if self.seeds < 3:
            raise InputError(
                f"recording: seeds is {self.seeds}; training, validation and test need one training seed each, so "
                f"take at least 3."
            )
        if self.seeds % self.shards:
            raise InputError(
                f"recording: {self.seeds} seeds cannot be dealt evenly to {self.shards} shards. Choose a number of "
                f"shards that divides the seeds."
            )
        if self.checkpoints < 2:
            raise InputError("recording: checkpoints is 1; the first comes before any update, so take at least 2.")
        if self.seed < 0 or len(self.split) != 3 or min(self.split) < 1:
            raise InputError(
                f"recording: seed is {self.seed} and split {self.split}; seed must not be negative, and split is three "
                f"positive numbers of training seeds: for training, validation and test."
            )


def seeds_of_shard(recording: Recording, shard: int) -> range:
    """The contiguous block of training seeds that a shard holds. Raises InputError where there is no such shard."""
    if not 0 <= shard < recording.shards:
        raise InputError(f"recording: there is no shard {shard}; they are numbered 0 to {recording.shards - 1}.")
    size = recording.seeds // recording.shards
    return range(shard * size, (shard + 1) * size)


def updates_at(ppo: PPO, recording: Recording) -> list[int]:
    """How many updates came before each checkpoint. Raises InputError where they cannot be evenly spaced."""
    intervals = recording.checkpoints - 1
    if ppo.updates % intervals:
        raise InputError(
            f"recording: {ppo.updates} updates cannot be cut into {intervals} equal intervals between "
            f"{recording.checkpoints} checkpoints. Choose learner.updates as a multiple of {intervals}."
        )
    return [k * (ppo.updates // intervals) for k in range(recording.checkpoints)]


def check_finite(progress: Progress, seeds: range, first_update: int) -> None:
    """Raise InputError, naming seed and update, where a return or a parameter is not finite."""
    unsound = (progress.episodes > 0) & ~np.isfinite(progress.team_return)
    bad = np.asarray(unsound) | ~np.asarray(progress.finite)
    if bad.any():
        update = int(bad.any(axis=0).argmax())
        seed = seeds[int(bad[:, update].argmax())]
        raise InputError(
            f"learner: training seed {seed} has a return or a parameter that is not finite at update "
            f"{first_update + update}. Nothing of this shard was written. Lower learner.lr or learner.max_grad_norm."
        )


def record_shard(world: World, recording: Recording, shard: int, progress: Callable[[float], None]) -> Shard:
    """Train a shard's seeds and record their episodes. `progress` is told the share that is done.

    Raises InputError where sizes do not fit together, or where learning gives a number that is not finite.
    """
    seeds, edges = seeds_of_shard(recording, shard), updates_at(world.ppo, recording)
    train_key, play_key = (named_key(recording.seed, world.name, use) for use in ("train", "record"))
    numbers = jnp.asarray(seeds, jnp.int32)
    state = world.start(jax.vmap(partial(jax.random.fold_in, train_key))(numbers))
    found, snapshots, learned = [], [], []
    for checkpoint, edge in enumerate(edges):
        if checkpoint:
            before = edges[checkpoint - 1]

            def tell(share: float, before: int = before, edge: int = edge) -> None:
                progress((before + share * (edge - before)) / edges[-1])

            state, of_learner = world.train(state, edge - before, tell)
            check_finite(of_learner, seeds, before)
            learned.append(jax.tree.map(np.asarray, of_learner))
        where = (numbers, jnp.asarray(checkpoint, jnp.int32))
        found.append(world.play(state, play_key, *where, recording.episodes))
        snapshots.append(world.snapshot(state))
        progress(edge / edges[-1])
    policies = {name: np.stack([one[name] for one in snapshots], axis=1) for name in snapshots[0]}
    history = Progress(*(np.concatenate(field, axis=1) for field in zip(*learned, strict=True)))
    return assemble(world, recording, seeds, stack_checkpoints(found, len(seeds)), policies, history)


def stack_checkpoints(found: list[Played], n_seeds: int) -> Played:
    """Checkpoints' episodes, each [S · P, …], to rows [S · C · P, …]."""

    def stack(*parts: np.ndarray) -> np.ndarray:
        by_seed = [part.reshape(n_seeds, -1, *part.shape[1:]) for part in parts]
        return np.stack(by_seed, axis=1).reshape(-1, *parts[0].shape[1:])

    return jax.tree.map(stack, *found)


def row_index(recording: Recording, seeds: range) -> RowIndex:
    """Rows in the order seed, checkpoint, episode; an episode's number is unique over the data set."""
    shape = (len(seeds), recording.checkpoints, recording.episodes)
    group, checkpoint, number = (axis.reshape(-1).astype(np.int32) for axis in np.indices(shape))
    group = group + np.int32(seeds[0])
    episode = (group * recording.checkpoints + checkpoint) * recording.episodes + number
    return RowIndex(episode=episode, group=group, checkpoint=checkpoint, t0=np.zeros_like(episode))


def label_episodes(of_domain: Labels, rewards: np.ndarray, rows: RowIndex, n_checkpoints: int) -> Labels:
    """The domain's labels, and those of every domain: class of team return, and progress (the checkpoint's number)."""
    values = {"team_return": np.asarray(team_return(rewards), np.float32), "progress": rows.checkpoint}
    specs = (
        LabelSpec("return_class", "team_return", "quantile", bins=3),
        LabelSpec("progress", "progress", "class", classes=tuple(f"checkpoint {k}" for k in range(n_checkpoints))),
    )
    return Labels(values=values | of_domain.values, specs=specs[:1] + of_domain.specs + specs[1:])


def of_episodes(labels: Labels) -> Labels:
    """Without the labels of the training run, which an episode that was played by another policy does not have."""
    specs = tuple(spec for spec in labels.specs if spec.name not in RUN_LABELS)
    sources = {source for spec in specs for source in (spec.source, spec.within) if source}
    return Labels(values={name: value for name, value in labels.values.items() if name in sources}, specs=specs)


def label_rollouts(world: World, played: Played) -> Labels:
    """The labels of episodes that a given policy played, measured as recorded ones are."""
    none = np.zeros(len(played.failed), np.int32)
    rows = RowIndex(episode=np.arange(len(none), dtype=np.int32), group=none, checkpoint=none, t0=none)
    return of_episodes(label_episodes(world.describe(played, rows)[0], played.rewards, rows, 1))


def failures(played: Played, rows: RowIndex, history: Progress, seeds: range, n_episodes: int) -> list[str]:
    """What was thrown away because physics failed: recorded episodes one by one, those of the learner counted."""
    environment = (rows.group - seeds[0]) * n_episodes + rows.episode % n_episodes
    lines = [
        f"training seed {rows.group[row]}, checkpoint {rows.checkpoint[row]}, episode {rows.episode[row]} (environment "
        f"{environment[row]}): physics failed at step {played.failed[row]}; the episode was discarded"
        for row in np.flatnonzero(played.failed >= 0).tolist()
    ]
    counts = zip(seeds, history.broken.sum(axis=1).tolist(), strict=True)
    return lines + [
        f"training seed {seed}: physics failed in {count} episode(s) while learning; each ended there"
        for seed, count in counts
        if count
    ]


def assemble(
    world: World,
    recording: Recording,
    seeds: range,
    played: Played,
    policies: dict[str, np.ndarray],
    history: Progress,
) -> Shard:
    """The shard of recorded episodes without those whose physics failed, checked."""
    rows = row_index(recording, seeds)
    lost = failures(played, rows, history, seeds, recording.episodes)
    kept = np.flatnonzero(played.failed < 0)
    if not len(kept):
        raise InputError(
            f"{world.name}: physics failed in every recorded episode of training seeds {seeds[0]} to {seeds[-1]}, so "
            f"nothing of this shard was written. The first: {lost[0]}. The policies act wildly; lower learner.lr or "
            f"learner.max_grad_norm."
        )
    played, rows = (jax.tree.map(lambda x: x[kept], part) for part in (played, rows))
    check_batch(played.batch, world.action, where=f"{world.name}, training seeds {seeds[0]} to {seeds[-1]}")
    of_domain, hand = world.describe(played, rows)
    labels = label_episodes(of_domain, played.rewards, rows, recording.checkpoints)
    return Shard(
        batch=played.batch,
        rows=rows,
        outcomes=Outcomes(rewards=played.rewards, terminated=played.terminated, truncated=played.truncated),
        labels=labels,
        hand=hand,
        policies=policies,
        states=played.states,
        curve=history.team_return,
        action=world.action,
        discarded=tuple(lost),
        meta=meta_of(world, recording, labels, hand.names),
    )


def meta_of(world: World, recording: Recording, labels: Labels, hand_names: tuple[str, ...]) -> dict[str, Any]:
    """What all shards of a data set agree on, as JSON values."""
    return {
        "domain": {"name": world.name, **json_value(asdict(world.config))},
        "learner": asdict(world.ppo),
        "recording": asdict(recording),
        "action": world.action._asdict(),
        "hand_names": list(hand_names),
        "labels": [spec_json(spec) for spec in labels.specs],
        "updates": updates_at(world.ppo, recording),
        **world.facts(recording.seed),
    }


def json_value(value: Any) -> Any:
    """Tuples to lists, at any depth."""
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    return [json_value(item) for item in value] if isinstance(value, (tuple, list)) else value
