"""Strict settings for every test: no silent rank promotion, shapes and types checked at each annotated call."""

import jax
import matplotlib

matplotlib.use("Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")
