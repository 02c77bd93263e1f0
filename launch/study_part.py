"""One domain's part of the study: search, final encoders, schedules, interventions, generalisation."""

from pathlib import Path

import pandas as pd

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import select
from launch.data import inputs_of
from launch.embed import read_usage
from launch.encoders import encoded_of, folders_of
from launch.schema import Study, StudyDomain
from launch.steps import Steps
from marl_vae.files import write_text
from probes.probe import Probe
from probes.study import best_arm, for_validation, mean_skill, summary_of
from probes.table import probe_table


class Part:
    """One domain of the study, in the folder of its name."""

    def __init__(self, cfg: Study, name: str, steps: Steps):
        self.cfg, self.name, self.steps = cfg, name, steps
        self.own: StudyDomain = cfg.domains[name]
        self.home = Path(cfg.runs) / name
        self.probing = f"probe.labels=[{','.join(self.own.labels)}]"

    def train(self, kind: str, *overrides: str) -> Path:
        """A training on the domain's data; later overrides win."""
        self.steps.launch(
            "train",
            f"name={self.name}/{kind}",
            f"runs={self.cfg.runs}",
            f"data={self.home / 'data'}",
            *self.own.train,
            *overrides,
        )
        return self.home / kind

    def run(self) -> dict[str, pd.DataFrame]:
        """Every step; the tables that the study shows of this domain."""
        self.steps.launch("generate", f"name={self.name}", f"runs={self.cfg.runs}", *self.own.data)
        search = self.search()
        best = self.cfg.search[best_arm(search)]
        final = self.train("final", *best, f"train.seeds={self.cfg.seeds}")
        self.steps.launch("probe", f"run={final}", "probe=full", self.probing)
        self.steps.launch("intervene", f"run={final}", f"intervention.labels=[{','.join(self.own.labels)}]")
        tables = {"search": search, "schedules": self.schedules(best), "generalisation": self.carried(best)}
        for name in ("probes", "concepts", "decodable_and_used", "interventions", "label_efficiency"):
            tables[name] = pd.read_csv(final / f"{name}.csv")
        return tables

    def search(self) -> pd.DataFrame:
        """Mean skill of linear probes on validation groups for every arm; no test group is looked at."""
        rows = []
        for arm, overrides in self.cfg.search.items():
            run, made = self.train(f"search/{arm}", *overrides), self.home / "search" / arm / "validation.csv"
            self.steps.once(["score on validation groups", str(run)], lambda run=run, made=made: self.score(run, made))
            table = pd.read_csv(made)
            rows.append(
                {"arm": arm, "overrides": " ".join(overrides), **mean_skill(table), **summary_of(read_usage(run)._asdict())}
            )
        return pd.DataFrame(rows)

    def score(self, run: Path, made: Path) -> None:
        """Linear probes fitted on training groups and scored on validation groups."""
        found = read_dataset(self.home / "data")
        keep, split = for_validation(found.split)
        encoded = encoded_of(run, found.batch, 0)
        table = probe_table(
            Probe(labels=self.own.labels, probes=["linear"], permutations=0),
            **inputs_of(select(found, keep)._replace(split=split)),
            encoded=encoded.take(keep),
        )
        write_text(made, table.to_csv(index=False))

    def schedules(self, best: list[str]) -> pd.DataFrame:
        """KL, active units and linear probes of every schedule, each with all encoder seeds."""
        rows = []
        for name, overrides in self.cfg.schedules.items():
            run = self.train(f"schedule/{name}", *best, *overrides, f"train.seeds={self.cfg.seeds}")
            self.steps.launch("probe", f"run={run}", self.probing, "probe.probes=[linear]", "probe.permutations=0")
            skill = mean_skill(pd.read_csv(run / "probes.csv"))
            rows += [{"schedule": name, **skill, **summary_of(read_usage(place)._asdict())} for place in folders_of(run)]
        return pd.DataFrame(rows)

    def carried(self, best: list[str]) -> pd.DataFrame:
        """Probes and bound on a checkpoint that nothing was fitted on, and on the other kind of action."""
        run, other = self.train("held", *best, f"train.hold_out={self.own.hold_out}"), []
        if self.own.other:
            self.steps.launch("generate", f"name={self.name}_other", f"runs={self.cfg.runs}", *self.own.other)
            other = [f"other={Path(self.cfg.runs) / f'{self.name}_other' / 'data'}"]
        self.steps.launch("generalise", f"run={run}", self.probing, *other)
        return pd.read_csv(run / "generalisation.csv")
