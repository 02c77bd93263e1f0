"""docs/study.md and its tables: what the study found, written from the tables of its runs."""

from pathlib import Path

import numpy as np
import pandas as pd

from probes.study.study import bars, best_arm, reached, schedule_verdict

HEAD = """# What the joint latent holds: the study

Made by `python -m launch.study`: its steps took {hours:.1f} hours added up, and {processor:.1f} hours of processor
(interrupted attempts left out; the same command goes on where it stopped). Every table is in `docs/study/` as CSV, with
the commands and their seconds in `steps.csv`. Settings: `conf/study.yaml`. Encoder seeds 0 to {last}; recording seed 0.
"""
OVERALL = """Over all domains: at least .90 of the supervised ceiling's skill above chance: {ceiling}. Above PCA of the
same width, paired, interval above zero: {pca}.
"""
SEARCH = """### Search, on validation groups alone

Mean over labels of (value − chance) / (1 − chance) of the linear probe of z_ω: fitted on training groups, scored on
validation groups, one encoder seed. No test group was looked at. Chosen: **{arm}**.
"""
BARS = """### Against the supervised ceiling and PCA, on test groups

`of_ceiling` is the share of the ceiling's skill above chance. At least .90 of the ceiling: {ceiling}. Above PCA of the
same width, paired, interval above zero: {pca}.
"""
EVERY = """Linear probes of every feature set:
"""
WORTH = """### What a label is worth to the bound

`nats`: by how much log π(a | o) of a test episode rises when the policy is told the label, with a 95 % interval over
test groups. The bound asks z_ω to hold a label only where that is more than β_ω times what the label costs, its
`entropy`; what the policies do not do differently, given what they observe, is not in the actions at all. `beyond` is
the same where both policies are told the first encoder's z_ω too: what holding more of the label could still gain.
"""
SCHEDULES = """### Cyclical, monotonic or constant β

Mean (standard deviation) over {n} encoder seeds, on the same test groups. {verdict}. Cyclical and constant β keep the
best of four comparisons of the validation bound, monotonic the last model: the schedule and the choice go together.
"""
USED = """### Decodable, and used by the policy

`decodable` is the linear probe less chance over all encoder seeds, `used` the effect of swapping z_ω in the simulator
under the first seed's model, both with intervals (docs/intervention.md).
"""
SWAPPED = """Of the rollouts that had their own episode's class, `changed` is the share that a swap takes to the other
episode's (the bar is .80 for two conventions), `stayed` the share that keeps it, `changed_control` that of a swap
within the class.
"""
CONCEPTS = """### Concepts

Of the first encoder seed (docs/concepts.md).
"""
CARRIED = """### Held-out checkpoint, and the other kind of action

(value − chance) / (1 − chance) of the linear probe of z_ω, and nats an action (docs/generalisation.md). A set that
lacks a class has fewer classes to tell apart.
"""


def write_study(
    docs: Path,
    tables: dict[str, dict[str, pd.DataFrame]],
    labels: dict[str, list[str]],
    steps: pd.DataFrame,
    seeds: int,
) -> None:
    """Write study.md and study/*.csv; a note written by hand in study/notes.md is put at its end."""
    folder = docs / "study"
    folder.mkdir(parents=True, exist_ok=True)
    steps.to_csv(folder / "steps.csv", index=False)
    spent = {"hours": steps.seconds.sum() / 3600, "processor": steps.processor_seconds.sum() / 3600}
    bar = pd.concat([bars(found["probes"], labels[name]) for name, found in tables.items()])
    met = {"ceiling": reached(bar, "near_ceiling"), "pca": reached(bar, "beats_pca")}
    parts = [HEAD.format(**spent, last=seeds - 1), OVERALL.format(**met)]
    for name, found in tables.items():
        for kind, table in found.items():
            if len(table):
                table.round(4).to_csv(folder / f"{name}_{kind}.csv", index=False)
        parts += [f"## {name}\n", *sections(found, labels[name])]
    notes = folder / "notes.md"
    parts += [notes.read_text()] if notes.exists() else []
    (docs / "study.md").write_text("\n".join(parts))


def sections(found: dict[str, pd.DataFrame], labels: list[str]) -> list[str]:
    """The Markdown of one domain."""
    search, bar = found["search"], bars(found["probes"], labels)
    parts = [SEARCH.format(arm=best_arm(search)), markdown(search)]
    parts += [BARS.format(ceiling=reached(bar, "near_ceiling"), pca=reached(bar, "beats_pca")), markdown(bar)]
    parts += [EVERY, markdown(by_features(found["probes"], labels)), WORTH, markdown(found["worth"])]
    if len(found["schedules"]):
        of_seeds = found["schedules"].drop(columns=["verdict", "seed"])
        n = of_seeds.schedule.tolist().count(of_seeds.schedule.iloc[0])
        parts += [SCHEDULES.format(n=n, verdict=schedule_verdict(of_seeds)), markdown(spread_of(of_seeds, "schedule"))]
    parts += [USED, markdown(found["decodable_and_used"]), SWAPPED, markdown(swapped(found["interventions"]))]
    parts += [CONCEPTS, markdown(found["concepts"])]
    return parts + [CARRIED, markdown(by_sets(found["generalisation"]))]


def swapped(interventions: pd.DataFrame) -> pd.DataFrame:
    """What a swap of z_omega changes, a row a label."""
    names = ["label", "reproduced", "repeatable", "changed", "changed_low", "changed_high", "changed_control", "stayed"]
    return pd.DataFrame(interventions[interventions.kind == "swap"], columns=[*names, "n_pairs", "n_groups"])


def by_features(probes: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """Values of the linear probe (and of the ceiling): a row a label, a column a feature set."""
    rows = probes[probes.label.isin(labels) & probes.probe.isin(["linear", "end_to_end"])]
    return rows.pivot_table(index="label", columns="features", values="value", sort=False).reset_index()


def by_sets(carried: pd.DataFrame) -> pd.DataFrame:
    """Skill above chance of z_omega's linear probe, and the bound: a row a label, a column a set of test episodes."""
    rows = carried[((carried.features == "z_omega") & (carried.probe == "linear")) | (carried.features == "model")]
    rows = rows.assign(value=((rows.value - rows.chance) / (1 - rows.chance)).fillna(rows.value))
    return rows.pivot_table(index="label", columns="scored_on", values="value", sort=False).reset_index()


def spread_of(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Mean (standard deviation) of every column over the rows of each group."""
    names = list(dict.fromkeys(table[by]))
    of_each = [table[table[by] == name].drop(columns=by) for name in names]
    told = {
        column: [f"{rows[column].mean():.2f} ({rows[column].std():.2f})" for rows in of_each] for column in of_each[0]
    }
    return pd.DataFrame({by: names, **told})


def markdown(table: pd.DataFrame) -> str:
    """A table in GitHub's Markdown; numbers with three decimals at most."""
    rows = [list(table.columns), ["---"] * len(table.columns)]
    rows += [[_cell(value) for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.3g}"
    return str(value).replace("|", "\\|").replace("\n", " ")
