"""NumPy archives (.npz) of padded episodes with a mask.

Letters: B episodes, T steps, N agents, F features, A action dimensions.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Shaped

from data_gen.ingest.readers.arrays import LABEL, SHAPES, check, names_in, scope_of
from data_gen.ingest.readers.npz import members, rows
from data_gen.ingest.recording import LabelColumn, Layout, Recording
from data_gen.trajectory import ActionSpec, InputError

MOST_CLASSES = 1000


class ArchiveReader:
    """An .npz archive, read an episode at a time; nothing is unpickled.

    obs [B,T,N,F], actions [B,T,N,A] of floats or [B,T,N] of choices from 0 on, and mask [B,T,N], true where an agent is
    there, are needed. There may be rewards [B,T,N] or [B,T], terminated [B], group [B], and label_<name> [B], [B,N],
    [B,T] or [B,T,N]: classes as whole numbers (negative: not known), truth values or text (empty: not known), and real
    numbers as floats. `names` [F] and `action_names` are of features and actions; `agents` [N] gives roles, without it
    agents are exchangeable. Steps without any agent at both ends are padding; so is an agent that never comes, unless
    agents have roles. `rate` is in steps a second, 0 where it is not known.

    Raises InputError, with file and array, for a shape or a dtype that is none of these.
    """

    def __init__(self, path: Path, rate: float = 0.0):
        if not math.isfinite(rate) or rate < 0:
            raise InputError(f"rate is {rate}; it must be steps a second, or 0 where it is not known.")
        self._path, self._found = Path(path).expanduser(), members(Path(path).expanduser())
        check(self._path, self._found)
        self._labels = {name: scope_of(self._path, self._found, name) for name in self._found if name.startswith(LABEL)}
        self._whole = names_in(self._path, self._found)
        self._classes, n_choices = self._first_pass()
        self.layout = self._layout(rate, n_choices)

    def recordings(self) -> Iterator[Recording]:
        """Episodes in order. Raises InputError at an infinite value, and where the archive is damaged."""
        names = [name for name in self._found if name in SHAPES or name in self._labels]
        for number, row in enumerate(rows(self._path, names)):
            yield self._recording(number, row)

    def _first_pass(self) -> tuple[dict[str, tuple[str, ...]], int]:
        """The classes of each label that has some, and how many choices there are."""
        classes: dict[str, set] = {name: set() for name in self._labels if self._found[name].dtype.kind != "f"}
        discrete, most = self._found["actions"].dtype.kind != "f", -1
        for number, row in enumerate(rows(self._path, ["mask", *(["actions"] if discrete else []), *classes])):
            if discrete:
                most = max(most, self._most_choice(number, row["actions"], row["mask"]))
                if most >= MOST_CLASSES:
                    raise InputError(
                        f"{self._path}: 'actions' is {most} in episode {number}; more than {MOST_CLASSES} choices "
                        f"cannot be told apart. Save a quantity as floats, [B,T,N,A]."
                    )
            for name in classes:
                classes[name] |= set(np.unique(row[name]).tolist())
                if len(classes[name]) > MOST_CLASSES:
                    raise InputError(
                        f"{self._path}: {name!r} has more than {MOST_CLASSES} classes. Save a quantity as floats."
                    )
        return {name: _class_names(found) for name, found in classes.items()}, most + 1

    def _most_choice(self, number: int, actions: Shaped[np.ndarray, "T N"], mask: Bool[np.ndarray, "T N"]) -> int:
        chosen = actions[mask]
        if len(chosen) and chosen.min() < 0:
            t, n = np.argwhere(mask & (actions < 0))[0]
            raise InputError(
                f"{self._path}: 'actions' is {actions[t, n]} in episode {number}, step {t}, agent {n}, where the mask "
                f"is true; choices count from 0. Mask the step, or repair the action."
            )
        return int(chosen.max()) if len(chosen) else -1

    def _layout(self, rate: float, n_choices: int) -> Layout:
        discrete = self._found["actions"].dtype.kind != "f"
        size = n_choices if discrete else self._found["actions"].shape[3]
        names = self._whole.get("action_names", tuple(f"action_{k}" for k in range(size)))
        if len(names) < size or (not discrete and len(names) > size):
            raise InputError(
                f"{self._path}: 'action_names' has {len(names)} names, but 'actions' has {size} "
                f"{'choices' if discrete else 'dimensions'}. Give each its name."
            )
        n_features = self._found["obs"].shape[3]
        return Layout(
            source="archive",
            parts=(),
            axes=(),
            features=self._whole.get("names", tuple(f"obs_{k}" for k in range(n_features))),
            action=ActionSpec("discrete" if discrete else "continuous", len(names)),
            action_names=names,
            agents=self._whole.get("agents", ()),
            rate=rate,
            units={},
            labels=tuple(
                LabelColumn(
                    name=name.removeprefix(LABEL),
                    scope=scope,
                    kind="class" if name in self._classes else "real",
                    classes=self._classes.get(name, ()),
                )
                for name, scope in self._labels.items()
            ),
            provenance={
                "file": self._path.name,
                "bytes": self._path.stat().st_size,
                "arrays": {name: [str(head.dtype), *head.shape] for name, head in self._found.items()},
            },
        )

    def _recording(self, number: int, row: Mapping[str, Shaped[np.ndarray, "..."]]) -> Recording:
        mask, where = row["mask"], f"episode {number}"
        steps, agents = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        if not len(steps):
            raise InputError(f"{self._path}: 'mask' is false everywhere in {where}. Leave the episode out.")
        time = np.arange(steps[0], steps[-1] + 1)
        if self.layout.agents:
            agents = np.arange(mask.shape[1])
        at = np.ix_(time, agents)
        present = mask[at]
        gone = ~present
        features = _floats(self._path, "obs", row["obs"][at], present, where)
        actions = row["actions"][at]
        if self.layout.action.kind == "discrete":
            actions = np.where(gone, -1, actions.astype(np.int32))
        else:
            actions = _floats(self._path, "actions", actions, present, where)
        rewards = row.get("rewards", np.zeros(mask.shape))
        rewards = rewards[at] if rewards.ndim == 2 else np.repeat(rewards[time, None], len(agents), 1)
        rewards = np.where(gone, 0, _floats(self._path, "rewards", rewards, present, where)).astype(np.float32)
        return Recording(
            name=str(number),
            group=str(row["group"]) if "group" in row else str(number),
            file=str(self._path),
            agents=self.layout.agents or tuple(str(agent) for agent in agents),
            time=time / self.layout.rate if self.layout.rate else time.astype(np.float64),
            present=present,
            position=np.zeros((*present.shape, 0, 0), np.float32),
            features=features,
            actions=actions,
            rewards=rewards,
            terminated=bool(row["terminated"]) if "terminated" in row else False,
            labels={
                name.removeprefix(LABEL): self._label(name, row[name], time, agents, present) for name in self._labels
            },
        )

    def _label(
        self,
        name: str,
        value: Shaped[np.ndarray, "..."],
        time: Shaped[np.ndarray, " T"],
        agents: Shaped[np.ndarray, " N"],
        present: Bool[np.ndarray, "T N"],
    ) -> Shaped[np.ndarray, "..."]:
        """A label of the steps and agents that are kept: classes by their number, -1 or NaN where it is not known."""
        scope = self._labels[name]
        cut = {"recording": (), "agent": agents, "frame": time, "frame and agent": np.ix_(time, agents)}[scope]
        kept = value[cut]
        if name in self._classes:
            codes = {text: code for code, text in enumerate(self._classes[name])}
            found = np.array([codes.get(_class_name(one), -1) for one in np.ravel(kept).tolist()], np.int32)
            found = found.reshape(kept.shape)
        else:
            found = np.asarray(kept, np.float32)
        if scope == "agent":
            present = np.asarray(present.any(0))
        elif scope != "frame and agent":
            return found
        return np.where(present, found, np.asarray(-1 if name in self._classes else np.nan, found.dtype))


def _class_name(value: object) -> str:
    """The class of a label's value, empty where it is not known."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if isinstance(value, int) and value < 0 else str(value)


def _class_names(values: set) -> tuple[str, ...]:
    return tuple(name for name in (_class_name(value) for value in sorted(values)) if name)


def _floats(
    path: Path, name: str, values: Shaped[np.ndarray, "T N *rest"], present: Bool[np.ndarray, "T N"], where: str
) -> Shaped[np.ndarray, "T N *rest"]:
    """Values in single precision, NaN where an agent is not there. Raises InputError at one that is infinite there."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32)
    mask = present.reshape(*present.shape, *[1] * (values.ndim - 2))
    wrong = np.argwhere(np.isinf(found) & mask)
    if len(wrong):
        place = ", ".join(f"{word} {at}" for word, at in zip(("step", "agent", "column"), wrong[0], strict=False))
        raise InputError(
            f"{path}: {name!r} is {values[tuple(wrong[0])]} in {where}, {place} (of what the mask keeps), which is not "
            f"finite in single precision. Mask it, or make it NaN where it was not measured."
        )
    return np.where(mask, found, np.float32(np.nan))
