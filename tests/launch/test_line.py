"""The whole line on a tiny experiment, once a domain and kind of action."""

import html
import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import marl_vae
from data_gen.storage.dataset import read_dataset
from data_gen.storage.store import read_group
from data_gen.trajectory import take
from launch.analysed import analysis_of
from tests.launch.commands import SMALL, SMALL_DATA, SMALL_TRAINING, files, run

COLUMNS = (
    "label level features probe metric value ci_low ci_high chance control selectivity zw_minus_this zw_minus_low "
    "zw_minus_high n_groups n_rows note"
).split()
CONFOUNDS = {"split_group", "checkpoint", "return_class_within_checkpoint"}
FEATURES = {"z_omega", "z_alpha", "z_both", "majority", "pca", "raw", "hand", "random_encoder"}


@pytest.fixture(scope="module")
def line(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    assert run("pipeline", *SMALL, "analysis=true", "name=first", f"runs={runs}") == 0
    return runs / "first"


def test_a_run_holds_what_the_readme_says(line: Path) -> None:
    for name in ("config.yaml", "provenance.json", "metrics.jsonl", "probes.csv", "report.html", "usage.json"):
        assert (line / name).stat().st_size > 0, name
    (note,) = json.loads((line / "provenance.json").read_text())
    assert note["seeds"] == {"recording": 0, "train": 0, "probe": 0}
    assert {"jax", "flax", "numpy"} <= note["versions"].keys()
    assert len(list((line / "figures").glob("*.png"))) >= 5
    assert not [path for path in line.rglob("*") if path.name.endswith((".tmp", ".partial"))]


def test_the_probe_table_has_the_columns_and_features_of_the_docs(line: Path) -> None:
    table = pd.read_csv(line / "probes.csv")
    assert list(table.columns[: len(COLUMNS)]) == COLUMNS
    evaluated = table[table.label == "progress"]
    assert set(evaluated.features) == FEATURES


def test_the_report_opens_offline(line: Path) -> None:
    page = (line / "report.html").read_text()
    assert page.count("data:image/png;base64,") >= 5
    assert "http://" not in page and "https://" not in page and "<script" not in page


def test_the_report_shows_the_analysis_and_says_when_it_no_longer_holds(line: Path, tmp_path: Path, capsys) -> None:
    found = json.loads((line / "analysis" / "summary.json").read_text())
    page = html.unescape((line / "report.html").read_text())
    for kind, lines in found["sentences"].items():
        section = page.split(f'<section id="{kind}">')[1].split("</section>")[0]
        assert lines and all(said in section for said in lines)
        assert section.count("data:image/png") == len(found["figures"][kind])
    assert found["figures"]["clusters"][0] == "clusters_z_omega" and found["figures"]["changes"] == ["changes"]
    copy = tmp_path / "first"
    shutil.copytree(line, copy)
    found["embeddings"]["."] = "of another model"
    (copy / "analysis" / "summary.json").write_text(json.dumps(found))
    assert analysis_of(copy)[0] is None and "no longer there" in analysis_of(copy)[1]
    (copy / "analysis" / "summary.json").unlink()
    assert analysis_of(copy)[0] is None and f"launch.explore run={copy}" in analysis_of(copy)[1]
    (copy / "probes.csv").write_text((line / "probes.csv").read_text().splitlines(keepends=True)[0])  # cut to its head
    for stage in ("explore", "intervene"):
        assert run(stage, f"run={copy}") == 2
        assert f"{copy / 'probes.csv'} is damaged (it has a head and no row)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_trained_from_disk_is_the_same_and_goes_on_in_memory(line: Path, tmp_path: Path) -> None:
    shutil.copytree(line / "data", tmp_path / "data")
    again = [*SMALL_TRAINING, f"data={tmp_path / 'data'}", "name=disk", f"runs={tmp_path}"]
    assert run("train", *again, "train.stream=true") == 0
    assert (tmp_path / "data" / "unpacked" / "about.json").is_file()
    disk = tmp_path / "disk"
    assert (disk / "metrics.jsonl").read_bytes() == (line / "metrics.jsonl").read_bytes()
    figures = [json.loads((folder / "usage.json").read_text()) for folder in (disk, line)]
    numbers = [{k: v for k, v in one.items() if isinstance(v, int | float)} for one in figures]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)
    (found, _), (want, _) = (read_group(folder / "embeddings") for folder in (disk, line))
    assert all(np.array_equal(found[name], want[name]) for name in want)
    before = files(disk)
    assert run("train", *again) == 0
    assert files(disk) == before


