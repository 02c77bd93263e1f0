"""Train agents and record their episodes: `python -m launch.generate name=hills`."""

from pathlib import Path

from data_gen.dataset import present_shards, read_dataset, write_shard
from data_gen.domains import DOMAIN_CONFIGS, DOMAINS
from data_gen.learning import describe_learning
from data_gen.recording import record_shard
from launch.entry import enter, run_folder
from launch.progress import progress
from launch.rundir import claim, provenance
from launch.schema import Generate

DOMAIN_NAMES = {config: name for name, config in DOMAIN_CONFIGS.items()}


def generate(cfg: Generate, root: Path) -> None:
    """Record the shards that are not there yet, and say how well the agents learned once all are."""
    domain = DOMAINS[DOMAIN_NAMES[type(cfg.domain)]](cfg.domain)
    total = cfg.recording.shards
    wanted = list(range(total) if cfg.only is None else cfg.only)
    with progress("generate") as tell:
        for done, shard in enumerate(wanted):
            if shard in present_shards(root):
                continue

            def show(share: float, done: int = done, words: str = f"shard {shard + 1} of {total}") -> None:
                tell((done + share) / len(wanted), words)

            recorded = record_shard(domain, cfg.learner, cfg.recording, shard, show)
            write_shard(root, shard, total, recorded, provenance({"recording": cfg.recording.seed}))
    if len(present_shards(root)) == total:
        print("\n".join(describe_learning(read_dataset(root))))


def sections(cfg: Generate) -> dict:
    """What generation answers for in a run's config."""
    domain = {DOMAIN_NAMES[type(cfg.domain)]: vars(cfg.domain)}
    return {"domain": domain, "learner": cfg.learner, "recording": cfg.recording}


def main(cfg: Generate) -> None:
    """Run the stage in its own folder, which other jobs may record into at the same time."""
    run = run_folder(cfg.runs, cfg.name)
    with claim(run, sections(cfg), {"recording": cfg.recording.seed}, share=True):
        generate(cfg, run / "data")
    print(f"data set {run / 'data'}")


if __name__ == "__main__":
    enter("generate", main)
