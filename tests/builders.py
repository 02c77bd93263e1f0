"""Tiny batches whose dimensions are all distinct, so that a swapped axis cannot pass unseen."""

import numpy as np

from data_gen.trajectory import ActionSpec, FeatureMask, TrajectoryBatch

B, T, N, DO = 6, 7, 3, 4


def tiny_batch(action: ActionSpec, seed: int = 0, n_episodes: int = B) -> TrajectoryBatch:
    """Random episodes with ragged lengths, and one agent that comes late."""
    rng = np.random.default_rng(seed)
    mask = np.arange(T)[None, :, None] < rng.integers(3, T + 1, (n_episodes, 1, 1))
    mask = np.broadcast_to(mask, (n_episodes, T, N)).copy()
    mask[0, 0, 1] = False
    shape = (n_episodes, T, N)
    if action.kind == "continuous":
        actions = rng.normal(size=(*shape, action.size)).astype(np.float32)
    else:
        actions = rng.integers(0, action.size, shape).astype(np.int32)
    return TrajectoryBatch(obs=rng.normal(size=(*shape, DO)).astype(np.float32), actions=actions, mask=mask)


def widened(
    batch: TrajectoryBatch, features: FeatureMask, n_obs: int, n_actions: int
) -> tuple[TrajectoryBatch, FeatureMask]:
    """The same episodes with columns of zeros at the end that are real for no agent; discrete actions stay."""

    def pad(values: np.ndarray, width: int) -> np.ndarray:
        return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, width - values.shape[-1])])

    actions = pad(batch.actions, n_actions) if batch.actions.ndim == 4 else batch.actions
    return (
        TrajectoryBatch(obs=pad(batch.obs, n_obs), actions=actions, mask=batch.mask),
        FeatureMask(obs=pad(features.obs, n_obs), actions=pad(features.actions, n_actions)),
    )


# Of three agents; every column but the first lacks an agent, and no two agents are alike.
OBS_WIDTHS, ACTION_WIDTHS = (3, 5, 4), (2, 1, 3)
UNEVEN = ActionSpec("continuous", 3)


def uneven_batch(seed: int = 0, n_episodes: int = B) -> tuple[TrajectoryBatch, FeatureMask]:
    """Agents of different widths, padded with zeros to the widest; each has its own place and spread."""
    rng = np.random.default_rng(seed)
    mask = tiny_batch(UNEVEN, seed, n_episodes).mask
    padded = []
    for widths in (OBS_WIDTHS, ACTION_WIDTHS):
        values = rng.normal(size=(*mask.shape, max(widths))) * [[1.0], [3.0], [0.5]] + [[2.0], [-1.0], [0.0]]
        real = np.arange(max(widths)) < np.array(widths)[:, None]
        padded.append((np.where(real, values, 0).astype(np.float32), real))
    (obs, obs_real), (actions, action_real) = padded
    return TrajectoryBatch(obs=obs, actions=actions, mask=mask), FeatureMask(obs=obs_real, actions=action_real)


def styled_batch(seed: int, n_episodes: int) -> TrajectoryBatch:
    """Three agents that go one of two ways together: episodes with a joint style, for training in seconds."""
    rng = np.random.default_rng(seed)
    style = rng.integers(0, 2, n_episodes) * 2 - 1
    goals = style[:, None, None] * np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]])
    place, obs, actions = rng.normal(size=(n_episodes, N, 2)) * 0.3, [], []
    for _ in range(T):
        move = 0.5 * (goals - place) + 0.2 * rng.normal(size=place.shape)
        obs.append(place)
        actions.append(move)
        place = place + move
    mask = np.ones((n_episodes, T, N), bool)
    mask[::5, -2:] = False
    both = (np.stack(values, axis=1).astype(np.float32) for values in (obs, actions))
    return TrajectoryBatch(*both, mask=mask)
