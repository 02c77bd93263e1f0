"""Which arrays an archive of episodes may hold, of which shape and dtype.

Letters: B episodes, T steps, N agents, F features, A action dimensions.
"""

from collections.abc import Mapping
from pathlib import Path

from data_gen.ingest.readers.npz import Member, rows
from data_gen.trajectory import InputError

# Shapes by axis; where there are several, one of them.
SHAPES = {
    "obs": ["BTNF"],
    "actions": ["BTNA", "BTN"],
    "mask": ["BTN"],
    "rewards": ["BTN", "BT"],
    "terminated": ["B"],
    "group": ["B"],
}
LABEL_SHAPES = {"B": "recording", "BN": "agent", "BT": "frame", "BTN": "frame and agent"}
NAMES = {"names": "F", "action_names": "A", "agents": "N"}
KINDS = {"obs": "fiub", "actions": "fiu", "mask": "b", "rewards": "fiub", "terminated": "b", "group": "iuU"}
NEEDED = ("obs", "actions", "mask")
LABEL = "label_"


def check(path: Path, found: Mapping[str, Member]) -> None:
    """Raise InputError where an array is missing, unknown, or not of its shape and dtype."""
    for name in NEEDED:
        if name not in found:
            raise InputError(
                f"{path} has no array {name!r}; it has {', '.join(sorted(found))}. Save it under that name."
            )
    for name in found:
        if name not in SHAPES and name not in NAMES and not name.startswith(LABEL):
            raise InputError(
                f"{path} has an array {name!r}, which means nothing here. Known are {', '.join([*SHAPES, *NAMES])} and "
                f"{LABEL}<name>. Rename it, or leave it out."
            )
    sizes: dict[str, int] = {}
    for name, shapes in SHAPES.items():
        if name in found:
            _check_dtype(path, name, found[name], KINDS[name])
            if name == "actions":
                shapes = shapes[:1] if found[name].dtype.kind == "f" else shapes[1:]
            _check_shape(path, name, found[name], shapes, sizes)
    for axis, word in (("B", "episodes"), ("T", "steps"), ("N", "agents")):
        if sizes[axis] == 0:
            raise InputError(f"{path}: 'obs' has shape {list(found['obs'].shape)}: there are no {word}. Save it again.")


def _check_shape(path: Path, name: str, head: Member, shapes: list[str], sizes: dict[str, int]) -> None:
    """One of the shapes fits the sizes of axes that are known; `sizes` gains the others."""
    for axes in shapes:
        own = dict(zip(axes, head.shape, strict=False))
        if len(axes) == len(head.shape) and all(sizes.get(axis, size) == size for axis, size in own.items()):
            sizes.update(own)
            return
    want = " or ".join(str([sizes.get(axis, axis) for axis in axes]).replace("'", "") for axes in shapes)
    raise InputError(
        f"{path}: {name!r} is {head.dtype}{list(head.shape)}; it must be {want}, by the arrays before it (B episodes, "
        f"T steps, N agents, F features, A action dimensions)."
    )


def _check_dtype(path: Path, name: str, head: Member, kinds: str) -> None:
    if head.dtype.kind not in kinds:
        words = {"f": "floats", "i": "whole numbers", "b": "truth values", "U": "text"}
        allowed = ", ".join(word for kind, word in words.items() if kind in kinds)
        raise InputError(f"{path}: {name!r} is {head.dtype}; it must be of {allowed}. Convert it before saving.")


def scope_of(path: Path, found: Mapping[str, Member], name: str) -> str:
    """What a label belongs to, by its shape."""
    _check_dtype(path, name, found[name], "fiubU")
    sizes = dict(zip("BTNF", found["obs"].shape, strict=True))
    _check_shape(path, name, found[name], list(LABEL_SHAPES), dict(sizes))
    fits = [scope for axes, scope in LABEL_SHAPES.items() if found[name].shape == tuple(sizes[axis] for axis in axes)]
    if len(fits) > 1:
        raise InputError(
            f"{path}: {name!r} is {list(found[name].shape)}, and there are as many steps as agents, so it could be of "
            f"either. Save it as [B,T,N], or pad the steps."
        )
    return fits[0]


def names_in(path: Path, found: Mapping[str, Member]) -> dict[str, tuple[str, ...]]:
    """The arrays that are names. Raises InputError where they do not fit what they name."""
    sizes = dict(zip("BTNF", found["obs"].shape, strict=True))
    names = {}
    for name in (name for name in NAMES if name in found):
        _check_dtype(path, name, found[name], "U")
        _check_shape(path, name, found[name], [NAMES[name]], sizes)
        names[name] = tuple(str(row[name]) for row in rows(path, [name]))
        if len(set(names[name])) < len(names[name]):
            raise InputError(f"{path}: {name!r} has a name twice: {', '.join(names[name])}. Give each its own.")
    return names