def test_embeddings_open_with_xarray_and_equal_the_verbs(line: Path) -> None:
    found = read_dataset(line / "data")
    latents = xr.open_zarr(line / "embeddings" / "arrays.zarr", consolidated=False)
    assert latents.omega_mean.dims == ("episode", "joint_latent")
    assert latents.alpha_mean.dims == ("episode", "agent", "local_latent")
    np.testing.assert_array_equal(latents.row_episode, found.rows.episode)
    model = marl_vae.load(line)
    some = take(found.batch, np.array([5, 2, 30], np.int32))
    embedded = model.embed(some)
    np.testing.assert_allclose(embedded.omega_mean, latents.omega_mean[[5, 2, 30]], atol=1e-5)
    np.testing.assert_allclose(embedded.alpha_std, latents.alpha_std[[5, 2, 30]], atol=1e-5)
    assert model.elbo(some, key=jax.random.key(0)).recon.shape == (3,)
    assert model.act(some.obs[:, 0], embedded.alpha_mean).shape == (3, 3, 2)


def test_the_training_file_again_has_the_same_embeddings_bit_for_bit(line: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(line, tmp_path / "first")
    assert run("embed", f"run={tmp_path / 'first'}", f"data={line / 'data'}", "name=again") == 0
    assert "Compared with the episodes it was fitted on" in capsys.readouterr().out
    before, after = (files(place / "embeddings" / "arrays.zarr") for place in (line, tmp_path / "first/embedded/again"))
    assert {k: v for k, v in before.items() if k != "zarr.json"} == {k: v for k, v in after.items() if k != "zarr.json"}


def test_the_same_command_again_changes_no_file(line: Path) -> None:
    before = files(line)
    assert run("pipeline", *SMALL, "analysis=true", "name=first", f"runs={line.parent}") == 0
    assert files(line) == before


def test_another_config_of_the_same_name_is_refused(line: Path, capsys) -> None:
    before = files(line)
    assert run("pipeline", *SMALL, "name=first", f"runs={line.parent}", "model.hidden=7") == 2
    assert "model.hidden is 16 there and 7 here" in capsys.readouterr().err
    assert files(line) == before


@pytest.mark.slow
def test_probing_anew_does_not_lock_the_run(line: Path, tmp_path: Path) -> None:
    shutil.copytree(line, tmp_path / "first")
    shutil.copytree(line / "embeddings", tmp_path / "first" / "seed_old" / "embeddings")  # of no seed of the run
    small = ["probe.labels=[progress]", "probe.probes=[linear]", "probe.efficiency=[2]", "probe.encoders=3"]
    assert run("probe", f"run={tmp_path / 'first'}", *small) == 0
    table = pd.read_csv(tmp_path / "first" / "probes.csv")
    assert set(table.label) == {"progress", *CONFOUNDS}
    one = table[(table.label == "progress") & (table.probe == "linear")].set_index("features")
    assert set(one.n_encoders) == {1} and "one encoder" in one.note.z_omega
    few = pd.read_csv(tmp_path / "first" / "label_efficiency.csv")
    assert few.n_train_groups.tolist() == [2, 6] * 4
    whole = few[few.n_train_groups == 6].set_index("features").value
    np.testing.assert_allclose(whole, one.value[whole.index])
    assert run("pipeline", *SMALL, "name=first", f"runs={tmp_path}") == 0
    assert (tmp_path / "first" / "probes.csv").read_bytes() == (line / "probes.csv").read_bytes()
    assert not (tmp_path / "first" / "label_efficiency.csv").exists()


def test_verbs_say_what_does_not_fit(line: Path) -> None:
    found, model = read_dataset(line / "data"), marl_vae.load(line)
    some = take(found.batch, np.arange(4, dtype=np.int32))
    z = model.embed(some).alpha_mean
    for obs, local, said in (
        (some.obs, z, "one step of every agent"),
        (some.obs[:, 0], z[:2], "z must have shape"),
        (some.obs[:, 0], z[..., :1], "z must have shape"),
        (some.obs[:, 0] * np.nan, z, "not finite"),
    ):
        with pytest.raises(ValueError, match=said):
            model.act(obs, local)
    with pytest.raises(ValueError, match="takes a TrajectoryBatch"):
        model._check(found)  # the tests' type checker stands before the public verb
    with pytest.raises(ValueError, match="at least one"):
        model.elbo(some, key=jax.random.key(0), samples=0)


def test_a_checkpoint_with_other_values_than_were_saved_is_refused(line: Path, tmp_path: Path) -> None:
    """Values and checksum part; the checksum's file is the one that can change without a failed read."""
    shutil.copytree(line / "checkpoints", tmp_path / "checkpoints")
    marl_vae.load(tmp_path)
    step = max(tmp_path.glob("checkpoints/[0-9]*"), key=lambda path: int(path.name))
    (saved,) = (file for file in (step / "digest").rglob("*") if file.is_file() and '"best"' in file.read_text())
    digests = json.loads(saved.read_text())
    saved.write_text(json.dumps(digests | {"best": digests["best"][::-1]}))
    with pytest.raises(ValueError, match="does not have the checksum"):
        marl_vae.load(tmp_path)


@pytest.mark.slow
def test_stages_one_by_one_give_the_same_as_the_pipeline(line: Path, tmp_path: Path) -> None:
    where = [f"runs={tmp_path}", "name=first"]
    assert run("generate", "only=[1]", *SMALL_DATA, *where) == 0
    assert run("generate", *SMALL_DATA, *where) == 0
    options = ["model.joint_width=4", "model.local_width=2", "model.hidden=16", "model.decoder_hidden=16"]
    steps = ["train.steps=40", "train.batch=32", "train.steps_per_dispatch=10", "train.eval_every=10"]
    assert run("train", *options, *steps, *where) == 0
    probing = ["probe.labels=[return_class,progress]", "probe.probes=[linear]", "probe.bootstrap=200"]
    assert run("probe", f"run={tmp_path / 'first'}", *probing, "probe.permutations=1") == 0
    for name in ("metrics.jsonl", "probes.csv", "usage.json"):
        assert (tmp_path / "first" / name).read_bytes() == (line / name).read_bytes(), name


def test_a_label_that_is_not_there_is_named_before_training(line: Path, tmp_path: Path, capsys) -> None:
    wrong = ["probe.labels=[retrun_class]", f"data={line / 'data'}", f"runs={tmp_path}"]
    assert run("pipeline", *SMALL, *wrong) == 2
    assert "return_class" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    before = files(line)
    assert run("probe", f"run={line}", "probe.labels=[retrun_class]") == 2
    assert files(line) == before


@pytest.mark.parametrize(
    "choice",
    [
        pytest.param(["domain=coordination", "probe.labels=[progress]"], id="meet", marks=pytest.mark.slow),
        pytest.param(["domain.actions=discrete"], id="climb", marks=pytest.mark.slow),
    ],
)
def test_discrete_actions_go_through_the_whole_line(choice: list[str], tmp_path: Path) -> None:
    assert run("pipeline", *SMALL, *choice, "name=it", f"runs={tmp_path}") == 0
    found = read_dataset(tmp_path / "it" / "data")
    assert found.action.kind == "discrete"
    model = marl_vae.load(tmp_path / "it")
    some = take(found.batch, np.arange(4, dtype=np.int32))
    chosen = np.asarray(model.act(some.obs[:, 0], model.embed(some).alpha_mean, key=jax.random.key(0)))
    assert chosen.shape == some.actions[:, 0].shape and chosen.dtype == np.int32
    assert chosen.min() >= 0 and chosen.max() < found.action.size


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["model.form=flat", "model.form=autoencoder", "model.decoder=recurrent"])
def test_other_models_go_through_the_whole_line(line: Path, choice: str, tmp_path: Path) -> None:
    where = [f"data={line / 'data'}", "name=it", f"runs={tmp_path}"]
    for _ in range(2):  # the same command again goes on, and has nothing to do
        assert run("pipeline", *SMALL, choice, "model.predict_state=0.1", *where) == 0
    used = json.loads((tmp_path / "it" / "usage.json").read_text())
    assert (used["iwae_100"] is None) == ("autoencoder" in choice) and (used["kl_alpha"] is None) == ("form" in choice)
    page = (tmp_path / "it" / "report.html").read_text()
    assert ("undefined: a" in page) == ("form" in choice)
    model, found = marl_vae.load(tmp_path / "it"), read_dataset(line / "data")
    some = take(found.batch, np.arange(4, dtype=np.int32))
    actions, _ = model.step(model.start(4), some.obs[:, 0], model.embed(some).alpha_mean)
    assert actions.shape == (4, 3, 2)


