"""The supervised ceiling: an encoder trained end to end on the label says how much of it the episodes hold.

Letters: B episodes, E encoder seeds, m test rows, K classes (1 for a real target).
"""

from collections.abc import Callable

import numpy as np

from data_gen.trajectory import InputError
from probes.probe import Prediction
from probes.table.exam import Exam, Result, result_of

PROBE = "end_to_end"
FEATURES = "supervised"


# (kind, values [B], n_classes, train rows, validation rows, test rows) -> [E, m, K]. Trains E encoders end to end on
# the training rows' labels, chooses by the validation rows, and gives the test rows' class probabilities, or one number
# each where kind is "real".
Ceiling = Callable[[str, np.ndarray, int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def ceiling_results(label: str, exam: Exam, ceiling: Ceiling) -> list[Result]:
    """The scores of the label's own encoders, one an encoder seed.

    Raises InputError where a prediction is not finite.
    """
    found = ceiling(exam.kind, exam.values, exam.n_classes, exam.train, exam.validation, exam.test)
    if not np.isfinite(found).all():
        raise InputError(
            f"the supervised ceiling of '{label}' predicts {(~np.isfinite(found)).sum()} value(s) that are not finite; "
            "its training diverged. Lower its learning rate, or probe without it (probe.ceiling=false)."
        )
    if exam.kind == "real":
        empty = np.zeros((len(exam.test), 0))
        guesses = [Prediction(one[:, 0].astype(float), True, np.zeros(0, int), empty) for one in found]
    else:
        classes = np.arange(exam.n_classes)
        guesses = [Prediction(one.argmax(1), True, classes, one.astype(float)) for one in found]
    return [result_of(exam, guess) for guess in guesses]


def share_of_ceiling(value: float, chance: float, ceiling: float, ceiling_low: float) -> float:
    """Skill above chance in parts of the ceiling's: (value - chance) / (ceiling - chance).

    NaN where the ceiling's interval reaches chance: then nothing is known to be there to be read.
    """
    return (value - chance) / (ceiling - chance) if ceiling_low > chance else np.nan
