"""The study of docs/study.md, resumable and cached step by step: `python -m launch.study`."""

from pathlib import Path

from launch.entry import enter
from launch.rundir import claim
from launch.schema import Study
from launch.steps import Steps
from launch.study_part import Part
from probes.study.page import write_study


def main(cfg: Study) -> None:
    """Every domain in turn; then docs/study.md and its tables."""
    root = Path(cfg.runs)
    with claim(root, {}, {"train": 0, "encoders": cfg.seeds}):
        steps = Steps(root / "steps")
        tables = {name: Part(cfg, name, steps).run() for name in cfg.domains}
        labels = {name: own.labels for name, own in cfg.domains.items()}
        write_study(Path(cfg.docs), tables, labels, steps.times(), cfg.seeds)
    print(f"study {Path(cfg.docs) / 'study.md'}")


if __name__ == "__main__":
    enter("study", main)
