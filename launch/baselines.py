"""What a run is compared with that has to be trained: a VAE without levels, and encoders that are told the label."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import joblib
import numpy as np
from jaxtyping import Float

import marl_vae
from data_gen.storage.dataset import digest
from data_gen.trajectory import SPLITS, Dataset, take
from launch.progress import progress
from launch.rundir import config_of, data_of
from marl_vae import load
from marl_vae.metrics import describe
from marl_vae.model import FLAT, Model, dims_of
from marl_vae.objectives import OBJECTIVES
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.supervised import Question, supervise
from marl_vae.task import Task, Train
from marl_vae.train import fit, folders
from probes.jobs import read, write
from probes.table.ceiling import Ceiling


def task_of(run: Path, seen: Dataset) -> Task:
    """The training that the run's config stands for, on the episodes that it may see."""
    config = config_of(run)
    ((name, settings),) = config["objective"].items()
    kind = next(kind for kind in OBJECTIVES.values() if kind.__name__ == name)
    return Task(
        model=Model(**config["model"]),
        dims=dims_of(seen),
        features=seen.features,
        objective=kind(**settings),
        schedule=Schedule(**{level: Cyclical(**part) for level, part in config["schedule"].items()}),
        train=Train(**config["train"]),
        data=digest(data_of(run)),
    )


def has_flat_vae(run: Path) -> bool:
    """Whether a run's probing (probe.flat_vae) has trained one, or begun to."""
    return (run / "flat").exists()


def flat_vae(run: Path, found: Dataset, seen: Dataset) -> Float[np.ndarray, "E B Zw"] | None:
    """The latent of every episode under a VAE without levels, trained as the run was into `flat/`, once a seed.

    None where the run has no levels itself.
    """
    task = task_of(run, seen)
    if task.model.form == FLAT:
        return None
    task = task._replace(model=replace(task.model, form=FLAT, local_sees_joint=True))
    with progress("flat VAE") as tell:
        training, validation = (take(seen.batch, seen.rows_of(name)) for name in SPLITS[:2])
        show = lambda row: tell(row["step"] / task.train.steps, describe(row))  # noqa: E731
        fit(training, validation, task, run / "flat", show)
    return np.stack([load(place).embed(found.batch).omega_mean for place in folders(run / "flat", task.train)])


def _source() -> list[tuple[str, bytes]]:
    """All that says how a ceiling is trained."""
    here = Path(marl_vae.__file__).parent
    versions = [(name, version(name).encode()) for name in ("jax", "flax", "optax")]
    return versions + [(str(file.relative_to(here)), file.read_bytes()) for file in sorted(here.rglob("*.py"))]


def ceiling_of(run: Path, seen: Dataset, cache: Path, tell: Callable[[float, str], None]) -> Ceiling:
    """Trains encoders like the run's on a label, one a seed, and keeps what they answer in `cache`."""
    model, task = load(run), task_of(run, seen)
    seeds = [alone.seed for alone in task.train.alone()]
    identity = joblib.hash((task.data, vars(task.model), task.train.hold_out, seeds, _source()))

    def ceiling(
        kind: str, values: np.ndarray, n_classes: int, train: np.ndarray, validation: np.ndarray, test: np.ndarray
    ) -> np.ndarray:
        question = Question(kind, values, n_classes, train, validation)
        path = cache / f"ceiling-{joblib.hash((identity, question._asdict(), test))}.pkl"
        if kept := read(path):
            return kept[0]
        answers = supervise(
            task.model,
            task.dims,
            model.scale,
            seen.batch,
            question,
            test,
            seeds=seeds,
            report=lambda share: tell(0.0, f"supervised ceiling {share:.0%}"),
        )
        write(path, answers)
        return answers

    return ceiling
