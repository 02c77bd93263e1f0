"""Train agents and record their episodes: `python -m launch.generate name=hills`."""

from dataclasses import asdict
from pathlib import Path

from data_gen.domains import name_of
from data_gen.ingest.card import write_card
from data_gen.recording.learning import describe_learning
from data_gen.recording.recording import record_shard
from data_gen.recording.world import World
from data_gen.recording.worlds import make_world
from data_gen.storage.dataset import present_shards, read_dataset, write_shard
from launch.entry import enter, run_folder
from launch.log import logging_to
from launch.progress import progress
from launch.rundir import claim, provenance
from launch.schema.generate import Generate


def missing(cfg: Generate, root: Path) -> list[int]:
    """The shards of this job that are not there yet."""
    wanted = range(cfg.recording.shards) if cfg.only is None else cfg.only
    return [shard for shard in wanted if shard not in present_shards(root)]


def world_for(cfg: Generate, root: Path) -> World | None:
    """The domain with its learner, where there is something to record; InputError where that could not run here."""
    return make_world(cfg.domain, cfg.learner, cfg.recording) if missing(cfg, root) else None


def generate(cfg: Generate, world: World | None, root: Path) -> None:
    """Record the shards that are not there yet, and say how well the agents learned once all are."""
    total, wanted = cfg.recording.shards, missing(cfg, root)
    with progress("generate") as tell:
        for done, shard in enumerate(wanted):
            if world is None or shard in present_shards(root):
                continue

            def show(share: float, done: int = done, words: str = f"shard {shard + 1} of {total}") -> None:
                tell((done + share) / len(wanted), words)

            recorded = record_shard(world, cfg.recording, shard, show)
            write_shard(root, shard, total, recorded, provenance({"recording": cfg.recording.seed}))
    if world is not None:
        world.close()
    if len(present_shards(root)) == total:
        write_card(root)
        print("\n".join(describe_learning(read_dataset(root))))


def sections(cfg: Generate) -> dict:
    """What generation answers for in a run's config."""
    domain = {name_of(cfg.domain): asdict(cfg.domain)}
    return {"domain": domain, "learner": cfg.learner, "recording": cfg.recording}


def main(cfg: Generate) -> None:
    """Run the stage in its own folder, which other jobs may record into at the same time."""
    run = run_folder(cfg.runs, cfg.name)
    world = world_for(cfg, run / "data")
    with claim(run, sections(cfg), {"recording": cfg.recording.seed}, share=True):
        generate(cfg, world, run / "data")
        if len(present_shards(run / "data")) == cfg.recording.shards:
            with logging_to(cfg.logger, run, cfg.name):
                pass  # the log takes what the folder holds
    print(f"data set {run / 'data'}")


if __name__ == "__main__":
    enter("generate", main)
