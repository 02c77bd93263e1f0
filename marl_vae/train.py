"""The training loop: many steps a dispatch, models compared at cycle ends, resumable bit for bit."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from data_gen.trajectory import Episodes, TrajectoryBatch, check_batch, check_features, n_episodes, to_device
from marl_vae.batching import check_episodes
from marl_vae.checkpoint import Checkpoints, Description, TrainState, write_description
from marl_vae.member import Member, TrainingDiverged
from marl_vae.normalise import fit_normaliser
from marl_vae.objectives.objective import check_form
from marl_vae.program import Program, Trace, make_program
from marl_vae.schedule import ends_cycle
from marl_vae.stream import delivered
from marl_vae.task import Task, Train

NOT_DECISIVE = ("seeds", "stream")


def fit(
    training: TrajectoryBatch | Episodes,
    validation: TrajectoryBatch | Episodes,
    task: Task,
    run: Path,
    report: Callable[[dict[str, Any]], None],
) -> list[TrainState]:
    """Train every seed into `checkpoints` and `metrics.jsonl` of its folder, going on from the newest checkpoint there.

    A TrajectoryBatch is put on the device; Episodes are read ahead of the steps, with the same results bit for bit.
    Each of the `folders` then holds what training with that seed alone leaves. Raises InputError for unusable data or a
    folder of another task, TrainingDiverged for a non-finite term.
    """
    cfg, dims = task.train, task.dims
    check_form(task.objective, task.model)
    for name, batch in (("training episodes", training), ("validation episodes", validation)):
        check_episodes(partial(usable, task), batch, name)
    places, alone = folders(run, cfg), [task._replace(train=train) for train in cfg.alone()]
    for place, one in zip(places, alone, strict=True):
        write_description(place / "checkpoints", Description(task.model, dims, settings_of(one), task.data))
    scale = fit_normaliser(training, dims.action, task.features)
    program = make_program(task, scale, n_episodes(training))
    kept = [Checkpoints(place / "checkpoints") for place in places]
    states = resumed(kept, program.start())
    members = [Member(*each, program, validation, report) for each in zip(places, alone, states, strict=True)]
    going = [i for i, state in enumerate(states) if not state.finished]
    start = min((int(states[i].step) for i in going), default=cfg.steps)
    try:
        with stepping(program, task, training, validation, start) as advance:
            for step in range(start, cfg.steps, cfg.steps_per_dispatch):
                if not going:
                    break
                after = step + cfg.steps_per_dispatch
                states, traces = advance(states)
                for i in going:
                    members[i].tell(after, traces[i])
                ends = ends_cycle(task.schedule.joint, step, after, cfg.steps)
                if ends or after % cfg.eval_every == 0:
                    for i in going:
                        states[i] = members[i].judge(states[i], after, ends)
                    for i in going:
                        kept[i].save(states[i], scale)
                    going = [i for i in going if not states[i].finished]
    except TrainingDiverged as error:
        last = min((one.latest() or 0 for one in kept), default=0)
        what = f"The checkpoint of step {last} is kept." if last else "No checkpoint was written yet."
        raise TrainingDiverged(f"{error} {what}") from None
    finally:
        for member in members:
            member.close()
    return states


def usable(task: Task, batch: TrajectoryBatch, where: str) -> None:
    """Raise InputError where the episodes do not fit the task."""
    check_batch(batch, task.dims.action, where)
    check_features(batch, task.features, task.dims.action, where)


@contextmanager
def stepping(
    program: Program,
    task: Task,
    training: TrajectoryBatch | Episodes,
    validation: TrajectoryBatch | Episodes,
    start: int,
) -> Iterator[Callable[[list[TrainState]], tuple[list[TrainState], list[Trace]]]]:
    """What takes the states a dispatch on: over episodes on the device, or over those that are read ahead."""
    if isinstance(training, TrajectoryBatch) and isinstance(validation, TrajectoryBatch):
        data = to_device(training), to_device(validation)
        yield lambda states: program.advance(states, *data)
        return
    with closing(delivered(task, training, validation, start)) as given:
        yield lambda states: program.follow(states, next(given))


def folders(run: Path, cfg: Train) -> list[Path]:
    """Where each seed's training lives: the first in the run's own folder, the others in `seed_<number>` below it."""
    return [run, *(run / f"seed_{alone.seed}" for alone in cfg.alone()[1:])]


def settings_of(task: Task) -> dict[str, Any]:
    """All that decides how one seed's training goes; not how many others stand beside it, nor where episodes lie."""
    return {
        "train": {name: value for name, value in vars(task.train).items() if name not in NOT_DECISIVE},
        "objective": {"name": type(task.objective).__name__, **vars(task.objective)},
        "joint": vars(task.schedule.joint),
        "local": vars(task.schedule.local),
    }


def resumed(kept: list[Checkpoints], fresh: list[TrainState]) -> list[TrainState]:
    """Each seed's newest state; those that still train go back to the newest step that all of them have kept."""
    if any(one.latest() is None for one in kept):
        return fresh
    states = [one.restore(like) for one, like in zip(kept, fresh, strict=True)]
    step = min((int(state.step) for state in states if not state.finished), default=0)
    return [
        state if state.finished or int(state.step) == step else one.restore(like, step)
        for one, state, like in zip(kept, states, fresh, strict=True)
    ]
