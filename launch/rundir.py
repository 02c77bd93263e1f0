"""A run's folder: one job at a time, one config for ever, and a note of what code made it."""

import fcntl
import importlib.metadata
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from data_gen.trajectory import InputError
from marl_vae.files import write_text

JOBS = "jobs"  # a setting of this name says how work is shared out, and changes no result
PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", "scikit-learn", "zarr", "hydra-core")


@contextmanager
def claim(run: Path, sections: dict[str, Any], seeds: dict[str, int], *, share: bool = False) -> Iterator[None]:
    """Hold the folder while a stage works in it.

    `sections` are the parts of the config that the stage answers for. A folder that has another value for one of them
    is refused with InputError; so is one in which another process works, unless both only record shards and so `share`
    it, and one that cannot be made.
    """
    new = json.loads(json.dumps({name: _plain(part) for name, part in sections.items()}))
    try:
        _refuse_other(run, new)
        run.mkdir(parents=True, exist_ok=True)
        lock, turn = (run / ".lock").open("w"), (run / ".turn").open("w")
    except OSError as error:
        raise InputError(
            f"{run} cannot be made a run's folder ({error}). Choose another name=, runs= or run=."
        ) from None
    with lock, turn:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if share else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"Another process works in {run}. Wait for it, or choose another name= or run=.") from None
        fcntl.flock(turn, fcntl.LOCK_EX)  # those that share the folder write its config one after another
        _refuse_other(run, new)
        old = config_of(run) if (run / "config.yaml").exists() else {}
        write_text(run / "config.yaml", yaml.safe_dump(old | new, sort_keys=False))
        _note(run / "provenance.json", provenance(seeds))
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield


def _refuse_other(run: Path, new: dict[str, Any]) -> None:
    old = config_of(run) if (run / "config.yaml").is_file() else {}
    both = old.keys() & new.keys()
    changed = _differences({name: old[name] for name in both}, {name: new[name] for name in both})
    if changed:
        raise InputError(
            f"{run} was made with another config: {'; '.join(changed[:5])}. Go on with the old values, choose another "
            f"name=, or remove the folder."
        )


def _plain(part: Any) -> Any:
    return asdict(part) if hasattr(part, "__dataclass_fields__") else part


def _differences(old: Any, new: Any, where: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in sorted((old.keys() | new.keys()) - {JOBS})
            for line in _differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
        ]
    return [] if old == new else [f"{where} is {old!r} there and {new!r} here"]


def config_of(run: Path) -> dict[str, Any]:
    """The config that a run was made with; InputError where the folder is none, or the file was cut."""
    try:
        found = yaml.safe_load((run / "config.yaml").read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{run} is not the folder of a run: it has no config.yaml. Check the path.") from None
    except yaml.YAMLError as error:
        raise InputError(damaged(run / "config.yaml", error)) from None
    if not isinstance(found, dict):
        raise InputError(damaged(run / "config.yaml", "it holds no settings"))
    return found


def damaged(path: Path, why: object) -> str:
    """What to say of a run's file that cannot be read."""
    return (
        f"{path} is damaged ({' '.join(str(why).split())}). Put a copy back, or make the run again under another name=."
    )


def data_of(run: Path) -> Path:
    """The data set that a run was trained on: the one that its config names, or its own."""
    return Path(config_of(run).get("data") or run / "data")


def _note(path: Path, entry: dict[str, Any]) -> None:
    """Add how this stage was run to the list of all; a command given again adds nothing."""
    try:
        entries = json.loads(path.read_text()) if path.exists() else []
    except json.JSONDecodeError as error:
        raise InputError(damaged(path, error)) from None
    if entry not in entries:
        write_text(path, json.dumps([*entries, entry], indent=1))


def provenance(seeds: dict[str, int]) -> dict[str, Any]:
    """Code revision, command, seeds and versions."""
    return {
        "revision": _revision(),
        "command": " ".join(["python -m", f"launch.{Path(sys.argv[0]).stem}", *sys.argv[1:]]),
        "seeds": seeds,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _revision() -> str:
    """The commit of this code, with a mark where files differ from it."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip() or "unknown"
