"""A data set from somebody's own environment and policies, in a few lines:

    with Recorder("runs/mine/data", seed=0) as recorder:
        for group, policy in enumerate(policies):
            recorder.record(env, policy, episodes=16, group=group, labels={"skill": "expert"})

`read_dataset` reads it, and `python -m launch.train name=mine` or `data=runs/mine/data` trains on it.
"""

import platform
import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from data_gen.collecting.environments import environment_of
from data_gen.collecting.episode import Policy, play
from data_gen.collecting.labels import Label, check_names, label
from data_gen.collecting.shards import blocks_of, labels_of, meta_of, shard_of
from data_gen.collecting.spool import Spool
from data_gen.ingest.card import write_card
from data_gen.storage.dataset import write_shard
from data_gen.storage.leftovers import clear_leftovers, temporary
from data_gen.storage.split import scale_sizes, sizes_for
from data_gen.team import Team
from data_gen.trajectory import SPLITS, InputError

MOST = 2**31 - 1


class Recorder:
    """Collects episodes, and writes them to `root` when it is closed; before that nothing is there.

    `split` is three numbers of groups, to train, validate and test on; more or fewer groups are dealt in proportion.
    Without it they are one half, a sixth and a third, and one group or two are enough, to be embedded only. The same
    seed gives the same episodes. Finished episodes wait in a hidden folder beside `root`, so memory holds one of them,
    and when closing one shard; the folder goes with the process. Raises InputError where `root` is in use.
    """

    def __init__(self, root: str | Path, split: Sequence[int | float] | None = None, seed: int = 0):
        if split is not None:
            scale_sizes(split, len(SPLITS))
        _check_whole("seed", seed, MOST)
        self._root, self._seed = Path(root).expanduser(), int(seed)
        self._split = None if split is None else [int(size) for size in split]
        if self._root.exists() and not (self._root.is_dir() and not any(self._root.iterdir())):
            raise InputError(f"{self._root} is not empty. Remove it, or record into another folder.")
        self._root.parent.mkdir(parents=True, exist_ok=True)
        clear_leftovers(self._root)
        self._folder = temporary(self._root)
        self._folder.mkdir()
        self._spool, self._name = Spool(self._folder), ""
        self._team: Team | None = None
        self._labels: set[str] | None = None
        self._discard = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._discard()

    def record(
        self,
        env: Any,
        policy: Policy,
        *,
        episodes: int,
        group: int,
        checkpoint: int = 0,
        labels: Mapping[str, Label] | None = None,
        max_steps: int | None = None,
        begin: Callable[[], None] | None = None,
    ) -> None:
        """Play episodes, all of which are kept, or none where something goes wrong.

        `env` is a PettingZoo parallel environment or a functional one as JaxMARL has them. `policy` takes observations
        by agent and returns actions by agent, or is a dict of one an agent; its second argument is where to draw random
        numbers from, NumPy's Generator or a JAX key. `group` is what is split by, such as a training run, and
        `checkpoint` the policy's age in it. `labels` are values, or functions of a finished episode (see `Played`), of
        the episode or of each agent. `max_steps` cuts an episode. `begin` is called before each one, to clear what a
        policy remembers. Raises InputError for arguments or numbers that do not fit, with their place.
        """
        for name, value in (("episodes", episodes), ("group", group), ("checkpoint", checkpoint)):
            _check_whole(name, value, MOST, 1 if name == "episodes" else 0)
        if max_steps is not None:
            _check_whole("max_steps", max_steps, MOST, 1)
        self._check_open()
        labels = dict(labels or {})
        check_names(labels, self._labels)
        world, before = environment_of(env), len(self._spool.entries)
        self._check_same(world.team, world.name)
        try:
            for _ in range(episodes):
                number = self._spool.count(group, checkpoint)
                where = f"{world.name}, group {group}, checkpoint {checkpoint}, episode {number}"
                if begin is not None:
                    begin()
                played = play(world, policy, self._seed_of(group, checkpoint, number), max_steps, where)
                self._spool.add(played, group, checkpoint, label(labels, played, where))
        except BaseException:
            self._spool.cut(before)
            raise
        self._team, self._name, self._labels = world.team, world.name, set(labels)

    def close(self) -> None:
        """Write the data set; nothing more can be recorded after that.

        Raises InputError where there are too few groups, or labels do not fit together; then what was recorded is still
        there, and more can be added.
        """
        if not self._discard.alive:
            return
        if self._team is None:
            raise InputError(f"{self._root}: nothing was recorded, so there is nothing to write.")
        scaled = sizes_for(self._split, len({entry.group for entry in self._spool.entries}))
        labels, team = labels_of(self._spool), self._team
        meta = meta_of(self._name, team, self._split or scaled, self._seed)
        made = {"python": platform.python_version(), "numpy": np.__version__, "seeds": {"recorder": self._seed}}
        blocks, whole = blocks_of(self._spool, team), self._folder / "whole"
        shutil.rmtree(whole, ignore_errors=True)
        for index, rows in enumerate(blocks):
            write_shard(whole, index, len(blocks), shard_of(self._spool, rows, team, meta, labels), made)
        write_card(whole)
        try:
            whole.rename(self._root)
        except OSError as error:
            raise InputError(f"{self._root} cannot be written ({error}). Another process may have made it.") from None
        self._discard()

    def _check_open(self) -> None:
        if not self._discard.alive:
            raise InputError(f"{self._root} was closed; record into another folder.")

    def _check_same(self, team: Team, name: str) -> None:
        if self._team is None:
            return
        for what in ("seen", "done"):
            before, now = (list(getattr(one, what).items()) for one in (self._team, team))
            if before != now:
                told = "observations" if what == "seen" else "actions"
                raise InputError(
                    f"{name} has other agents or {told} than {self._name}, which was recorded before: {dict(now)} "
                    f"and {dict(before)}. A data set is of one team; record the other into a folder of its own."
                )

    def _seed_of(self, group: int, checkpoint: int, number: int) -> int:
        """The seed of an episode, the same whatever else is recorded."""
        return int(np.random.SeedSequence([self._seed, group, checkpoint, number]).generate_state(1)[0] >> 1)


def _check_whole(name: str, value: Any, most: int, least: int = 0) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise InputError(f"{name}={value!r} must be a whole number of at least {least}.")
