"""Coupling in sentences: what the tables show, and what would make them untrustworthy."""

import math
from statistics import median

from probes.coupling.coupling import CouplingTables
from probes.levels import title_of
from probes.report.figures import records
from probes.table.findings import Row, number, ranged

FEW_GROUPS = 10


def coupling_sentences(tables: CouplingTables) -> list[str]:
    """One for the pairs, one for the regions; each says what to doubt."""
    pairs = [row for row in records(tables.pairs) if row["kind"] == "agents"]
    groups = max((row["n_groups"] for row in records(tables.pairs)), default=0)
    return [_of_pairs(pairs), _of_regions(records(tables.images), records(tables.trend)[-1], groups)]


def _of_pairs(pairs: list[Row]) -> str:
    rows = sorted((row for row in pairs if not row["note"]), key=lambda row: -row["excess"])
    if not rows:
        return f"Whether agents' clusters are coupled was not evaluated: {_why(pairs) or 'there is one agent'}."
    coupled, best, groups = [row for row in rows if row["p_holm"] < 0.05], rows[0], rows[0]["n_groups"]
    said = (
        f"{len(coupled)} of {len(rows)} pairs of agents have coupled clusters (p < .05 after Holm, permuting "
        f"{groups} groups); the clearest is {title_of(best['first'])} with {title_of(best['second'])}: NMI "
        f"{number(best['nmi'])}, where unrelated teams have {number(best['null_mean'])}"
    )
    doubts = [
        "a pair is also coupled where a team's agents only learn at the same pace",
        "z_α is read together with z_ω, which sees every agent (docs/coupling.md)",
    ]
    if groups < FEW_GROUPS:
        doubts.append(f"{groups} groups are few: no p below {best['p_least']:.2g} is possible")
    doubts += _too_many(rows)
    if any(row["left_out"] > row["n_episodes"] for row in rows):
        doubts.append("of some pair, more than half of the episodes have no cluster")
    return f"{said}. To doubt: {'; '.join(doubts)}."


def _of_regions(images: list[Row], trend: Row, groups: int) -> str:
    rows = [row for row in images if not row["note"]]
    if not rows:
        why = _why(images) or "there is one agent, or no cluster"
        return f"How tight regions are in other agents' latents was not evaluated: {why}."
    tight = [row for row in rows if row["p_holm"] < 0.05]
    said = (
        f"{len(tight)} of {len(rows)} images of a region in another agent's latent are tighter than the same "
        f"checkpoints of other teams (p < .05 after Holm); their median spread is "
        f"{number(median(row['spread'] for row in rows))} of that of all episodes"
    )
    doubts = [f"{groups} groups are few"] * (groups < FEW_GROUPS)
    doubts += [*_too_many(rows), "clusters are taken as given"]
    if math.isnan(trend["rho"]):
        return f"{said}. Spread against return: {trend['note']}. To doubt: {'; '.join(doubts)}."
    doubts += ["regions of different agents share episodes", "this is no cause"]
    return (
        f"{said}. Across {trend['n_regions']} regions the rank correlation of spread and return, both against the same "
        f"checkpoints of other teams, is {ranged(trend['rho'], trend['ci_low'], trend['ci_high'], sign='+')}; below 0, "
        f"tight images go with high returns. To doubt: {'; '.join(doubts)}."
    )


def _why(rows: list[Row]) -> str:
    """The reasons in the rows' notes, each once."""
    return "; ".join(sorted({row["note"].removeprefix("not evaluated: ") for row in rows}))


def _too_many(rows: list[Row]) -> list[str]:
    """Where even the least p that the permutations can give is not below .05 after Holm, in words."""
    least = rows[0]["p_least"] * len(rows)
    return [f"no p below {min(least, 1.0):.2g} is possible after Holm over {len(rows)}"] if least >= 0.05 else []
