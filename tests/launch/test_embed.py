"""A trained run on other data sets, from the command: the same latents, what differs, and what is refused."""

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import yaml
from flax import nnx

from data_gen.storage.dataset import digest, read_dataset, write_shard
from data_gen.storage.shard import Shard
from data_gen.storage.store import read_group, write_group
from data_gen.trajectory import ActionSpec, Outcomes, TrajectoryBatch, take
from marl_vae.checkpoint import Checkpoints, Description, TrainState, write_description
from marl_vae.embed import TrainedModel, as_arrays
from marl_vae.model import HierarchicalVAE, Model, dims_of
from marl_vae.normalise import fit_normaliser
from marl_vae.task import Train
from marl_vae.train import folders
from tests.builders import T
from tests.data_gen.test_dataset import DISCRETE, N_SHARDS, tiny_shard
from tests.launch.commands import files, run

LATENTS = ("omega_mean", "omega_std", "alpha_mean", "alpha_std")
NAMES = {"obs_names": ["x", "y", "vx", "vy"], "rate": 10.0}
ORDER = [2, 0, 1]
MODEL = Model(joint_width=3, local_width=2, hidden=8, decoder_hidden=8, team="pool", agent_index=False)


def write(root: Path, change: Callable[[Shard], Shard] = lambda shard: shard, action: ActionSpec | None = None) -> Path:
    """The data set that the run was trained on, changed."""
    for index in range(N_SHARDS):
        shard = tiny_shard(index, action, **NAMES) if action else tiny_shard(index, **NAMES)
        write_shard(root, index, N_SHARDS, change(shard), {})
    return root


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of two encoder seeds that tell no agents apart, as training leaves it; the weights are random ones."""
    folder = tmp_path_factory.mktemp("runs") / "it"
    data = write(folder / "data")
    found, config = read_dataset(data), Train(seeds=2)
    seen = take(found.batch, found.rows_of("train"))
    for place, alone in zip(folders(folder, config), config.alone(), strict=True):
        vae = HierarchicalVAE(MODEL, dims_of(found), rngs=nnx.Rngs(alone.seed))
        for head in (vae.joint, vae.local):  # fresh ones are small, and every input has to matter
            head.out.kernel[...] = 0.5 * jax.random.normal(jax.random.key(alone.seed), head.out.kernel[...].shape)
        write_description(place / "checkpoints", Description(MODEL, dims_of(found), {}, digest(data)))
        none, scale = jnp.zeros(1), fit_normaliser(seen, found.action, found.features)
        state = TrainState(*[none] * len(TrainState._fields))._replace(step=jnp.array(1), best=nnx.split(vae)[1])
        Checkpoints(place / "checkpoints").save(state, scale)
        arrays = as_arrays(TrainedModel(vae, scale, "a model").embed(found.batch), found.rows, found.split)
        write_group(place / "embeddings", arrays, {"chosen": {"step": 1, "data": digest(data)}})
    (folder / "config.yaml").write_text(yaml.safe_dump({"train": asdict(config)}))
    return folder


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    shutil.copytree(trained, tmp_path / "it")
    return tmp_path / "it"


def latents(folder: Path, seed: str = ".") -> dict[str, np.ndarray]:
    found, _ = read_group(folder / seed / "embeddings")
    return found


def padded(shard: Shard) -> Shard:
    """Three more steps at the end, and two before the first."""

    def longer(values: np.ndarray) -> np.ndarray:
        return np.pad(values, [(0, 0), (2, 3)] + [(0, 0)] * (values.ndim - 2))

    batch, outcomes = (type(part)(*map(longer, part)) for part in (shard.batch, shard.outcomes))
    return shard._replace(batch=batch, outcomes=outcomes)


def turned(shard: Shard) -> Shard:
    """The agents in another order."""
    batch = TrajectoryBatch(*(field[:, :, ORDER] for field in shard.batch))
    outcomes = Outcomes(shard.outcomes.rewards[:, :, ORDER], *shard.outcomes[1:])
    hills = shard.labels.values | {"hill": shard.labels.values["hill"][:, ORDER]}
    return shard._replace(batch=batch, outcomes=outcomes, labels=shard.labels._replace(values=hills))


def faster(shard: Shard) -> Shard:
    """Another rate, one feature with another name, and far away."""
    obs = shard.batch.obs + np.array([0, 0, 9, 0], np.float32)
    meta = shard.meta | {"rate": 25.0, "obs_names": ["x", "y", "speed", "vy"]}
    return shard._replace(batch=shard.batch._replace(obs=obs), meta=meta)


def test_the_training_file_again_has_the_same_latents_bit_for_bit(copied: Path, capsys) -> None:
    assert run("embed", f"run={copied}") == 0
    said = capsys.readouterr().out
    assert "Compared with the episodes it was fitted on" in said and "\n* " not in said
    into = copied / "embedded" / "it"
    for seed in (".", "seed_1"):
        before, after = latents(copied, seed), latents(into, seed)
        assert before.keys() == after.keys()
        assert all(before[name].tobytes() == after[name].tobytes() for name in before)
    assert not np.array_equal(latents(into)["omega_mean"], latents(into, "seed_1")["omega_mean"])
    assert (into / "summary.md").read_text() in said
    files_before = files(copied)
    assert run("embed", f"run={copied}") == 0
    assert files(copied) == files_before


def test_more_padding_and_another_order_of_agents_change_no_latent(copied: Path, tmp_path: Path) -> None:
    """From store to store, one trained model; what is compared stays the same too."""
    for change in (padded, turned):
        data = write(tmp_path / change.__name__ / "data", change)
        assert run("embed", f"run={copied}", f"data={data}") == 0
    longer, other = (copied / "embedded" / name for name in ("padded", "turned"))
    assert read_dataset(tmp_path / "padded" / "data").batch.mask.shape[1] == T + 5
    for seed in (".", "seed_1"):
        before, after, permuted = (latents(folder, seed) for folder in (copied, longer, other))
        for name in LATENTS:
            order = ORDER if name.startswith("alpha") else slice(None)
            np.testing.assert_allclose(after[name], before[name], atol=1e-5)
            np.testing.assert_allclose(permuted[name], before[name][:, order], atol=1e-5)
        assert np.abs(before["alpha_mean"] - before["alpha_mean"][:, ORDER]).max() > 1e-3
    assert run("embed", f"run={copied}") == 0
    tables = [pd.read_csv(copied / "embedded" / name / "differences.csv") for name in ("it", "padded", "turned")]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])


def test_what_differs_is_named(copied: Path, tmp_path: Path, capsys) -> None:
    assert run("embed", f"run={copied}", f"data={write(tmp_path / 'far', faster)}", "name=far_away") == 0
    said = capsys.readouterr().out
    assert "* rate: 25.0; in training 10.0" in said and "* feature 2 is named 'speed'; in training 'vx'" in said
    table = pd.read_csv(copied / "embedded" / "far_away" / "differences.csv", keep_default_na=False)
    (row,) = table[table["column"] == "speed"].to_dict("records")
    assert "training deviations away" in row["differs"] and "outside the training's" in row["differs"]
    whole, new = read_dataset(copied / "data"), read_dataset(tmp_path / "far")
    fitted_on = whole.batch.obs[whole.split == 0][whole.batch.mask[whole.split == 0]][:, 2]
    values = new.batch.obs[new.batch.mask][:, 2]
    wanted = (values.mean() - fitted_on.mean()) / fitted_on.std()
    assert np.isclose(float(row["mean_difference"]), wanted, rtol=1e-5) and row["agent"] == "all"
    assert np.isclose(float(row["outside"]), ((values < fitted_on.min()) | (values > fitted_on.max())).mean())
    assert f"| observation | speed | all | {fitted_on.mean():.3g} | {values.mean():.3g} | mean" in said


def test_without_the_training_data_the_models_own_scales_are_compared(copied: Path, tmp_path: Path, capsys) -> None:
    data = write(tmp_path / "far", faster)
    shutil.move(copied / "data", tmp_path / "gone")
    assert run("embed", f"run={copied}", f"data={data}") == 0
    said = capsys.readouterr().out
    assert "The training data cannot be read" in said and f"{copied / 'data'} holds no data set" in said
    table = pd.read_csv(copied / "embedded" / "far" / "differences.csv")
    assert set(table.kind) == {"observation", "action"} and table.outside.isna().all()
    assert "training deviations away" in table.set_index("column").differs["speed"]
    other = write(copied / "data", faster)
    assert run("embed", f"run={copied}", f"data={other}", "name=mine") == 0
    assert "is not what the run was trained on" in capsys.readouterr().out


def one_group(shard: Shard) -> Shard:
    return shard._replace(rows=shard.rows._replace(group=np.zeros_like(shard.rows.group)))


def test_one_group_is_enough_to_embed(copied: Path, tmp_path: Path) -> None:
    assert run("embed", f"run={copied}", f"data={write(tmp_path / 'one' / 'data', one_group)}") == 0
    before, after = latents(copied), latents(copied / "embedded" / "one")
    assert all(before[name].tobytes() == after[name].tobytes() for name in LATENTS)
    assert set(after["split"].tolist()) == {2}


def far(origin: list[float]) -> Callable[[Shard], Shard]:
    return lambda shard: shard._replace(meta=shard.meta | {"frame": "world", "origin": origin})


def narrow(shard: Shard) -> Shard:
    meta = shard.meta | {"obs_names": NAMES["obs_names"][:3]}
    return shard._replace(batch=shard.batch._replace(obs=shard.batch.obs[..., :3]), meta=meta)


def shuffled(shard: Shard) -> Shard:
    return shard._replace(meta=shard.meta | {"obs_names": ["y", "x", "vx", "vy"]})


def test_what_the_model_cannot_read_is_refused_before_anything_is_written(copied: Path, tmp_path: Path, capsys) -> None:
    assert run("embed", f"run={copied}", f"data={write(tmp_path / 'far', faster)}", "name=there") == 0
    capsys.readouterr()
    before = files(copied)
    for data, said in (
        (write(tmp_path / "narrow", narrow), "has 3 observation features, and the model was trained on 4"),
        (write(tmp_path / "shuffled", shuffled), "the feature 'y' is number 0 (from 0), and was number 1"),
        (write(tmp_path / "away", far([4e5, 0.0])), "measured from [400000.0, 0.0], and were from 0 in the training"),
        (write(tmp_path / "discrete", action=DISCRETE), "has discrete actions of 5 choices"),
        (write(tmp_path / "padded", padded), f"holds the embeddings of {tmp_path / 'far'}"),
        (tmp_path / "nothing", "holds no data set"),
    ):
        assert run("embed", f"run={copied}", f"data={data}", "name=there") == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and said in error, error
    assert run("embed", f"run={copied}", "name=a/b") == 2
    assert run("embed", f"run={tmp_path}", f"data={copied / 'data'}") == 2
    assert "no config.yaml" in capsys.readouterr().err
    shutil.rmtree(copied / "seed_1" / "embeddings")
    assert run("embed", f"run={copied}") == 2 and "its training has not ended" in capsys.readouterr().err
    assert before.items() >= files(copied).items()
