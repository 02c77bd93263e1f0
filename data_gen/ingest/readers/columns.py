"""Which columns of a tidy table mean what: a row is one agent at one time."""

import math
from dataclasses import dataclass, field

from data_gen.trajectory import InputError

# Seconds in a unit of time. A time column in no unit counts frames.
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}


@dataclass
class Columns:
    """Names of columns, and how they are read.

    `episode` empty: the file is one recording; `agent` empty: there is one agent. `group` is what the data are split
    by (empty: each episode for itself). `position` names the axes, such as [x,y]; where `parts` names body parts, the
    columns are nose_x, nose_y, tail_x, ... for parts [nose,tail] and position [x,y]. `features` are numbers, or classes
    that become one column each; `actions` are several numbers (continuous) or one column of classes or whole numbers
    (discrete). `labels` are classes (text, truth values, whole numbers) or real numbers; what they belong to is found.
    `categories` are features, an action or labels that are classes though they look like numbers; `numbers` are an
    action or labels that are quantities though they are whole. `terminated` is true where an episode ended by itself.
    `roles` says that an agent's name means something. `origin` is taken from places, a number an axis (empty: see
    `origin_of`). `rate` is in frames a second. units.time is s, ms, us, ns, min or h; without it the time column counts
    frames, whole numbers. Other units are by name (position, or a feature's). What is empty was not measured; an empty
    text, which CSV cannot tell from that, is a class in Parquet.
    """

    time: str = ""
    episode: str = ""
    agent: str = ""
    group: str = ""
    position: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    features: list[str] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    reward: str = ""
    terminated: str = ""
    labels: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    roles: bool = False
    origin: list[float] = field(default_factory=list)
    rate: float = 0.0
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        _check_named(self)
        _check_once(self)
        _check_kinds(self)
        _check_units(self)


def position_names(columns: Columns) -> list[str]:
    """The columns of places, one body part after another."""
    if not columns.parts:
        return list(columns.position)
    return [f"{part}_{axis}" for part in columns.parts for axis in columns.position]


def asked(columns: Columns) -> dict[str, str]:
    """Every column that is read, with the option that asks for it; a column that two ask for has the last."""
    return {column: option for option, column in _asked(columns)}


def _asked(columns: Columns) -> list[tuple[str, str]]:
    single = [(name, getattr(columns, name)) for name in ("time", "episode", "agent", "group", "reward", "terminated")]
    several = [(name, column) for name in ("features", "actions", "labels") for column in getattr(columns, name)]
    return [
        *((name, column) for name, column in single if column),
        *(("position", column) for column in position_names(columns)),
        *several,
    ]


def _check_named(columns: Columns) -> None:
    if not columns.time:
        raise InputError("columns.time names no column; say which one holds the time: columns.time=frame.")
    if columns.parts and not columns.position:
        raise InputError("columns.parts names body parts, but columns.position no axes: 'columns.position=[x,y]'.")
    if not columns.position and not columns.features:
        raise InputError(
            "Nothing is observed: name columns of places, 'columns.position=[x,y]', or of other observations, "
            "'columns.features=[speed,holding]'."
        )
    if columns.origin and len(columns.origin) != len(columns.position):
        raise InputError(
            f"columns.origin is {columns.origin}; it must be a number for each of columns.position, {columns.position}."
        )
    if columns.roles and not columns.agent:
        raise InputError("columns.roles is true, but columns.agent names no column that could hold a role.")
    for option, column in _asked(columns):
        if not column:
            raise InputError(f"columns.{option} has an empty name in it; name a column of the file.")


def _check_once(columns: Columns) -> None:
    seen: dict[str, str] = {}
    for option, column in _asked(columns):
        if column in seen:
            both = (
                f"twice by columns.{option}" if seen[column] == option else f"by columns.{seen[column]} and .{option}"
            )
            raise InputError(f"Column {column!r} is asked for {both}; a column has one meaning. Take one of them out.")
        seen[column] = option


def _check_kinds(columns: Columns) -> None:
    for option, allowed in (("categories", ("features", "actions", "labels")), ("numbers", ("actions", "labels"))):
        known = [column for name in allowed for column in getattr(columns, name)]
        for column in getattr(columns, option):
            if column not in known:
                raise InputError(
                    f"columns.{option} names {column!r}, which is in none of {', '.join(allowed)}. Name it there too."
                )
    for column in columns.categories:
        if column in columns.numbers:
            raise InputError(f"Column {column!r} is in columns.categories and in columns.numbers; it can be one.")
    if len(columns.actions) > 1 and (wrong := set(columns.actions) & set(columns.categories)):
        raise InputError(
            f"columns.actions are {', '.join(columns.actions)}, and {min(wrong)!r} is a category. Actions are several "
            f"numbers, or one column of classes."
        )


def _check_units(columns: Columns) -> None:
    if not all(map(math.isfinite, columns.origin)):
        raise InputError(f"columns.origin is {columns.origin}; it must be finite numbers.")
    if not math.isfinite(columns.rate) or columns.rate < 0:
        raise InputError(f"columns.rate is {columns.rate}; it must be frames a second, or 0 where it is not known.")
    unit = columns.units.get("time", "s")
    if unit not in SECONDS:
        raise InputError(
            f"columns.units.time is {unit!r}; it must be one of {', '.join(SECONDS)}. Leave it out where the column "
            f"counts frames, and say how many a second: columns.rate=25."
        )
    known = {"time", "position", *position_names(columns), *asked(columns)}
    for name in columns.units:
        if name not in known:
            raise InputError(f"columns.units names {name!r}, which no option asks for. Use one of: {sorted(known)}.")
