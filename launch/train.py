"""Train the model on a data set and embed every episode: `python -m launch.train name=narrow model.joint_width=2`."""

from pathlib import Path

from data_gen.storage.dataset import digest
from launch.data import data_folder, seen_parts, training_data
from launch.embedding import embed_seeds
from launch.entry import enter, run_folder
from launch.log import NoLogger, logging_to
from launch.progress import progress
from launch.rundir import claim
from launch.schema.train import Training
from marl_vae.metrics import describe
from marl_vae.model import dims_of
from marl_vae.task import Task
from marl_vae.train import fit, folders


def train(cfg: Training, run: Path, logger: NoLogger) -> bool:
    """Fit, embed, and say whether the latents are used; False where all of that was done before."""
    found = training_data(cfg, run)
    parts = seen_parts(found, cfg.train.hold_out)
    latest, places = {}, dict(zip((one.seed for one in cfg.train.alone()), folders(run, cfg.train), strict=True))
    with progress("train") as tell:

        def show(row: dict) -> None:
            seed = row.pop("seed")
            if seed == cfg.train.seed:
                latest.update(row)
            logger.metrics(row, places[seed])
            tell(row["step"] / cfg.train.steps, describe(latest or row))

        data = digest(data_folder(cfg, run))
        task = Task(cfg.model, dims_of(found), found.features, cfg.objective, cfg.schedule, cfg.train, data)
        states = fit(parts[0], parts[1], task, run, show)
    fresh = embed_seeds(cfg, run, found, parts, states)
    logger.publish()
    return fresh


def seeds(cfg: Training) -> dict[str, int]:
    """The seed that training starts counting from."""
    return {"train": cfg.train.seed}


def sections(cfg: Training) -> dict:
    """What training answers for in a run's config."""
    data = str(Path(cfg.data).resolve()) if cfg.data else None
    return {
        "data": data,
        "model": cfg.model,
        "objective": {type(cfg.objective).__name__: vars(cfg.objective)},
        "schedule": cfg.schedule,
        # Where episodes lie changes no result: a run that memory turned out too small for goes on from disk.
        "train": {name: value for name, value in vars(cfg.train).items() if name != "stream"},
    }


def main(cfg: Training) -> None:
    """Run the stage in its own folder."""
    run = run_folder(cfg.runs, cfg.name)
    training_data(cfg, run)
    with claim(run, sections(cfg), seeds(cfg)), logging_to(cfg.logger, run, cfg.name) as logger:
        train(cfg, run, logger)


if __name__ == "__main__":
    enter("train", main)
