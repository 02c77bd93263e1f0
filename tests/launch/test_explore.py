"""`launch.explore` on a run's folder: whose embeddings it reads, what it writes and what it refuses."""

import errno
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from data_gen.storage import store
from data_gen.storage.dataset import digest, read_dataset, write_shard
from data_gen.storage.store import write_group
from data_gen.trajectory import InputError
from launch import analysis, comparing, explore
from launch import films as films_module
from launch.analysed import analysis_files, analysis_of
from launch.log import Logging, logging_to
from launch.summary import summary_of
from tests.builders import B, N, T
from tests.data_gen.test_dataset import tiny_shard
from tests.launch.commands import files, run
from tests.launch.offline_file import sessions_of

NQ, SEEDS, ZW, ZA = 15, 2, 4, 3  # NQ is of Ant
N_SHARDS = 3
QUICK = ["clusters.bootstrap=2", "clusters.jobs=1", "coupling.permutations=99", "changes.permutations=99"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two encoder seeds on bodies whose states were stored; its latents tell the seeds apart."""
    root = tmp_path_factory.mktemp("runs") / "body"
    for index in range(N_SHARDS):
        shard = tiny_shard(index, domain={"name": "mujoco", "scenario": "Ant 4x2"})
        shard.meta.pop("position")
        shard.batch.mask[1] = False  # an episode that cannot be filmed
        states = {"qpos": np.zeros((B, T, NQ), np.float32)}
        write_shard(root / "data", index, N_SHARDS, shard._replace(states=states), {})
    write_config(root, None)
    for seed, place in enumerate([root, root / "seed_1"]):
        embed(place, seed, digest(root / "data"))
    return root


def write_config(root: Path, data: str | None) -> None:
    config = {"data": data, "train": {"seed": 0, "seeds": SEEDS, "hold_out": [2]}}
    (root / "config.yaml").write_text(yaml.safe_dump(config))


def embed(place: Path, seed: int, data: str, lost: bool = False) -> None:
    rng, n = np.random.default_rng(seed), N_SHARDS * B
    two = 3 * (np.arange(n) % 2)[:, None]  # clusters
    arrays = {
        "omega_mean": (("episode", "z"), (0.3 * rng.normal(size=(n, ZW)) + two + 100 * seed).astype(np.float32)),
        "alpha_mean": (("episode", "agent", "a"), rng.normal(size=(n, N, ZA)).astype(np.float32)),
    }
    if lost:
        arrays["omega_mean"][1][:, 1] = np.nan
    for name in ("omega", "alpha"):
        axes, means = arrays[f"{name}_mean"]
        arrays[f"{name}_std"] = (axes, np.full_like(means, 0.3))
    write_group(place / "embeddings", arrays, {"chosen": {"data": data}}, replace=True)


def about(folder: Path) -> dict:
    text = (folder / "explorer.html").read_text()
    return json.loads(re.findall(r'id="about">(.*?)</script>', text)[0])


def test_it_shows_the_encoder_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(films_module, "film", lambda *_: pytest.fail("no film was asked for"))
    for seed in range(SEEDS):
        assert run("explore", f"run={folder}", f"encoder={seed}", "films=0", "analysis=false") == 0
        found = about(folder)
        assert found["episodes"] == N_SHARDS * B and found["films"] is None and found["name"] == "body"
        first = found["views"][0]["axes"][ZW]  # after as many principal components
        assert abs(first["low"] - 100 * seed) < 5 and abs(first["high"] - 100 * seed) < 5
        assert first["name"] == "dim 1" and len(found["views"]) == 1 + N
        assert [one["name"] for one in found["variables"][2]["classes"]][3:] == ["held-out checkpoint"]


def test_the_analysis_is_written_and_its_clusters_can_be_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    read, check = Counter(), store._check_files
    monkeypatch.setattr(store, "_check_files", lambda path, *rest: (read.update([path]), check(path, *rest))[1])
    assert run("explore", f"run={folder}", "films=0", *QUICK) == 0
    places = (folder / "embeddings", folder / "seed_1" / "embeddings")
    assert [read[place] for place in places] == [1, 1]  # for the analysis and the page together
    said = capsys.readouterr().out
    made = {file.name for file in (folder / "analysis").iterdir()}
    assert {"clusters_summary.csv", "coupling_pairs.csv", "changes_series.csv", "changes.png", "coupling.png"} <= made
    ids = pd.read_csv(folder / "analysis" / "clusters_ids.csv")
    assert len(ids) == N_SHARDS * B and "z_omega:mixture" in ids
    assert {"z_omega, mixture", "z_alpha_0, hdbscan"} <= {one["name"] for one in about(folder)["variables"]}
    assert "not evaluated: 3 checkpoints" in said  # change points need four
    before = (folder / "analysis" / "summary.json").read_bytes()
    assert run("explore", f"run={folder}", "films=0", *QUICK, "clusters.jobs=2") == 0  # changes no result
    assert "not evaluated" not in capsys.readouterr().out  # what was found is not looked for again
    assert (folder / "analysis" / "summary.json").read_bytes() == before
    (folder / "analysis" / "clusters_old.csv").touch()
    assert run("explore", f"run={folder}", "films=0", "encoder=1", "logger=wandb", *QUICK) == 0
    after = json.loads((folder / "analysis" / "summary.json").read_text())
    assert after["encoder"] == "seed_1" and after["settings"]["clusters"]["bootstrap"] == 2
    assert (
        after["settings"] == json.loads(before)["settings"] and after["embeddings"] == json.loads(before)["embeddings"]
    )
    assert not (folder / "analysis" / "clusters_old.csv").exists()
    assert analysis_of(folder)[0].of == "the encoder in seed_1"
    assert summary_of(folder)["clusters/z_omega/n_clusters"] == ids_of(folder, "z_omega:mixture")
    (log,) = sessions_of(folder)
    (row,) = log.history
    table = json.loads((log.folder / row["analysis/clusters_ids"]["path"]).read_text())
    pd.testing.assert_frame_equal(
        pd.DataFrame(table["data"], columns=table["columns"]),
        pd.read_csv(folder / "analysis" / "clusters_ids.csv"),
        check_dtype=False,
    )
    assert {"figures/clusters_z_omega", "figures/coupling", "figures/changes", "explorer"} <= row.keys()
    assert log.summary["clusters/z_omega/n_clusters"] == ids_of(folder, "z_omega:mixture")
    (folder / "analysis" / "summary.json").unlink()  # as a job leaves it that is killed while it analyses
    with logging_to(Logging(kind="wandb"), folder, "killed"):
        pass
    assert not any("analysis" in name for name in json.loads((folder / "wandb.json").read_text())["content"])
    assert sessions_of(folder)[-1].summary["clusters/z_omega/n_clusters"] is None
    assert analysis_files(folder) == [] and (folder / "analysis" / "clusters_summary.csv").exists()


@pytest.mark.slow
def test_a_flat_vae_that_probing_trained_is_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latents = np.random.default_rng(5).normal(size=(1, N_SHARDS * B, 2))
    monkeypatch.setattr(analysis, "flat_vae", lambda *_: latents)
    partitions = []
    for _ in range(2):  # as long as there is none, and when it lies there
        assert run("explore", f"run={folder}", "films=0", *QUICK) == 0
        table = pd.read_csv(folder / "analysis" / "clusters_ictd.csv")
        partitions.append({level: set(own.partition) for level, own in table.groupby("level")})
        (folder / "flat").mkdir(exist_ok=True)
    (folder / "flat").rmdir()
    added = {level: after - partitions[0][level] for level, after in partitions[1].items()}
    assert added == {"z_omega": {"k-means, flat VAE"}}


def test_an_analysis_that_is_not_whole_is_looked_for_again(folder: Path) -> None:
    assert run("explore", f"run={folder}", "films=0", *QUICK) == 0
    whole, place = files(folder / "analysis"), folder / "analysis"
    for seed, said in ((7, "no longer there"), (0, "")):  # other numbers of the same model, and the old ones again
        embed(folder, seed, digest(folder / "data"))
        assert analysis_of(folder)[1].count(said) and bool(analysis_files(folder)) is (seed == 0)
    for name, left in (
        ("coupling_pairs.csv", b""),
        ("changes.png", whole["changes.png"][:100]),
        ("changes.png", None),
        ("summary.json", whole["summary.json"][:100]),
        ("summary.json", b"[1]"),
        ("summary.json", b"{}"),
        ("clusters_ids.csv", whole["clusters_ids.csv"][:200]),
        ("clusters_ids.csv", None),
    ):
        assert analysis_of(folder)[0] is not None
        (place / name).unlink() if left is None else (place / name).write_bytes(left)
        assert analysis_of(folder)[0] is None and "is not whole" in analysis_of(folder)[1], name
        if name != "clusters_ids.csv" or left:
            (place / name).write_bytes(whole[name])
    assert run("explore", f"run={folder}", "films=0", *QUICK) == 0
    assert files(place).keys() == whole.keys() and analysis_of(folder)[0] is not None
    assert files(place)["clusters_ids.csv"] == whole["clusters_ids.csv"]


def test_a_report_that_is_older_than_the_analysis_is_written_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    written = []
    monkeypatch.setattr(explore, "read_probes", lambda _: ("a table", None))
    monkeypatch.setattr(explore, "report", lambda run, *_: written.append((run / "report.html").touch()))
    assert run("explore", f"run={folder}", "films=0", *QUICK) == 0 and not written  # nothing was probed
    report, made = folder / "report.html", (folder / "analysis" / "summary.json").stat().st_mtime_ns
    report.touch()
    for name in ("usage.json", "metrics.jsonl"):  # what the report shows is asked for before the analysis
        assert run("explore", f"run={folder}", "films=0", "encoder=1", *QUICK) == 2
        assert f"{folder / name} is damaged (it is missing)" in capsys.readouterr().err
        (folder / name).touch()
    assert (folder / "analysis" / "summary.json").stat().st_mtime_ns == made
    for shift, again in ((-1, 1), (1, 1)):  # killed between the two; not killed
        os.utime(report, ns=(made, made + shift))
        assert run("explore", f"run={folder}", "films=0", *QUICK) == 0 and len(written) == again
    for name in ("report.html", "usage.json", "metrics.jsonl"):
        (folder / name).unlink()


def ids_of(folder: Path, name: str) -> int:
    """How many clusters an analysis has."""
    ids = pd.read_csv(folder / "analysis" / "clusters_ids.csv")[name]
    return ids[ids >= 0].nunique()


def test_bodies_are_filmed_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def draw(body, qpos, height, width, paint):
        asked.append(len(qpos))
        return np.zeros((*qpos.shape[:2], height, width, 3), np.uint8)

    monkeypatch.setattr(films_module, "film", draw)
    monkeypatch.setattr(films_module, "AT_ONCE", 3)
    assert run("explore", f"run={folder}", "films=8", "analysis=false") == 0
    found = about(folder)
    assert asked == [3, 3, 2] and len(found["films"]["seconds"]) == 8
    assert run("explore", f"run={folder}", "analysis=false") == 0
    assert len(about(folder)["films"]["seconds"]) == N_SHARDS * (B - 1)
    assert read_dataset(folder / "data").batch.mask.shape[1] == found["tracks"]["shape"][1] == T


@pytest.mark.parametrize(
    ("override", "said"),
    [("encoder=2", "2 encoder seed(s)"), ("films=201", "0..200"), ("encodr=1", "Did you mean 'encoder'")],
)
def test_wrong_settings_are_refused(folder: Path, capsys: pytest.CaptureFixture, override: str, said: str) -> None:
    (folder / "explorer.html").unlink(missing_ok=True)
    assert run("explore", f"run={folder}", override) == 2
    assert said in capsys.readouterr().err and not (folder / "explorer.html").exists()


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_to_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, code: int
) -> None:
    def refuse(path: Path, _: str) -> None:
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(explore, "write_text", refuse)
    assert run("explore", f"run={folder}", "films=0", "analysis=false") == 2
    said = capsys.readouterr().err
    assert f"{folder / 'explorer.html'} cannot be written or read ({os.strerror(code)})" in said
    assert "Traceback" not in said


def test_a_comparison_that_could_not_be_written_is_not_begun(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    for root in (tmp_path / "first", tmp_path / "second"):
        for place in (root, root / "seed_1"):
            embed(place, 0, digest(folder / "data"))
        write_config(root, str(folder / "data"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: pytest.fail("it began"))
    assert run("probe", f"runs={tmp_path}/*") == 2
    assert f"{tmp_path}, where comparison.csv is to lie" in capsys.readouterr().err


def test_runs_are_found_whatever_signs_their_names_have_and_one_with_nan_is_no_reference(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    home, asked = tmp_path / "of [two]", []
    for name, lost in (("a[1]", True), ("b", False), ("broken", False)):
        for place in (home / name, home / name / "seed_1"):
            embed(place, 0, digest(folder / "data"), lost)
        write_config(home / name, str(folder / "data"))
    shutil.rmtree(home / "broken" / "embeddings" / "arrays.zarr" / "omega_mean")

    def compare(config, latents: dict, reference: str, **rest) -> None:
        asked.append((list(latents), reference))
        raise InputError("enough")

    monkeypatch.setattr(comparing, "compare", compare)
    for pattern, more in (("*", ""), ("[ab]*", "reference='{}/a[1]'")):
        assert run("probe", f"runs='{home}/{pattern}'", *[more.format(home)] * bool(more)) == 2
        said = capsys.readouterr()
        assert "error: enough" in said.err and f"left out {home / 'broken'}: " in said.out
    assert asked == [(["a[1]", "b"], "b"), (["a[1]", "b"], "a[1]")]
    assert comparing.matched(f"{home}/a[1]/*_1") == [home / "a[1]" / "seed_1"]
    assert comparing.matched(f"{tmp_path}/of [t]wo") == [] == comparing.matched(f"{home}/no/*")


def test_embeddings_of_other_data_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for place in (tmp_path, tmp_path / "seed_1"):
        embed(place, 0, "another")
    write_config(tmp_path, str(folder / "data"))
    assert run("explore", f"run={tmp_path}", "films=0", "analysis=false") == 2
    assert "another data set" in capsys.readouterr().err and not (tmp_path / "explorer.html").exists()
