"""Labels that a user gives to recorded episodes: by value, or by a function of the finished episode. N agents.

A text, a truth value or a whole number is a class; a real number is a real one. One for each agent is a list in the
order of the agents, or a dict by agent.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from data_gen.collecting.episode import Played
from data_gen.trajectory import InputError, Labels, LabelSpec

Label = Any | Callable[[Played], Any]
OWN = ("team_return", "return_class", "progress")


def check_names(labels: Mapping[str, Label], known: set[str] | None) -> None:
    """Raise InputError for a name that cannot be stored, is the recorder's own, or differs from those of before."""
    for name in labels:
        if not re.fullmatch(r"[A-Za-z]\w*", str(name)):
            raise InputError(f"label {name!r}: a name is letters, digits and _, and begins with a letter.")
        if name in OWN:
            raise InputError(f"label {name!r} is one that the recorder makes itself; choose another name.")
    if known is not None and set(labels) != known:
        odd = sorted(set(labels) ^ known)
        raise InputError(
            f"label {odd[0]!r} is not given to all episodes: those before have {sorted(known) or 'none'}, these "
            f"{sorted(labels) or 'none'}. Give every call of record the same labels."
        )


def label(labels: Mapping[str, Label], played: Played, where: str) -> dict[str, Any]:
    """The values of an episode's labels: a text, truth value or number, or a list of them, one an agent."""
    found = {}
    for name, given in labels.items():
        told = f"{where}: label {name!r}"
        value: Any = given(played) if callable(given) else given
        if isinstance(value, Mapping):
            if lacking := [agent for agent in played.agents if agent not in value]:
                raise InputError(f"{told} has no value for {lacking[0]}.")
            value = [value[agent] for agent in played.agents]
        try:
            shape = np.shape(value)
        except ValueError:
            raise InputError(f"{told} is a list of lists of different lengths.") from None
        if shape not in ((), (len(played.agents),)):
            raise InputError(
                f"{told} has shape {shape}; it is one value, or one for each of {len(played.agents)} agents."
            )
        if shape == ():
            found[name] = _plain(value, told)
            continue
        found[name] = [_plain(one, told) for one in value]
    return found


def _plain(value: Any, told: str) -> str | bool | int | float:
    plain = np.asarray(value).item()  # also of NumPy's and JAX's own kinds
    if not isinstance(plain, str | bool | int | float):
        raise InputError(f"{told} is {type(value).__name__}; it must be a text, a truth value or a number.")
    return plain


def gather(rows: list[dict[str, Any]]) -> Labels:
    """The labels of all episodes; classes in the order of their names, or of their numbers.

    Raises InputError where one label is sometimes of a class and sometimes real, or sometimes of an agent.
    """
    values, specs = {}, []
    for name in rows[0]:
        column = [row[name] for row in rows]
        shapes = {np.shape(one) for one in column}
        if len(shapes) > 1:
            raise InputError(f"label {name!r} is one value in some episodes, and one an agent in others.")
        flat = [one for row in column for one in (row if isinstance(row, list) else [row])]
        kinds = sorted({type(one).__name__ for one in flat})
        if len(kinds) > 1:
            raise InputError(f"label {name!r} is of kinds {', '.join(kinds)} in different places; it must be of one.")
        if kinds == ["float"]:
            values[name] = np.array(column, np.float32)
            specs.append(LabelSpec(name, name, "real"))
            continue
        classes = sorted(set(flat))
        order = {one: k for k, one in enumerate(classes)}
        values[name] = np.array([order[one] for one in flat], np.int32).reshape(len(rows), *shapes.pop())
        specs.append(LabelSpec(name, name, "class", classes=tuple(str(one) for one in classes)))
    return Labels(values=values, specs=tuple(specs))
