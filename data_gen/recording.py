"""Recording of a data set: train seeds, snapshot their policies, play episodes with each snapshot.

S training seeds of a shard, C checkpoints, P episodes a checkpoint.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, Key

from data_gen.domains.domain import Domain
from data_gen.keys import named_key
from data_gen.learner import PPO, Progress, act_policy, check_fit, init_seeds, train_seeds
from data_gen.rollout import Episode, act_random, act_scripted, play, team_return
from data_gen.shard import Shard
from data_gen.trajectory import InputError, Labels, LabelSpec, Outcomes, RowIndex, TrajectoryBatch, check_batch

BASELINE_EPISODES = 256
BASELINES = {"random": act_random, "scripted": act_scripted}


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


def episode_key(key: Key[Array, ""], seed: Int32[Array, ""], checkpoint: Int32[Array, ""], number: Int32[Array, ""]):
    """The key of one recorded episode."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.fold_in(key, seed), checkpoint), number)


@partial(jax.jit, static_argnums=(0, 1, 5))
def record(
    domain: Domain,
    sharing: bool,
    actors: dict[str, Array],
    key: Key[Array, ""],
    where: tuple[Int32[Array, " S"], Int32[Array, ""]],
    n_episodes: int,
) -> Episode:
    """`n_episodes` of every seed (`where`: seed numbers and checkpoint) with stochastic policies: axes [S, P, T, …]."""
    seeds, checkpoint = where

    def of_seed(actors, seed):
        act = partial(act_policy, domain, sharing, actors)
        keys = jax.vmap(partial(episode_key, key, seed, checkpoint))(jnp.arange(n_episodes))
        return jax.vmap(partial(play, domain, act))(keys)

    return jax.vmap(of_seed)(actors, seeds)


@partial(jax.jit, static_argnums=(0, 1))
def baseline(domain: Domain, name: str, keys: Key[Array, " P"]) -> Float32[Array, ""]:
    """Mean team return of a baseline team on the episodes of the keys."""
    episodes = jax.vmap(partial(play, domain, partial(BASELINES[name], domain)))(keys)
    return jnp.mean(team_return(episodes.rewards))


@cache  # the scripted team's look ahead takes seconds, and every shard of a process wants the same numbers
def baselines(domain: Domain, seed: int) -> dict[str, float]:
    """Mean team return of random and scripted teams on the same starts, the same in every shard."""
    keys = jax.random.split(named_key(seed, domain.name, "baseline"), BASELINE_EPISODES)
    return {name: round(float(baseline(domain, name, keys)), 4) for name in BASELINES}


def check_finite(progress: Progress, seeds: range, first_update: int) -> None:
    """Raise InputError, naming seed and update, where a return or a parameter is not finite."""
    bad = ~(np.isfinite(np.asarray(progress.team_return)) & np.asarray(progress.finite))
    if bad.any():
        update = int(bad.any(axis=0).argmax())
        seed = seeds[int(bad[:, update].argmax())]
        raise InputError(
            f"learner: training seed {seed} has a return or a parameter that is not finite at update "
            f"{first_update + update}. Nothing of this shard was written. Lower learner.lr or learner.max_grad_norm."
        )


def record_shard(
    domain: Domain, ppo: PPO, recording: Recording, shard: int, progress: Callable[[float], None]
) -> Shard:
    """Train a shard's seeds and record their episodes. `progress` is told the share that is done.

    Raises InputError where sizes do not fit together, or where learning gives a number that is not finite.
    """
    check_fit(domain, ppo)
    seeds, edges = seeds_of_shard(recording, shard), updates_at(ppo, recording)
    train_key, play_key = (named_key(recording.seed, domain.name, use) for use in ("train", "record"))
    numbers = jnp.asarray(seeds, jnp.int32)
    state = init_seeds(domain, ppo, jax.vmap(partial(jax.random.fold_in, train_key))(numbers))
    episodes, actors, curves = [], [], []
    for checkpoint, edge in enumerate(edges):
        if checkpoint:
            state, learned = train_seeds(domain, ppo, state, edge - edges[checkpoint - 1])
            check_finite(learned, seeds, edges[checkpoint - 1])
            curves.append(np.asarray(learned.team_return))
        actor = state.params["actor"]
        where = (numbers, jnp.asarray(checkpoint, jnp.int32))
        played = record(domain, ppo.sharing, actor, play_key, where, recording.episodes)
        episodes.append(jax.tree.map(np.asarray, played))
        actors.append(jax.tree.map(np.array, actor))
        progress((checkpoint + 1) / len(edges))
    policies = {f"actor/{name}": np.stack([actor[name] for actor in actors], axis=1) for name in actors[0]}
    return assemble(domain, ppo, recording, seeds, stack_episodes(episodes), policies, np.concatenate(curves, axis=1))


