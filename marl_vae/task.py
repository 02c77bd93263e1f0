"""What to train on what, for how long and how fast."""

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from data_gen.trajectory import FeatureMask, InputError
from marl_vae.model import Dims, Model
from marl_vae.objectives.objective import Objective
from marl_vae.schedule import Schedule

LAST_SEED = 2**32


@dataclass
class Train:
    """How long and how fast to train. `patience` counts cycles without a better validation bound.

    `seeds` models are trained side by side in one program, with the seeds `seed`, `seed` + 1 and so on. `hold_out` are
    checkpoints of the learner whose episodes nothing is fitted on, so that `launch.generalise` can ask about them.
    `stream` leaves the episodes on disk and reads them ahead of the steps: for data larger than memory, same results.
    """

    steps: int = 2400
    batch: int = 64
    learning_rate: float = 1e-3
    clip: float = 1.0
    patience: int = 2
    steps_per_dispatch: int = 50
    eval_every: int = 200
    seed: int = 0
    seeds: int = 1
    stream: bool = False
    hold_out: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.steps_per_dispatch, self.eval_every, self.patience) < 1:
            raise InputError(
                f"train: steps={self.steps}, batch={self.batch}, patience={self.patience}, steps_per_dispatch="
                f"{self.steps_per_dispatch} and eval_every={self.eval_every} must all be at least 1."
            )
        if self.seeds < 1 or not 0 <= self.seed <= LAST_SEED - self.seeds:
            raise InputError(
                f"train: seed={self.seed} and seeds={self.seeds}; seeds must be at least 1, and every seed from 0 to "
                f"{LAST_SEED - 1}."
            )
        if not (0 < self.learning_rate < math.inf and 0 < self.clip < math.inf):
            raise InputError(
                f"train: learning_rate and clip must be finite and above 0; got {self.learning_rate} and {self.clip}."
            )
        chunk = self.steps_per_dispatch
        for name in ("steps", "eval_every"):
            value = getattr(self, name)
            if value % chunk:
                near = max(chunk, round(value / chunk) * chunk)
                raise InputError(
                    f"train.{name}={value} is no multiple of train.steps_per_dispatch={chunk}; {near} would be. "
                    "(A last, shorter dispatch would compile again and break the equality of resumed runs.)"
                )

    def alone(self) -> list["Train"]:
        """The settings of each training as if it ran alone."""
        return [replace(self, seed=self.seed + number, seeds=1) for number in range(self.seeds)]


class Task(NamedTuple):
    """What to train on what; `data` identifies the data set, and with it `features`."""

    model: Model
    dims: Dims
    features: FeatureMask
    objective: Objective
    schedule: Schedule
    train: Train
    data: str
