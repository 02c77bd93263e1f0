"""The study of docs/study.md, resumable and cached step by step: `python -m launch.study`."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import InputError, select
from launch.embed import read_usage
from launch.entry import enter
from launch.probe import encoded_of, folders_of, inputs_of
from launch.rundir import claim
from launch.schema import Study, StudyDomain
from marl_vae.files import write_text
from probes.probe import Probe
from probes.study import best_arm, for_validation, mean_skill, summary_of, write_study
from probes.table import probe_table


class Steps:
    """What was done, by command, in `folder`; a step that was done is not done again."""

    def __init__(self, folder: Path):
        self._folder = folder

    def launch(self, entry: str, *overrides: str) -> None:
        """`python -m launch.<entry> <overrides>` in a process of its own, which takes its memory with it."""
        command = ["python", "-m", f"launch.{entry}", *overrides]
        self.once(command, lambda: _run(command))

    def once(self, what: list[str], do: Callable[[], None]) -> None:
        """Do it unless it was done, and note how long it took."""
        stamp = self._folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}.json"
        if stamp.exists():
            return
        print(" ".join(what), flush=True)
        start = time.monotonic()
        do()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        write_text(stamp, json.dumps({"what": what, "seconds": round(time.monotonic() - start)}))

    def times(self) -> pd.DataFrame:
        """Every step that was done, and its seconds."""
        notes = [json.loads(stamp.read_text()) for stamp in sorted(self._folder.glob("*.json"))]
        return pd.DataFrame([{"step": " ".join(note["what"]), "seconds": note["seconds"]} for note in notes])


def _run(command: list[str]) -> None:
    ended = subprocess.run([sys.executable, *command[1:]])
    if ended.returncode:
        raise InputError(f"{' '.join(command)} ended with {ended.returncode}; what it said stands above.")


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
                {"arm": arm, "overrides": " ".join(overrides), **mean_skill(table), **summary_of(read_usage(run))}
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
            rows += [{"schedule": name, **skill, **summary_of(read_usage(place))} for place in folders_of(run)]
        return pd.DataFrame(rows)

    def carried(self, best: list[str]) -> pd.DataFrame:
        """Probes and bound on a checkpoint that nothing was fitted on, and on the other kind of action."""
        run, other = self.train("held", *best, f"train.hold_out={self.own.hold_out}"), []
        if self.own.other:
            self.steps.launch("generate", f"name={self.name}_other", f"runs={self.cfg.runs}", *self.own.other)
            other = [f"other={Path(self.cfg.runs) / f'{self.name}_other' / 'data'}"]
        self.steps.launch("generalise", f"run={run}", self.probing, *other)
        return pd.read_csv(run / "generalisation.csv")


def main(cfg: Study) -> None:
    """Every domain in turn; then docs/study.md and its tables."""
    root = Path(cfg.runs)
    with claim(root, {"study": cfg}, {"train": 0, "encoders": cfg.seeds}):
        steps = Steps(root / "steps")
        tables = {name: Part(cfg, name, steps).run() for name in cfg.domains}
        write_study(Path(cfg.docs), tables, {name: own.labels for name, own in cfg.domains.items()}, steps.times())
    print(f"study {Path(cfg.docs) / 'study.md'}")


if __name__ == "__main__":
    enter("study", main)
