"""What is wrong with a study's settings, found before its hours begin."""

from pathlib import Path
from typing import Any

from hydra.errors import HydraException

from data_gen.trajectory import InputError, check_hold_out
from launch.data import check_domain_labels
from launch.schema.study import Study
from launch.schema.typed import composed, typed
from launch.study_part import last_of_each


def check_study(cfg: Study) -> None:
    """Raise InputError where a step does not compose, a label or checkpoint does not exist, or docs cannot be made."""
    for name, own in cfg.domains.items():
        made = _composed(name, "generate", [f"name={name}", *own.data])
        if own.other:
            _composed(name, "generate", [f"name={name}", *own.other])
        trainings = [[], *(cfg.search[arm] for arm in own.arms or cfg.search)]
        trainings += [cfg.schedules[schedule] for schedule in own.schedules]
        for overrides in trainings:
            _composed(name, "train", [f"name={name}", *last_of_each(own.train, own.quick, overrides)])
        _composed(name, "intervene", [f"run={name}", *own.intervene])
        check_domain_labels(own.labels, made.domain, f"domains.{name}.labels", "the domain")
        check_hold_out(own.hold_out, list(range(made.recording.checkpoints)))
    try:
        (Path(cfg.docs) / "study").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"docs={cfg.docs} cannot hold the study ({error}). Choose another folder.") from None


def _composed(name: str, entry: str, overrides: list[str]) -> Any:
    """The config of a step."""
    try:
        return typed(composed(entry, overrides))
    except HydraException as error:
        said = " ".join(str(error).split())
        raise InputError(f"domains.{name}: launch.{entry} {' '.join(overrides)} does not compose: {said}") from None