def test_another_data_set_is_refused_by_a_trained_model(line: Path, tmp_path: Path) -> None:
    """Another number of features: the message names both, and the run's files stay."""
    assert run("generate", *SMALL_DATA, "domain=coordination", "name=other", f"runs={tmp_path}") == 0
    model, other = marl_vae.load(line), read_dataset(tmp_path / "other" / "data")
    with pytest.raises(ValueError, match="3 agents with 6 observation features; this data set has 2 agents with"):
        model.embed(other.batch)
    shutil.copytree(line, tmp_path / "first")
    shutil.rmtree(tmp_path / "first" / "data")
    shutil.move(tmp_path / "other" / "data", tmp_path / "first" / "data")
    assert run("probe", f"run={tmp_path / 'first'}") == 2


def test_interventions_stand_beside_the_probes(line: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(line, tmp_path / "first")
    small = [f"run={tmp_path / 'first'}", "intervention.pairs=6", "intervention.repeats=1"]
    assert run("intervene", *small, "intervention.labels=[return_class]") == 0
    told = capsys.readouterr().out
    assert "Decodable, and used by the model" in told and "return_class: swapping z_omega has an effect of" in told
    effects = pd.read_csv(tmp_path / "first" / "interventions.csv")
    assert list(effects.kind) == ["swap", "swap_local", "interpolate", "direction"]
    joined = pd.read_csv(tmp_path / "first" / "decodable_and_used.csv")
    probes = pd.read_csv(line / "probes.csv")
    linear = probes[(probes.label == "return_class") & (probes.features == "z_omega")].iloc[0]
    assert np.isclose(joined.decodable[0], linear.value - linear.chance) and joined.used[0] == effects.effect[0]
    assert (tmp_path / "first" / "interventions.png").stat().st_size > 1000
    before = files(tmp_path / "first")
    assert run("intervene", *small, "intervention.labels=[return_class]") == 0
    assert files(tmp_path / "first") == before
    for wrong, said in (
        ("intervention.labels=[progress]", "no label of its training run) has no label 'progress'"),
        ("intervention.labels=[dispersion_class]", "probes.csv has no linear probe of z_omega for dispersion_class"),
        ("intervention.checkpoints=[7]", "no checkpoint 7"),
        ("intervention.without=[blue]", "no label has a class 'blue'"),
        ("intervention.pairs=0", "intervention.pairs is 0"),
    ):
        assert run("intervene", *small[:1], wrong) == 2
        assert said in capsys.readouterr().err
    (tmp_path / "first" / "probes.csv").unlink()
    assert run("intervene", *small) == 2 and "Run launch.probe" in capsys.readouterr().err
    shutil.rmtree(tmp_path / "first" / "embeddings")
    assert run("intervene", *small) == 2 and "embeddings" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_there_cannot_be_held_out(line: Path, tmp_path: Path, capsys) -> None:
    assert run("generalise", f"run={line}") == 2
    assert "hold_out" in capsys.readouterr().err
    assert run("pipeline", *SMALL, f"runs={tmp_path}", "train.hold_out=[7]") == 2
    assert "no checkpoint 7; its checkpoints are [0, 1, 2]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
