"""Change points in sentences: what the tables show, and what would make them untrustworthy."""

from statistics import mean

from probes.changes.changes import ChangeTables
from probes.levels import title_of
from probes.report.figures import records
from probes.table.findings import Row, number

FEW_GROUPS, FEW_CHECKPOINTS = 10, 12


def change_sentences(tables: ChangeTables, false_alarms: float, group: str) -> list[str]:
    """One for each level, one for the agreement of agents and one for what to doubt.

    `false_alarms` is that of the settings, `group` that of `group_word`.
    """
    series, edges = records(tables.series), records(tables.edges)
    levels = dict.fromkeys(row["level"] for row in series)
    of_levels = [
        _of_level(level, _rows_of(level, series), _rows_of(level, edges), false_alarms, group) for level in levels
    ]
    agreement = records(tables.agreement)
    return [*of_levels, _agreement(agreement, group), _doubts(series, any(not row["note"] for row in agreement), group)]


def _rows_of(level: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["level"] == level]


def _of_level(level: str, series: list[Row], edges: list[Row], false_alarms: float, group: str) -> str:
    tested = [row["n_changes"] for row in series if not row["note"]]
    if not tested:
        return f"{title_of(level)}: {'; '.join(sorted({row['note'] for row in series}))}."
    said = f"{title_of(level)}: {sum(n > 0 for n in tested)} of {len(tested)} {group}s change"
    if any(tested):
        most = max(edges, key=lambda row: row["share"])
        said += (
            f", {number(mean(tested))} times on average, most often between checkpoints {most['before']} and "
            f"{most['after']} ({most['n_changed']} of {most['n_groups']} {group}s)"
        )
    return (
        f"{said}. Where nothing changed, {number(false_alarms * len(tested))} of these {len(tested)} would still be "
        f"said to change (false_alarms, {false_alarms:g}, of each)."
    )


def _agreement(agreement: list[Row], group: str) -> str:
    tested = [row for row in agreement if not row["note"]]
    if not tested:
        notes = sorted({row["note"].removeprefix("not evaluated: ") for row in agreement}) or ["there is one agent"]
        return f"Whether agents change together was not evaluated: {'; '.join(notes)}."
    best = max(tested, key=lambda row: row["share"] - row["null_mean"])
    which = f", the clearest of {len(tested)} pairs," if len(tested) > 1 else ""
    return (
        f"Of the changes of {title_of(best['first'])} and {title_of(best['second'])}{which} {number(best['share'])} "
        f"lie within one checkpoint of one of the other, {number(best['null_mean'])} where {group}s are permuted (p "
        f"{best['p_holm']:.2g} after Holm)."
    )


def _doubts(series: list[Row], agreed: bool, group: str) -> str:
    doubts = ["a slow drift is shown as steps, and more episodes find more of them"]
    groups, checkpoints = {row["group"] for row in series}, max(row["n_checkpoints"] for row in series)
    if len(groups) < FEW_GROUPS:
        doubts.append(f"{len(groups)} {group}s are few")
    if agreed and checkpoints < FEW_CHECKPOINTS:
        doubts.append(f"with {checkpoints} checkpoints, within one of each other says little")
    return f"To doubt: {'; '.join(doubts)}."
