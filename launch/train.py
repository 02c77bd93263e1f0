"""Train the model on a data set and embed every episode: `python -m launch.train name=narrow model.joint_width=2`."""

from pathlib import Path

from data_gen.storage.dataset import digest, read_dataset
from data_gen.trajectory import SPLITS, take
from launch.embed import embed
from launch.entry import enter, run_folder
from launch.log import NoLogger, logging_to
from launch.progress import progress
from launch.rundir import claim
from launch.schema import Training
from marl_vae.metrics import criterion, describe
from marl_vae.model import Dims
from marl_vae.task import Task
from marl_vae.train import fit


def train(cfg: Training, run: Path, logger: NoLogger) -> bool:
    """Fit, embed, and say whether the latents are used; False where all of that was done before."""
    root = data_folder(cfg, run)
    found = read_dataset(root)
    parts = [take(found.batch, found.rows_of(name)) for name in SPLITS]
    dims = Dims(agents=found.batch.obs.shape[2], obs=found.batch.obs.shape[3], action=found.action)
    latest = {}
    with progress("train") as tell:

        def show(row: dict) -> None:
            latest.update(row)
            logger.metrics(row)
            tell(row["step"] / cfg.train.steps, describe(latest))

        task = Task(cfg.model, dims, found.features, cfg.objective, cfg.schedule, cfg.train, digest(root))
        state = fit(parts[0], parts[1], task, run, show)
    chosen = {"step": int(state.best_step), criterion(cfg.model.form): float(state.best_bound), "data": task.data}
    return embed(run, found, parts, chosen, seeds(cfg), logger)


def data_folder(cfg: Training, run: Path) -> Path:
    """The data set that a run reads: the one named by `data`, or its own."""
    return Path(cfg.data) if cfg.data else run / "data"


def seeds(cfg: Training) -> dict[str, int]:
    """The seed that training uses."""
    return {"train": cfg.train.seed}


def sections(cfg: Training) -> dict:
    """What training answers for in a run's config."""
    data = str(Path(cfg.data).resolve()) if cfg.data else None
    return {
        "data": data,
        "model": cfg.model,
        "objective": {type(cfg.objective).__name__: vars(cfg.objective)},
        "schedule": cfg.schedule,
        "train": cfg.train,
    }


def main(cfg: Training) -> None:
    """Run the stage in its own folder."""
    run = run_folder(cfg.runs, cfg.name)
    read_dataset(data_folder(cfg, run))
    with claim(run, sections(cfg), seeds(cfg)), logging_to(cfg.logger, run, cfg.name) as logger:
        train(cfg, run, logger)


if __name__ == "__main__":
    enter("train", main)
