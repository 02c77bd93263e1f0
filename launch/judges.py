"""What a run's models say of any episodes: latents, bound, and what a policy without latents says."""

from functools import partial
from pathlib import Path

import jax
import numpy as np

from data_gen.trajectory import SPLITS, Dataset, InputError, take
from launch.encoders import folders_of
from launch.progress import progress
from marl_vae import load, load_untrained
from marl_vae.batching import in_pieces
from marl_vae.bound import bound
from marl_vae.diagnostics.latent_free import fit_without_latents
from marl_vae.model import AUTOENCODER
from probes.features import Encoded
from probes.table.generalisation import Evidence


class Judges:
    """The run's encoders, untrained ones, and a policy without latents."""

    def __init__(self, run: Path, seen: Dataset, seed: int):
        places = folders_of(run)
        self._trained = [load(place) for place in places]
        self._untrained = [load_untrained(place, seed=seed + i) for i, place in enumerate(places)]
        if self._trained[0].config.form == AUTOENCODER:
            raise InputError(f"{run} is an autoencoder (model.form): it has no bound to compare elsewhere.")
        parts = [take(seen.batch, seen.rows_of(name)) for name in SPLITS[:2]]
        with progress("policy without latents") as tell:
            first = self._trained[0]
            self._free = fit_without_latents(first.config, first.dims, first.scale, *parts, seed=seed, report=tell)
        self._key = jax.random.key(seed)

    def evidence(self, found: Dataset) -> Evidence:
        """What they make of the episodes."""
        latents = [model.embed(found.batch) for model in self._trained]
        return Evidence(
            batch=found.batch,
            rows=found.rows,
            split=found.split,
            labels=found.labels,
            hand=found.hand,
            encoded=Encoded(
                z_omega=np.stack([one.omega_mean for one in latents]),
                z_alpha=np.stack([one.alpha_mean for one in latents]),
                random_encoder=np.stack([model.embed(found.batch).omega_mean for model in self._untrained]),
            ),
            bound=np.stack([bound(model.elbo(found.batch, key=self._key), 1.0, 1.0) for model in self._trained]),
            latent_free=in_pieces(partial(self._free.log_likelihood, self._free.params), found.batch),
        )
