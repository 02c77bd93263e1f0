"""Strict settings for every test: no silent rank promotion, shapes and types checked at each annotated call."""

import tempfile

import jax
import matplotlib
import pytest

matplotlib.use("Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Keep compiled programs for the session: the same tiny run is resumed many times."""
    with tempfile.TemporaryDirectory() as folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
        yield


@pytest.fixture
def quick_compiles():
    """For tests that compile more than they compute."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
