"""What the probes read: latents, and the plainer descriptions of an episode they are compared with.

Letters: B episodes, T steps, N agents, Zw joint latent, Za local latent, W width, F features, E encoder seeds.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int
from sklearn.decomposition import PCA

from data_gen.trajectory import FeatureMask, Features, InputError, TrajectoryBatch, alike_columns

RAW_WIDTH = 100
TOGETHER = ("pca", "raw")
FEATURES = ("z_omega", "z_alpha", "z_both", "majority", "pca", "raw", "hand", "random_encoder", "flat_vae")
OF_ENCODERS = ("z_omega", "z_alpha", "z_both", "random_encoder", "flat_vae")


class Encoded(NamedTuple):
    """What encoders made of the episodes, one row an encoder seed; `flat_vae` is a VAE without levels, where trained.

    `trained_on_test` says that an encoder saw the test episodes in training (without labels), as in a transductive
    comparison.
    """

    z_omega: Float[np.ndarray, "E B Zw"]
    z_alpha: Float[np.ndarray, "E B N Za"]
    random_encoder: Float[np.ndarray, "E B Zr"]
    flat_vae: Float[np.ndarray, "E B Zf"] | None = None
    trained_on_test: bool = False

    def take(self, rows: Int[np.ndarray, " K"]) -> "Encoded":
        """The given episodes."""
        names = [
            name for name in ("z_omega", "z_alpha", "random_encoder", "flat_vae") if getattr(self, name) is not None
        ]
        return self._replace(**{name: getattr(self, name)[:, rows] for name in names})


def feature_sets(
    batch: TrajectoryBatch,
    train: Bool[np.ndarray, " B"],
    *,
    features: FeatureMask,
    hand: Features,
    encoded: Encoded,
    seed: int,
) -> dict[str, Float[np.ndarray, "_ B _"]]:
    """Every feature set but `majority`, in the order of `FEATURES`; whatever is fitted is fitted on `train` rows.

    A data set without hand features has no set of them.

    `raw` is the whole trajectory reduced by PCA to at most 100 numbers, `pca` its first Zw, so that the comparison
    with z_omega is at equal width. Every set is standardised. E is 1 for what needs no encoder. Raises InputError where
    lengths differ or a number is not finite.
    """
    z_omega, local = encoded.z_omega, encoded.z_alpha.reshape(*encoded.z_alpha.shape[:2], -1)
    given = {"z_omega": z_omega, "z_alpha": local, "random_encoder": encoded.random_encoder}
    if hand.names:
        given["hand"] = hand.values[None]
    if encoded.flat_vae is not None:
        given["flat_vae"] = encoded.flat_vae
    for name, values in given.items():
        check_values(name, values, len(train), len(z_omega) if name in OF_ENCODERS else 1)
    components = principal(flatten(batch, train, features), train, max(RAW_WIDTH, z_omega.shape[2]), seed)[None]
    given |= {"pca": components[..., : z_omega.shape[2]], "raw": components[..., :RAW_WIDTH]}
    given |= {"z_both": np.concatenate([z_omega, local], 2)}
    return {
        name: np.stack([standardise(values, train, name in TOGETHER) for values in given[name]])
        for name in FEATURES
        if name in given
    }


def standardise(
    values: Float[np.ndarray, "B F"], train: Bool[np.ndarray, " B"], together: bool
) -> Float[np.ndarray, "B F"]:
    """Columns with mean 0 and deviation 1 over the training rows, or `together`, divided by the largest deviation.

    Principal components keep their relative size: set to one size, the many small ones drown the others, and the MLP on
    raw hill-climbing trajectories fell from .67 to .53 on dispersion class.
    """
    spread = values[train].std(0, dtype=float)
    spread = np.full_like(spread, spread.max()) if together else spread
    return (values - values[train].mean(0, dtype=float)) / np.where(spread > 0, spread, 1)


def check_values(name: str, values: Float[np.ndarray, "_ _ ..."], n_rows: int, n_encoders: int) -> None:
    """Raise InputError where there is not one row an episode of each encoder seed, or a number is not finite."""
    if len(values) != n_encoders:
        raise InputError(
            f"{name} has {len(values)} encoder seeds, but z_omega has {n_encoders}; embed with the same ones."
        )
    if values.shape[1] != n_rows:
        raise InputError(
            f"{name} has {values.shape[1]} rows, but the data set has {n_rows} episodes; embed this data set again."
        )
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        encoder, row, column = wrong[0]
        raise InputError(
            f"{name} is {values[encoder, row, column]} at row {row}, column {column}"
            + f" of encoder seed {encoder}" * (n_encoders > 1)
            + f", and {len(wrong)} value(s) in all; a probe cannot be fitted on it. Look for a diverged training run, "
            "or for a division by zero."
        )


def flatten(batch: TrajectoryBatch, train: Bool[np.ndarray, " B"], features: FeatureMask) -> Float32[np.ndarray, "B W"]:
    """Observations, actions and mask side by side, normalised per feature over the training rows' real steps.

    A feature is pooled over the agents for which it is real. Discrete actions become one-hot. What lies under either
    mask is zero, so that padding cannot speak.
    """
    obs, actions, mask = (np.asarray(part) for part in batch)
    if actions.ndim == 3:
        highest = int(actions[mask].max())
        acted = (actions[..., None] == np.arange(highest + 1)).astype(np.float32)
    else:
        acted = _normalise(actions, mask, train, features.actions)
    parts = [_normalise(obs, mask, train, features.obs), np.where(mask[..., None], acted, 0), mask[..., None]]
    return np.concatenate(parts, -1, dtype=np.float32).reshape(len(obs), -1)


def _normalise(
    values: Float32[np.ndarray, "B T N F"],
    mask: Bool[np.ndarray, "B T N"],
    train: Bool[np.ndarray, " B"],
    real: Bool[np.ndarray, "N F"],
) -> Float32[np.ndarray, "B T N F"]:
    mean, scale = np.zeros(real.shape[1], np.float32), np.ones(real.shape[1], np.float32)
    for columns, seen in alike_columns(values[train], mask[train], real):
        spread = seen.std(0)
        mean[columns], scale[columns] = seen.mean(0), np.where(spread > 0, spread, 1)
    return np.where(mask[..., None] & real, (values - mean) / scale, 0).astype(np.float32)


def principal(
    flat: Float32[np.ndarray, "B W"], train: Bool[np.ndarray, " B"], width: int, seed: int
) -> Float32[np.ndarray, "B F"]:
    """The first principal components of the training rows, applied to every row."""
    width = min(width, flat.shape[1], int(train.sum()))
    pca = PCA(n_components=width, random_state=seed).fit(flat[train])
    return pca.transform(flat).astype(np.float32)
