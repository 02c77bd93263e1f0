"""A run of several encoder seeds, and all that it can be asked."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.launch.commands import SMALL_DATA, SMALL_TRAINING, files, run


@pytest.mark.slow
def test_encoder_seeds_and_all_that_a_run_can_be_asked(tmp_path: Path) -> None:
    """Two seeds, a checkpoint that nothing sees, every part of a full probing, and how far it carries."""
    assert run("generate", *SMALL_DATA, "name=made", f"runs={tmp_path}") == 0
    where = [f"runs={tmp_path}", "name=two", f"data={tmp_path / 'made' / 'data'}"]
    train = [*SMALL_TRAINING, *where, "train.seeds=2", "train.hold_out=[2]"]
    assert run("train", *train) == 0
    two = tmp_path / "two"
    latents = [
        xr.open_zarr(two / at / "embeddings" / "arrays.zarr", consolidated=False).load() for at in (".", "seed_1")
    ]
    assert latents[0].omega_mean.shape == latents[1].omega_mean.shape == (108, 4)
    assert not np.allclose(latents[0].omega_mean, latents[1].omega_mean)
    # Interrupted when the first seed had stopped and the second had still to train.
    shutil.rmtree(two / "seed_1" / "checkpoints" / "40")
    (two / "usage.json").unlink()
    assert run("train", *train) == 0
    figures = [json.loads((place / "usage.json").read_text()) for place in (two, two / "seed_1")]
    assert len({one["nll_without_latents"] for one in figures}) == 1  # one policy, for it is the data's alone
    again = xr.open_zarr(two / "seed_1" / "embeddings" / "arrays.zarr", consolidated=False)
    np.testing.assert_array_equal(again.omega_mean, latents[1].omega_mean)
    small = ["probe.labels=[return_class]", "probe.probes=[linear]", "probe.permutations=1", "probe.bootstrap=100"]
    assert run("probe", f"run={two}", "probe=full", *small) == 0
    table = pd.read_csv(two / "probes.csv").query("label == 'return_class'").set_index("features")
    assert {"flat_vae", "supervised"} <= set(table.index)
    assert table.n_encoders[["z_omega", "flat_vae", "supervised", "pca"]].tolist() == [2, 2, 2, 1]
    assert table.n_rows["z_omega"] == 3 * 2 * 3  # three test seeds, two checkpoints that are seen, three episodes
    for name in ("label_efficiency", "concepts", "concept_curve"):
        assert set(pd.read_csv(two / f"{name}.csv").label) == {"return_class"}, name
    assert run("generalise", f"run={two}", *small[:2], "probe.bootstrap=100") == 0
    carried = pd.read_csv(two / "generalisation.csv")
    assert list(dict.fromkeys(carried.scored_on)) == ["test groups", "held-out checkpoints"]
    assert carried.query("label == 'gain'").n_rows.tolist() == [18, 9]
    shutil.rmtree(two / "seed_1" / "embeddings")
    before = files(two)
    assert run("probe", f"run={two}", *small) == 2
    assert files(two) == before
