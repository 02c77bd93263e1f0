"""The study of docs/study.md, resumable and cached step by step: `python -m launch.study`."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from launch.entry import enter
from launch.rundir import claim
from launch.schema.study import Study
from launch.steps import Steps, run_command
from launch.study_check import check_study
from launch.study_part import Part
from probes.study.page import write_study


def side_by_side(cfg: Study) -> None:
    """Every domain in a process of its own, `jobs` at once, since one alone leaves a core idle half of the time.

    The last, which is the longest here, begins first.
    """
    commands = [["python", "-m", "launch.study", *sys.argv[1:], f"only={name}"] for name in reversed(cfg.domains)]
    with ThreadPoolExecutor(cfg.jobs) as pool:
        list(pool.map(run_command, commands))


def main(cfg: Study) -> None:
    """Every domain; then docs/study.md and its tables."""
    root = Path(cfg.runs)
    steps = Steps(root / "steps")
    if cfg.only:
        with claim(root / "parts" / cfg.only, {}, {"train": 0, "encoders": cfg.seeds}):
            Part(cfg, cfg.only, steps).run()
        return
    check_study(cfg)
    with claim(root, {}, {"train": 0, "encoders": cfg.seeds}):
        side_by_side(cfg)
        tables = {name: Part(cfg, name, steps).run() for name in cfg.domains}
        labels = {name: own.labels for name, own in cfg.domains.items()}
        write_study(Path(cfg.docs), tables, labels, steps.times(), cfg.seeds)
    print(f"study {Path(cfg.docs) / 'study.md'}")


if __name__ == "__main__":
    enter("study", main)