def stack_episodes(episodes: list[Episode]) -> Episode:
    """Checkpoints' episodes [S, P, …] to rows [S · C · P, …]."""
    return Episode(*(np.stack(field, axis=1).reshape(-1, *field[0].shape[2:]) for field in zip(*episodes, strict=True)))


def row_index(recording: Recording, seeds: range) -> RowIndex:
    """Rows in the order seed, checkpoint, episode; an episode's number is unique over the data set."""
    shape = (len(seeds), recording.checkpoints, recording.episodes)
    group, checkpoint, number = (axis.reshape(-1).astype(np.int32) for axis in np.indices(shape))
    group = group + np.int32(seeds[0])
    episode = (group * recording.checkpoints + checkpoint) * recording.episodes + number
    return RowIndex(episode=episode, group=group, checkpoint=checkpoint, t0=np.zeros_like(episode))


def label_episodes(domain: Domain, batch: TrajectoryBatch, rewards: np.ndarray, rows: RowIndex, c: int) -> Labels:
    """The domain's labels, and those of every domain: class of team return, and progress (the checkpoint's number)."""
    of_domain = domain.measure(batch, rows)
    values = {"team_return": np.asarray(team_return(rewards), np.float32), "progress": rows.checkpoint}
    specs = (
        LabelSpec("return_class", "team_return", "quantile", bins=3),
        LabelSpec("progress", "progress", "class", classes=tuple(f"checkpoint {k}" for k in range(c))),
    )
    return Labels(values=values | of_domain.values, specs=specs[:1] + of_domain.specs + specs[1:])


def assemble(
    domain: Domain,
    ppo: PPO,
    recording: Recording,
    seeds: range,
    episodes: Episode,
    policies: dict[str, np.ndarray],
    curve: Float32[np.ndarray, "S U"],
) -> Shard:
    """The shard of recorded episodes, checked."""
    rows = row_index(recording, seeds)
    actions = episodes.actions.astype(np.float32 if domain.action.kind == "continuous" else np.int32)
    batch = TrajectoryBatch(obs=episodes.obs, actions=actions, mask=np.ones(episodes.obs.shape[:3], bool))
    check_batch(batch, domain.action, where=f"{domain.name}, training seeds {seeds[0]} to {seeds[-1]}")
    terminated = np.zeros(episodes.obs.shape[:2], bool)
    truncated = terminated.copy()
    truncated[:, -1] = True
    labels = label_episodes(domain, batch, episodes.rewards, rows, recording.checkpoints)
    hand = domain.hand_features(batch)
    return Shard(
        batch=batch,
        rows=rows,
        outcomes=Outcomes(rewards=episodes.rewards, terminated=terminated, truncated=truncated),
        labels=labels,
        hand=hand,
        policies=policies,
        curve=curve,
        action=domain.action,
        meta=meta_of(domain, ppo, recording, labels, hand.names),
    )


def meta_of(
    domain: Domain, ppo: PPO, recording: Recording, labels: Labels, hand_names: tuple[str, ...]
) -> dict[str, Any]:
    """What all shards of a data set agree on, as JSON values."""
    return {
        "domain": {"name": domain.name, **json_value(asdict(domain.config))},
        "learner": asdict(ppo),
        "recording": asdict(recording),
        "action": domain.action._asdict(),
        "obs_names": list(domain.obs_names),
        "hand_names": list(hand_names),
        "labels": [json_value(spec._asdict()) for spec in labels.specs],
        "landmarks": [mark._asdict() for mark in domain.landmarks],
        "position": list(domain.position),
        "updates": updates_at(ppo, recording),
        "baselines": dict(baselines(domain, recording.seed)),
    }


def json_value(value: Any) -> Any:
    """Tuples to lists, at any depth."""
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    return [json_value(item) for item in value] if isinstance(value, (tuple, list)) else value


def normalised_return(
    team_returns: Float32[np.ndarray, " B"], rows: RowIndex, references: dict[str, float]
) -> Float32[np.ndarray, " G"]:
    """(R − random) / (scripted − random) of each training seed's last checkpoint, in the order of the seeds."""
    last = rows.checkpoint == rows.checkpoint.max()
    means = [team_returns[last & (rows.group == group)].mean() for group in np.unique(rows.group)]
    span = references["scripted"] - references["random"]
    return ((np.array(means) - references["random"]) / span).astype(np.float32)
