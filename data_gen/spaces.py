"""Observation and action spaces of Gymnasium, JaxMARL and Minari, as columns of numbers with names.

Spaces are told apart by the names of their classes, so that none of these libraries has to be there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from data_gen.trajectory import InputError

BOX, CHOICE, DICT, TUPLE = "Box", "Discrete", "Dict", "Tuple"
KINDS = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple")


class Space(NamedTuple):
    """A Box, a Discrete, or a Dict or Tuple of spaces. `choices` of a Discrete begin with `start`.

    A MultiBinary is a Box, and a MultiDiscrete a Tuple of Discrete; `packed` says that its values come as one array.
    """

    kind: str
    shape: tuple[int, ...] = ()
    choices: int = 0
    start: int = 0
    parts: Mapping[str, "Space"] = {}
    packed: bool = False


def space_of(found: Any, where: str) -> Space:
    """The space that an environment declares. Raises InputError, naming `where`, for a kind that is not numbers."""
    kind = next((one.__name__ for one in type(found).__mro__ if one.__name__ in KINDS), type(found).__name__)
    if kind == "Dict":
        return Space(DICT, parts={str(key): space_of(one, f"{where}.{key}") for key, one in found.spaces.items()})
    if kind == "Tuple":
        return Space(TUPLE, parts={str(k): space_of(one, f"{where}.{k}") for k, one in enumerate(found.spaces)})
    if kind in ("Box", "MultiBinary"):
        return Space(BOX, shape=tuple(int(size) for size in found.shape))
    if kind == "Discrete":
        return Space(CHOICE, choices=int(found.n), start=int(getattr(found, "start", 0)))  # JaxMARL has none
    if kind == "MultiDiscrete":
        sizes = getattr(found, "nvec", None)
        sizes = found.num_categories if sizes is None else sizes  # as JaxMARL calls it
        return _several(np.asarray(sizes), np.asarray(getattr(found, "start", 0)), where)
    raise InputError(_refused(kind, where))


def space_of_json(found: Any, where: str) -> Space:
    """The space that Minari wrote as JSON. Raises InputError, naming `where`."""
    try:
        return _of_json(found, where)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} is not a space ({type(error).__name__}: {error}). Get the file again.") from None


def _of_json(found: Any, where: str) -> Space:
    kind = found["type"]
    if kind == "Dict":
        return Space(DICT, parts={key: _of_json(one, f"{where}.{key}") for key, one in found["subspaces"].items()})
    if kind == "Tuple":
        return Space(TUPLE, parts={str(k): _of_json(one, f"{where}.{k}") for k, one in enumerate(found["subspaces"])})
    if kind == "Box":
        return Space(BOX, shape=tuple(int(size) for size in found["shape"]))
    if kind == "MultiBinary":
        return Space(BOX, shape=tuple(int(size) for size in np.atleast_1d(found["n"])))
    if kind == "Discrete":
        return Space(CHOICE, choices=int(found["n"]), start=int(found["start"]))
    if kind == "MultiDiscrete":
        return _several(np.asarray(found["nvec"]), np.asarray(found["start"]), where)
    raise InputError(_refused(kind, where))


def _several(sizes: np.ndarray, starts: np.ndarray, where: str) -> Space:
    if sizes.ndim != 1:
        raise InputError(f"{where} is a MultiDiscrete of shape {sizes.shape}; only one axis is read. Flatten it.")
    starts = np.broadcast_to(starts, sizes.shape)
    each = {
        str(k): Space(CHOICE, choices=int(size), start=int(start))
        for k, (size, start) in enumerate(zip(sizes, starts, strict=True))
    }
    return Space(TUPLE, parts=each, packed=True)


def _refused(kind: str, where: str) -> str:
    return (
        f"{where} is a space of kind {kind}, which is not read; there are {', '.join(KINDS)}. Wrap it into one of them."
    )


def column_names(space: Space, name: str = "") -> tuple[str, ...]:
    """A name for each column of `columns`: the keys that lead to it, a number where there are several, joined by _."""
    if space.kind in (DICT, TUPLE):
        return tuple(one for key, part in space.parts.items() for one in column_names(part, f"{name}_{key}"))
    count = space.choices if space.kind == CHOICE else int(np.prod(space.shape, dtype=int))
    plain = name.removeprefix("_")
    if space.kind == BOX and not space.shape:
        return (plain or "0",)
    return tuple(f"{plain}_{k}".removeprefix("_") for k in range(count))


def columns(space: Space, values: Any, lead: tuple[int, ...], where: str) -> Float32[np.ndarray, "..."]:
    """Values of the space, with leading axes `lead`, as columns on the last axis; a choice becomes one of n.

    Raises InputError, naming `where` and the part, for a value that is missing, of another shape, or no number.
    """
    found = [_leaf_columns(one, value, lead, place) for one, value, place in _leaves(space, values, where)]
    return np.concatenate(found, axis=-1) if found else np.zeros((*lead, 0), np.float32)


def _leaves(space: Space, values: Any, where: str) -> Iterator[tuple[Space, Any, str]]:
    if space.kind in (BOX, CHOICE):
        yield space, values, where
        return
    for number, (key, part) in enumerate(space.parts.items()):
        if space.packed:
            value = np.asarray(values)[..., number]
        else:
            try:
                value = values[key] if space.kind == DICT else values[number]
            except (KeyError, IndexError, TypeError):
                raise InputError(f"{where} has no part {key!r}, which its space has.") from None
        yield from _leaves(part, value, f"{where}.{key}")


def _leaf_columns(space: Space, value: Any, lead: tuple[int, ...], where: str) -> np.ndarray:
    if space.kind == CHOICE:
        return np.eye(space.choices, dtype=np.float32)[choice(space, value, lead, where)]
    found = _numbers(value, where)
    if found.shape != (*lead, *space.shape):
        raise InputError(f"{where} has shape {found.shape}; by its space it is {(*lead, *space.shape)}.")
    with np.errstate(over="ignore"):  # what becomes infinite is refused where values have to be finite
        return found.reshape(*lead, int(np.prod(space.shape, dtype=int))).astype(np.float32)


def choice(space: Space, value: Any, lead: tuple[int, ...], where: str) -> Int32[np.ndarray, "..."]:
    """Choices of a Discrete space, counted from 0. Raises InputError where one is no choice of it."""
    found = _numbers(value, where)
    if found.size == np.prod(lead, dtype=int):
        found = found.reshape(lead)  # a library may give a choice an axis of length 1
    if found.shape != lead:
        raise InputError(f"{where} has shape {found.shape}; by its space it is {lead}.")
    numbers = found - space.start
    wrong = np.argwhere((numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= space.choices))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise InputError(
            f"{where} is {found[place]}{f' at {list(place)}' if place else ''}; by its space it is one of "
            f"{space.start}..{space.start + space.choices - 1}."
        )
    return np.asarray(numbers, np.int32)


def _numbers(value: Any, where: str) -> np.ndarray:
    try:
        found = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where} is not an array of numbers ({error}).") from None
    if found.dtype.kind not in "biuf":
        raise InputError(f"{where} holds {found.dtype}, which is not numbers.")
    return found


def is_one_choice(space: Space, where: str) -> bool:
    """True of a Discrete, False of a space without any. Raises InputError where a choice is a part of something."""
    if space.kind != CHOICE and any(one.kind == CHOICE for one in _tree(space)):
        raise InputError(
            f"{where} is several choices at once. Number the combinations, so that an action is one Discrete choice."
        )
    return space.kind == CHOICE


def _tree(space: Space) -> Iterator[Space]:
    yield space
    for part in space.parts.values():
        yield from _tree(part)
