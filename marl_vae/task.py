"""What to train on what, for how long and how fast."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from data_gen.trajectory import FeatureMask, InputError
from marl_vae.model import Dims, Model
from marl_vae.objectives.objective import Objective
from marl_vae.schedule import Schedule


@dataclass
class Train:
    """How long and how fast to train. `patience` counts cycles without a better validation bound."""

    steps: int = 2400
    batch: int = 64
    learning_rate: float = 1e-3
    clip: float = 1.0
    patience: int = 2
    steps_per_dispatch: int = 50
    eval_every: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.steps_per_dispatch, self.eval_every, self.patience) < 1:
            raise InputError(
                f"train: steps={self.steps}, batch={self.batch}, patience={self.patience}, steps_per_dispatch="
                f"{self.steps_per_dispatch} and eval_every={self.eval_every} must all be at least 1."
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


class Task(NamedTuple):
    """What to train on what; `data` identifies the data set, and with it `features`."""

    model: Model
    dims: Dims
    features: FeatureMask
    objective: Objective
    schedule: Schedule
    train: Train
    data: str
