"""One domain's part of the study: search, final encoders, schedules, interventions, generalisation."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import select
from launch.data import inputs_of
from launch.embedding import read_usage
from launch.encoders import encoded_of, folders_of
from launch.entry import DIVERGED
from launch.schema.study import Study, StudyDomain
from launch.steps import StepFailed, Steps
from launch.tables import read_table
from launch.worth import worth_table
from marl_vae.files import write_text
from probes.probe import Probe
from probes.study.study import best_arm, for_validation, mean_skill, summary_of
from probes.table.table import probe_table

AGAIN = "Remove the run's report.html or that file, and give the command of the study again."


class Part:
    """One domain of the study, in the folder of its name."""

    def __init__(self, cfg: Study, name: str, steps: Steps):
        self.cfg, self.name, self.steps = cfg, name, steps
        self.own: StudyDomain = cfg.domains[name]
        self.home = Path(cfg.runs) / name
        self.labels = ",".join(self.own.labels)

    def run(self) -> dict[str, pd.DataFrame]:
        """Every step; the tables that the study shows of this domain."""
        self.steps.launch(
            "generate", f"name={self.name}", f"runs={self.cfg.runs}", *self.own.data, makes=self.home / "data"
        )
        search = self.search()
        best = self.cfg.search[best_arm(search)]
        final = self.train("final", best, [f"train.seeds={self.cfg.seeds}"])
        asked = [f"run={final}", "probe=full", f"probe.labels=[{self.labels}]", "probe.probes=[linear]"]
        self.steps.launch("probe", *asked, makes=final / "report.html")
        self.steps.launch("intervene", f"run={final}", *self.own.intervene, makes=final / "decodable_and_used.csv")
        worth = final / "worth.csv"
        self.steps.once(["worth of labels", str(final), self.labels], lambda: self.price(final, worth), worth)
        tables = {
            "search": search,
            "worth": read_table(worth, AGAIN),
            "schedules": self.schedules(best),
            "generalisation": self.carried(best),
        }
        for name in ("probes", "concepts", "decodable_and_used", "interventions", "label_efficiency"):
            tables[name] = read_table(final / f"{name}.csv", AGAIN)
        return tables

    def train(self, kind: str, *overrides: list[str]) -> Path:
        """A training on the domain's data into the folder `kind`; of two values for one key the later wins."""
        where = [f"name={self.name}/{kind}", f"runs={self.cfg.runs}", f"data={self.home / 'data'}"]
        last = last_of_each(self.own.train, *overrides)
        self.steps.launch("train", *where, *last, makes=self.home / kind / "usage.json")
        return self.home / kind

    def search(self) -> pd.DataFrame:
        """Mean skill of linear probes on validation groups for every arm; no test group is looked at.

        An arm whose training diverged has none.
        """
        rows = []
        for arm in self.own.arms or self.cfg.search:
            overrides = self.cfg.search[arm]
            row = {"arm": arm, "overrides": " ".join(overrides), "mean_skill": np.nan}
            try:
                row |= self.judged(self.train(f"search/{arm}", self.own.quick, overrides), "validation")
            except StepFailed as failed:
                if failed.code != DIVERGED:
                    raise
            rows.append(row)
        return pd.DataFrame(rows)

    def schedules(self, best: list[str]) -> pd.DataFrame:
        """KL, active units and linear probes of every schedule on test groups; a row an encoder seed."""
        rows = []
        for name in self.own.schedules:
            seeds = [f"train.seeds={self.cfg.seeds}"]
            run = self.train(f"schedule/{name}", self.own.quick, best, self.cfg.schedules[name], seeds)
            for place in folders_of(run):
                usage = summary_of(read_usage(place)._asdict())
                rows.append({"schedule": name, "seed": place.name, **self.judged(place, "test"), **usage})
        return pd.DataFrame(rows)

    def judged(self, place: Path, part: str) -> dict[str, Any]:
        """Skill of one encoder's linear probes on a split's groups."""
        made = place / f"{part}.csv"
        step = [f"linear probes on {part} groups", str(place), self.labels]
        self.steps.once(step, lambda: self.score(place, part, made), made)
        return mean_skill(read_table(made, AGAIN))

    def score(self, place: Path, part: str, made: Path) -> None:
        """Linear probes of one encoder, fitted on training groups."""
        found = read_dataset(self.home / "data")
        encoded = encoded_of([place], found.batch, 0)
        keep, split = np.arange(len(found.split)), found.split
        if part == "validation":
            keep, split = for_validation(found.split)
        seen = select(found, keep.astype(np.int32))._replace(split=split)
        cfg = Probe(labels=self.own.labels, probes=["linear"], permutations=0)
        write_text(made, probe_table(cfg, **inputs_of(seen), encoded=encoded.take(keep)).to_csv(index=False))

    def price(self, run: Path, made: Path) -> None:
        """What every label saves a policy that is told it."""
        write_text(made, worth_table(run, self.own.labels, 0).to_csv(index=False))

    def carried(self, best: list[str]) -> pd.DataFrame:
        """Probes and bound on a checkpoint that nothing was fitted on, and on the other kind of action."""
        run, other = self.train("held", best, [f"train.hold_out={self.own.hold_out}"]), []
        if self.own.other:
            data, where = Path(self.cfg.runs) / f"{self.name}_other" / "data", f"name={self.name}_other"
            self.steps.launch("generate", where, f"runs={self.cfg.runs}", *self.own.other, makes=data)
            other = [f"other={data}"]
        asked = [f"run={run}", f"probe.labels=[{self.labels}]", *other]
        self.steps.launch("generalise", *asked, makes=run / "generalisation.csv")
        return read_table(run / "generalisation.csv", AGAIN)


def last_of_each(*overrides: list[str]) -> list[str]:
    """Overrides without those whose key comes again, since hydra takes a group once."""
    return list({one.split("=")[0]: one for several in overrides for one in several}.values())
