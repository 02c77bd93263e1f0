"""A training task of seconds; run as a program it trains into a folder and kills itself, as kill -9 would.

python -m tests.marl_vae.tiny_task FOLDER MOMENT STEP, MOMENT is row (before the checkpoint) or saved (after it).
"""

import os
import signal
import sys
from pathlib import Path

from data_gen.trajectory import ActionSpec, TrajectoryBatch, all_real
from marl_vae.checkpoint import Checkpoints, TrainState
from marl_vae.diagnostics.latent_free import fit_without_latents
from marl_vae.diagnostics.usage import Usage, usage
from marl_vae.embed import TrainedModel
from marl_vae.model import Dims, Model
from marl_vae.objectives import BetaBound
from marl_vae.objectives.objective import Objective
from marl_vae.schedule import Cyclical, Schedule
from marl_vae.task import Task, Train
from marl_vae.train import fit
from tests.builders import styled_batch

MODEL = Model(joint_width=3, local_width=2, hidden=8, decoder_hidden=8)
ACTION = ActionSpec("continuous", 2)
LEVEL = Cyclical(cycles=3, maximum=0.3)
TINY = BetaBound()
SETTINGS = {"steps": 90, "batch": 16, "steps_per_dispatch": 5, "eval_every": 15}


def task(objective: Objective, model: Model = MODEL, **changes) -> Task:
    return Task(
        model=model,
        dims=Dims(agents=3, obs=2, action=ACTION),
        features=all_real(3, 2, ACTION),
        objective=objective,
        schedule=Schedule(joint=LEVEL, local=LEVEL),
        train=Train(**SETTINGS | changes),
        data="planted",
    )


def usage_of(
    model: TrainedModel, training: TrajectoryBatch, validation: TrajectoryBatch, test: TrajectoryBatch
) -> Usage:
    seen = (training, validation)
    free = fit_without_latents(model.config, model.dims, model.scale, *seen, seed=0, report=lambda share: None)
    return usage(model, free, test, seed=0)


def run(folder: Path, report=lambda row: None, objective: Objective = TINY, **changes) -> TrainState:
    """`changes` are of the training settings, but for `model`."""
    return run_seeds(folder, report, objective, **changes)[0]


def run_seeds(folder: Path, report=lambda row: None, objective: Objective = TINY, **changes) -> list[TrainState]:
    return fit(styled_batch(0, 60), styled_batch(1, 20), task(objective, **changes), folder, report)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, moment: str, step: int) -> None:
    if moment == "row":
        run(Path(folder), lambda row: die() if row["step"] == step else None)
    save = Checkpoints.save

    def save_and_die(self, state, scale):
        save(self, state, scale)
        if int(state.step) == step:
            die()

    Checkpoints.save = save_and_die
    run(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
