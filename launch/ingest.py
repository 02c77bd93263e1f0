"""Other people's files as a data set: `python -m launch.ingest source=table path=tracks.csv name=tracks columns.…`."""

import json
import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data_gen.ingest.card import write_card
from data_gen.ingest.episodes import Episode
from data_gen.ingest.kept import Kept
from data_gen.ingest.recording import Recording
from data_gen.ingest.sources import open_source
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.treatment import episodes_of, outline
from data_gen.ingest.words import summary_text
from data_gen.ingest.write import plan, write
from launch.entry import enter, run_folder
from launch.log import logging_to
from launch.progress import progress
from launch.rundir import claim, provenance
from launch.schema.ingest import Ingest


def sections(cfg: Ingest) -> dict[str, Any]:
    """What an ingest answers for in a run's config."""
    own = asdict(cfg)
    kept = ("source", "columns", "reading", "treatment", "duplicates", "split", "seed", "shard_bytes")
    return {"ingest": {"path": str(Path(cfg.path).expanduser().resolve()), **{name: own[name] for name in kept}}}


def main(cfg: Ingest) -> None:
    """Look at the source, say what is there, and write what is not written yet; only the summary goes to stdout."""
    run, out = run_folder(cfg.runs, cfg.name), sys.stdout
    with redirect_stdout(sys.stderr if cfg.summary == "json" else out):
        reader = open_source(cfg.source, cfg.path, cfg.reading if cfg.columns is None else cfg.columns)

        def treat(recording: Recording, n_agents: int) -> tuple[list[Episode], tuple[str, ...]]:
            return episodes_of(recording, reader.layout, cfg.treatment, n_agents)

        kept = Kept(reader, treat)
        with progress("survey") as tell:
            found = survey(reader, kept.treat, lambda done: tell(0.0, f"{done} recordings"))
        shape = outline(reader.layout, cfg.treatment, found.n_agents, found.rewarded > 0)
        summary = summary_json(found, shape)
        print(json.dumps(summary, indent=1) if cfg.summary == "json" else summary_text(summary), file=out)
        made = plan(found, shape, cfg, asdict(cfg.treatment), summary)
        if cfg.dry_run:
            return
        with claim(run, sections(cfg), {"ingest": cfg.seed}):
            with progress("ingest") as tell:
                write(run / "data", *kept.again(found.n_agents), made, provenance({"ingest": cfg.seed}), tell)
            write_card(run / "data")
            with logging_to(cfg.logger, run, cfg.name):
                pass  # the log takes what the folder holds
        print(f"data set {run / 'data'}")


if __name__ == "__main__":
    enter("ingest", main)
