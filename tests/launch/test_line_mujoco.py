"""The whole line on a body, small: agents of different widths, episodes that end by a fall, films or why not."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import marl_vae
from data_gen.engines.film import NoRendering, film
from data_gen.engines.scenarios import make_scenario
from data_gen.storage.dataset import read_dataset
from data_gen.storage.states import read_states
from tests.launch.commands import SMALL, files, run

BODY = [
    *SMALL,
    "domain=mujoco",
    "learner=ppo_body",
    "domain.scenario=Hopper 3x1",
    "domain.engine.name=native",
    "domain.horizon=100",
    "domain.recorded=30",
    "learner.updates=4",
    "learner.envs=2",
    "learner.segment=32",
    "learner.minibatches=2",
    "learner.epochs=2",
    "learner.hidden=16",
    "probe.labels=[return_class,speed_class,energy_class,energy_share,progress]",
]


@pytest.fixture(scope="module")
def line(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    assert run("pipeline", *BODY, "name=first", f"runs={runs}") == 0
    return runs / "first"


def test_labels_of_bodies_are_probed(line: Path) -> None:
    table = pd.read_csv(line / "probes.csv")
    wanted = {"return_class", "speed_class", "energy_class", "energy_share_0", "energy_share_2", "progress"}
    assert wanted <= set(table.label)
    assert (table[table.label == "energy_share_1"].metric == "r2").all()


def test_padding_reaches_the_model_and_stays_zero(line: Path) -> None:
    found, scenario = read_dataset(line / "data"), make_scenario("Hopper 3x1", 1)
    assert not scenario.obs_mask.all()
    model = marl_vae.load(line)
    np.testing.assert_array_equal(np.asarray(model.scale.obs_real) > 0, scenario.obs_mask)
    assert not found.batch.mask.all() and found.outcomes.terminated.any()
    rows = found.rows.episode.tolist()
    assert read_states(line / "data", np.array([0, len(rows) - 1], np.int32))["qpos"].shape == (2, 30, 6)


def test_the_report_shows_films_or_says_why_not(line: Path) -> None:
    page, films = (line / "report.html").read_text(), line / "figures" / "films.png"
    body = make_scenario("Hopper 3x1").body
    try:
        film(body, np.zeros((1, 1, body.nq)), 8, 8)
    except NoRendering:
        assert "Nothing was rendered" in page and not films.exists()
    else:
        assert films.stat().st_size > 10_000 and "Limbs have the colour of the agent" in page


@pytest.mark.slow
def test_a_body_is_rolled_out_under_other_latents(line: Path, tmp_path: Path) -> None:
    shutil.copytree(line, tmp_path / "first")
    labels = "intervention.labels=[speed_class,energy_share_0]"
    assert run("intervene", f"run={tmp_path / 'first'}", labels, "intervention.pairs=5", "intervention.repeats=2") == 0
    effects = pd.read_csv(tmp_path / "first" / "interventions.csv").set_index(["label", "kind"])
    assert len(effects) == 8 and effects.effect.notna().all() and (effects.n_rollouts == 10).all()
    assert (effects.failed < 0.2).all() and effects.return_before.between(-200, 200).all()
    assert effects.possible[("energy_share_0", "swap")] > 1


def test_an_interrupted_recording_goes_on_and_ends_in_the_same_bytes(line: Path, tmp_path: Path) -> None:
    data = [override for override in BODY if not override.startswith(("experiment", "train", "probe", "analysis"))]
    size = "recording.seeds=12 recording.checkpoints=3 recording.shards=2 recording.split=[6,3,3]".split()
    for only in ("only=[1]", "only=null"):
        assert run("generate", *data, *size, "name=again", f"runs={tmp_path}", only) == 0
    one, two = files(line / "data"), files(tmp_path / "again" / "data")
    changed = {name for name in one if one[name] != two[name]}
    assert one.keys() == two.keys() and {Path(name).name for name in changed} <= {
        "manifest.json",
        "zarr.json",
        "README.md",
    }


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("domain.scenario=Antt", "did you mean 'Ant"),
        ("domain.obsk=5", "obsk is 5"),
        ("domain.engine.name=nativ", "there is no engine 'nativ'; did you mean 'native'?"),
        ("domain.engine.device=gpu", "no setting 'device'"),
        ("domain.engine=mjx", "write 'engine@domain.engine=native'"),
        ("engine=mjx", "write 'engine@domain.engine=native'"),
        ("domain.obks=1", "Did you mean 'domain.obsk'?"),
        ("probe.labels=[speed]", "The nearest is 'speed_class'"),
        ("recording.checkpoints=4", "4 updates cannot be cut into 3"),
        ("learner.envs=100000000", "more than the"),
        ("only=[]", "leave it out for all"),
        ("domain.recorded=101", "recorded is 101"),
        ("learner.segment=0", "learner=ppo_body"),
        ("learner.minibatches=7", "equal minibatches"),
    ],
)
def test_bad_input_is_one_paragraph_before_anything_is_made(override: str, said: str, tmp_path: Path, capsys) -> None:
    assert run("pipeline", *BODY, "name=bad", f"runs={tmp_path}", override) == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith("error: ") and not (tmp_path / "bad").exists()
