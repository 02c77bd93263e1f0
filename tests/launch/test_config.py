"""Every YAML file composes to typed objects, and what is wrong names itself."""

from pathlib import Path

import pytest
import yaml

from data_gen.ingest.sources import READERS, settings_of
from data_gen.trajectory import InputError
from launch.schema.pipeline import Pipeline
from launch.schema.typed import CONF, composed, typed
from tests.launch.commands import run

REFERENCES = [
    (folder.name, file.stem)
    for folder in sorted(CONF.iterdir())
    if folder.is_dir()
    for file in sorted(folder.glob("*.yaml"))
]


def compose(config: str, *overrides: str):
    return typed(composed(config, overrides))


# What an entry point cannot guess.
NEEDED = {"ingest": ["columns.time=t", "columns.position=[x,y]"]}


@pytest.mark.parametrize("config", sorted(file.stem for file in CONF.glob("*.yaml") if file.stem != "base"))
def test_every_entry_point_composes_to_its_own_schema(config: str) -> None:
    assert type(compose(config, *NEEDED.get(config, ()))).__module__ == f"launch.schema.{config}"


@pytest.mark.parametrize("source", READERS)
def test_every_format_composes_with_its_settings(source: str) -> None:
    if (kind := settings_of(source)) is None:
        pytest.skip(f"what {source} needs is not installed")
    found = compose("ingest", f"source={source}", "path=there", *(NEEDED["ingest"] if source == "table" else []))
    assert found.source == source and type(found.reading if source != "table" else found.columns) is kind


@pytest.mark.parametrize(("group", "option"), REFERENCES, ids=lambda value: value)
def test_every_option_composes(group: str, option: str) -> None:
    within = ["domain=mujoco", f"engine@domain.engine={option}"] if group == "engine" else [f"{group}={option}"]
    found = compose("pipeline", *within)
    assert type(found) is Pipeline
    text = yaml.safe_load((CONF / group / f"{option}.yaml").read_text())
    for key, value in text.items():
        holder = found.domain if group == "engine" else found
        section = found if group == "experiment" else getattr(holder, group)
        if key != "defaults" and not isinstance(value, dict):
            assert getattr(section, key) == value


def test_the_default_job_is_the_one_of_the_readme() -> None:
    found = compose("pipeline")
    assert found.name == "hill_climbing" and found.runs == "runs"
    recording = found.recording
    assert (recording.seeds, recording.checkpoints, recording.episodes, recording.split) == (48, 6, 16, [24, 8, 16])
    assert found.domain.horizon == 25 and found.logger.kind == "none"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("train.stepz=3", "Did you mean 'train.steps'?"),
        ("modle.hidden=3", "Did you mean 'model.hidden'?"),
        ("+foo=1", "no config key 'foo'"),
        ("+train.foo=1", "no config key 'train.foo'"),
        ("domain=hill_climbin", "Did you mean 'hill_climbing'?"),
        ("engine=native", "With domain=mujoco write 'engine@domain.engine=native'"),
        ("experiment=tny", "Did you mean 'tiny'?"),
        ("train.steps=abc", "'abc' of type 'str' could not be converted to Integer"),
        ("train.steps=33", "50 would be"),
        ("schedule.joint.shape=linera", "linear, cosine, sigmoid"),
        ("model.team=consat", "concat, pool"),
        ("model.encoder=lsmt", "lstm, gru, conv, attention"),
        ("model.decoder=lstm", "feedforward, recurrent"),
        ("objective=free_bit", "Did you mean 'free_bits'?"),
        ("objective.joint=-1", "no config key 'objective.joint'"),
        ("name=../elsewhere", "'../elsewhere'"),
        ("name=.", "'.' must be the name of a folder below"),
        ("train.hold_out=[0,1,2,3,4,5]", "leaves no checkpoint to train on"),
        ("probe.concepts.most=2", "as probe=full does"),
        ("probe.bootstrap=1", "must be 40 or more"),
        ("logger.mode=of", "online, offline, disabled"),
        ("recording.seeds=47", "47 seeds"),
        ("only=[7]", "no shard 7"),
        ("data=nowhere", "nowhere"),
        ("recording.seeds=2", "at least 3"),
        ("train.learning_rate=nan", "learning_rate and clip must be finite"),
        ("schedule.joint.maximum=nan", "finite maximum"),
        ("model.min_std=inf", "min_std"),
        ("expermient=tiny", "Did you mean 'experiment'?"),
        ("probe.labels=return_class", "'key=[first,second]'"),
        ("name=a b/ünï", "wants quotes"),
    ],
)
def test_what_is_wrong_names_itself_before_anything_is_written(
    override: str, said: str, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("pipeline", override) == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith("error: ") and "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["pipeline", "train"])
def test_an_objective_that_cannot_train_the_form_is_refused(stage: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(stage, "objective=free_bits", "model.form=autoencoder") == 2
    assert "FreeBits cannot train model.form=autoencoder: it has no KL" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_mapping_says_how_a_key_is_added_to_it(tmp_path: Path, capsys) -> None:
    given = ["source=table", "path=games.csv", "name=games", f"runs={tmp_path}"]
    assert run("ingest", *given, "columns.units={position: m}") == 2
    assert "with a plus sign: +columns.units.position=" in capsys.readouterr().err


def test_an_experiment_belongs_to_the_pipeline(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("generate", "experiment=ant") == 2
    assert "run it by launch.pipeline" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_a_run_that_is_not_there(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("probe", "run=runs/nothing") == 2
    assert "runs/nothing" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_a_run(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("no run")
    for stage in ("probe", "intervene", "generalise"):
        assert run(stage, "run=notes") == 2
        assert "notes is not the folder of a run" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "model: [", "just words"])
def test_a_damaged_config_is_named(content: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "config.yaml").write_text(content)
    assert run("probe", f"run={tmp_path}") == 2
    error = capsys.readouterr().err
    assert "config.yaml is damaged" in error and "Traceback" not in error


def test_a_sweep_in_one_runs_folder_is_refused(tmp_path: Path, capsys) -> None:
    assert run("probe", "--multirun", f"run={tmp_path}", "probe.seed=0,1", f"hydra.sweep.dir={tmp_path}") == 2
    assert "would write over each other" in capsys.readouterr().err


def test_the_sweep_files_command_line_composes() -> None:
    sweep = yaml.safe_load((CONF.parent / "launch" / "sweep.yaml").read_text())
    words = [word for word in sweep["command"] if "=" in word]
    for values in zip(*(part["values"] for part in sweep["parameters"].values()), strict=False):
        chosen = [f"{name}={value}" for name, value in zip(sweep["parameters"], values, strict=True)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WANDB_RUN_ID", "abc123")
            found = compose("train", *words, *chosen)
        assert found.name == "sweep/abc123" and found.logger.mode == "online"
        assert found.schedule.joint.maximum == values[0] and found.train.seed == values[3]


def test_unknown_logger_is_refused() -> None:
    with pytest.raises(InputError):
        compose("pipeline", "logger.kind=tensorboard")
