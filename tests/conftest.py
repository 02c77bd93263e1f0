"""Strict settings for every test: no silent rank promotion, shapes and types checked at each annotated call."""

import os
import tempfile

import jax
import matplotlib
import pytest

matplotlib.use("Agg")
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tests compile more than they compute: without most of XLA's optimisations they take little over half the time.
QUICK = "jax_disable_most_optimizations"
jax.config.update(QUICK, True)
os.environ[QUICK.upper()] = "1"  # for the processes that tests start, whose results are compared bit for bit


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Keep compiled programs for the session and the processes it starts: the same tiny run is resumed many times."""
    with tempfile.TemporaryDirectory() as folder:
        for name, value in (
            ("jax_compilation_cache_dir", folder),
            ("jax_persistent_cache_min_compile_time_secs", 0.2),
        ):
            jax.config.update(name, value)
            os.environ[name.upper()] = str(value)
        yield


@pytest.fixture
def optimised():
    """For tests that compute more than they compile."""
    jax.config.update(QUICK, False)
    yield
    jax.config.update(QUICK, True)
