"""What a label is worth to the policy, and so to the bound: how much likelier actions are once the label is told.

Letters: B episodes, K classes (or 1 for a number), T time, N agents, Do observation.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float, Float32

from data_gen.trajectory import ActionSpec, FeatureMask, TrajectoryBatch
from marl_vae.batching import in_pieces
from marl_vae.diagnostics.latent_free import fit_without_latents
from marl_vae.model import Dims, Model
from marl_vae.normalise import fit_normaliser


def told_log_likelihood(
    config: Model,
    action: ActionSpec,
    features: FeatureMask,
    parts: list[TrajectoryBatch],
    told: list[Float32[np.ndarray, "_ K"]],
    *,
    seed: int,
    report: Callable[[float], None],
) -> Float[np.ndarray, " B"]:
    """log π(a | o, y) of each test episode in nats, summed over its steps and agents.

    `parts` are the training, validation and test episodes and `told` the label y of each, one-hot or a number; of width
    0 it gives log π(a | o). The policy is the model's decoder without latents, which sees y as further observations. A
    latent that holds y alone can raise the reconstruction by no more than the difference of the two, and costs β times
    y's entropy.
    """
    wider = [with_told(batch, values) for batch, values in zip(parts, told, strict=True)]
    agents, width = features.obs.shape[0], told[0].shape[1]
    real = features._replace(obs=np.concatenate([features.obs, np.ones((agents, width), bool)], 1))
    scale = fit_normaliser(wider[0], action, real)
    dims = Dims(agents=agents, obs=real.obs.shape[1], action=action)
    policy = fit_without_latents(config, dims, scale, wider[0], wider[1], seed=seed, report=report)
    return np.asarray(in_pieces(partial(policy.log_likelihood, policy.params), wider[2]), float)


def with_told(batch: TrajectoryBatch, values: Float32[np.ndarray, "B K"]) -> TrajectoryBatch:
    """The batch with the values as observations of every agent at every step."""
    obs = np.asarray(batch.obs)
    wide = np.broadcast_to(values[:, None, None], (*obs.shape[:3], values.shape[1]))
    return batch._replace(obs=np.concatenate([obs, wide], -1, dtype=np.float32))
