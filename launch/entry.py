"""What every entry point shares: hydra, error messages that name the nearest valid name, and exit codes.

0: done. 2: the input is wrong, and a paragraph says how. 3: a training ended in numbers that are not finite. 1:
something else failed. 130: interrupted.
"""

import difflib
import errno
import hashlib
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from data_gen.trajectory import InputError
from launch.schema.typed import CONF, composed, typed
from launch.steps import StepFailed

GROUP_OPTION = r"Could not find '([^']+)'.*Available options in '([^']+)': (.*?)(?: Config search.*)?$"
NO_GROUP = r"Could not override '([^']+)'. (?:No match in the defaults list|Did you mean to override)"
# Groups that lie within another, and how they are chosen.
WITHIN = {
    "engine": " With domain=mujoco write 'engine@domain.engine=native' or 'domain.engine.name=native'.",
    "experiment": " An experiment has settings of every stage: run it by launch.pipeline, which skips what is done.",
}
HOME = r"([\w.]+=)(~[^\"',]*)"  # a shell leaves ~ alone after key=, and hydra takes it in quotes only
LOCKED = (errno.EACCES, errno.EPERM, errno.EROFS)  # a folder of another user, or a disk that is read-only
DIVERGED = 3
LONGEST = 100  # characters of a sweep folder's name; a file system takes 255 bytes


class JobFailed(RuntimeError):
    """A job failed and has said why; its first argument is the exit code."""


def enter(config: str, stage: Callable[[Any], None]) -> None:
    """Compose `conf/<config>.yaml` with the command line and run the stage on it, once or once a job of a sweep."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # hydra then raises, where it would print a traceback and exit with 1

    sys.argv[1:] = [re.sub(f"^{HOME}$", r'\1"\2"', word) for word in sys.argv[1:]]
    codes = []

    def job(cfg) -> None:
        try:
            refuse_one_folder(cfg)
            stage(typed(cfg))
        except Exception as error:
            codes.append(_say(error, config))
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                raise JobFailed(codes[-1]) from None  # hydra goes on with the other jobs, and raises this at the end

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=config)(job)()
        sys.exit(codes[0] if codes else 0)
    except JobFailed as failed:
        print(f"{max(len(codes), 1)} job(s) of the sweep failed; what each said stands above.", file=sys.stderr)
        sys.exit(failed.args[0])
    except KeyboardInterrupt:
        print("\nInterrupted. The same command goes on where this one stopped.", file=sys.stderr, flush=True)
        os._exit(130)  # leaving while XLA still compiles in another thread can crash the interpreter
    except Exception as error:
        sys.exit(_say(error, config))


def refuse_one_folder(cfg: DictConfig) -> None:
    """Raise InputError where the jobs of a sweep would all work in the folder of one run."""
    swept = any(re.match(r"run=.*[,(*]", word) for word in sys.argv)
    if HydraConfig.get().mode == RunMode.MULTIRUN and "run" in cfg and not swept:
        raise InputError(
            f"the jobs of this sweep would write over each other in {cfg.run}: sweep over runs, as in "
            "run=first,second, or give each setting a command of its own."
        )


def sweep_folder() -> str:
    """In a sweep, the part of the path that sets this job's folder apart: its own overrides but name, logger, only."""
    if not HydraConfig.initialized() or HydraConfig.get().mode != RunMode.MULTIRUN:
        return ""
    own = HydraConfig.get().job.override_dirname
    plain = re.sub(r"[^\w.=,+-]", "_", own)
    if plain == own and len(own) <= LONGEST:
        return own
    return f"{plain[:LONGEST]}-{hashlib.sha256(own.encode()).hexdigest()[:8]}"


def _say(error: Exception, config: str) -> int:
    """Tell the user what went wrong; the exit code."""
    if isinstance(error, InputError):
        print(f"error: {error}", file=sys.stderr)
        return 2
    if isinstance(error, HydraException | OmegaConfBaseException):
        print(f"error: {_explain(error, config)}", file=sys.stderr)
        return 2
    if isinstance(error, StepFailed):
        print(f"error: {error}", file=sys.stderr)
        return error.code
    if isinstance(error, OSError) and error.errno in LOCKED:
        print(
            f"error: {error.filename} cannot be written or read ({error.strerror}). Change who may, or work on a copy "
            "of the folder.",
            file=sys.stderr,
        )
        return 2
    if "Unexpected type for root: NoneType" in str(error):
        print("error: a key is set below a part that is off. Turn the part on, as probe=full does.", file=sys.stderr)
        return 2
    from marl_vae.member import TrainingDiverged  # takes a second to import

    if isinstance(error, TrainingDiverged):
        print(f"error: {error}", file=sys.stderr)
        return DIVERGED
    traceback.print_exception(error)
    return 1


def _explain(error: Exception, config: str) -> str:
    """Hydra's complaint in one paragraph, with the nearest valid name where a name was wrong."""
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    text = " ".join(str(error).split())
    if option := re.search(GROUP_OPTION, text):
        wrong, group, options = option.groups()
        hint = nearest(wrong.split("/")[-1], options.split())
        return f"{wrong!r} does not exist.{hint} {group} is one of: {options}."
    if group := re.search(NO_GROUP, text):
        hint = WITHIN.get(group[1]) or nearest(group[1], [*_known_keys(config), *_groups()])
        return f"{group[1]!r} is no config group of this entry point.{hint} `--help` lists them all."
    if missing := re.search(r"[Kk]ey '([^']+)' (?:is )?not in", f"{text} {cause}"):
        full = re.search(r"Could not override '([^']+)'", text)
        wrong = full[1] if full else missing[1]
        known = _known_keys(config)
        if wrong in known:  # a mapping that was given whole, as hydra does not take one
            return f"{wrong!r} takes a key at a time, with a plus sign: +{wrong}.{missing[1]}=…"
        hint = nearest(wrong, [*known, "experiment"])
        return f"there is no config key {wrong!r}.{hint} `--help` lists them all."
    if str(cause) not in str(error):
        text = f"{text} {' '.join(str(cause).split())}"
    if "is not a subclass of EngineChoice" in text:
        text += WITHIN["engine"]
    if "is not a ListConfig" in text:
        text += " A list is written in brackets: 'key=[first,second]'."
    if "LexerNoViableAlt" in text or "See https://hydra.cc" in text:
        text += " A value with spaces or signs wants quotes of its own: 'key=\"some value\"'."
    return text


def nearest(wrong: str, known: list[str]) -> str:
    """A hint at the valid name that is most like a wrong one, or nothing."""
    close = difflib.get_close_matches(wrong, known, n=1, cutoff=0.4)
    return f" Did you mean {close[0]!r}?" if close else ""


def _groups() -> list[str]:
    return [folder.name for folder in CONF.iterdir() if folder.is_dir()]


def _known_keys(config: str) -> list[str]:
    """All keys of the config, with the groups that the command line chose where they compose."""
    chosen = [word for word in sys.argv[1:] if word.split("=")[0].split("@")[0] in _groups()]
    for overrides in (chosen, []):
        try:
            return _paths(OmegaConf.to_container(composed(config, overrides)))
        except HydraException:
            continue
    return []


def _paths(tree: Any, prefix: str = "") -> list[str]:
    if not isinstance(tree, dict):
        return []
    return [path for key, part in tree.items() for path in (f"{prefix}{key}", *_paths(part, f"{prefix}{key}."))]


def run_folder(runs: str, name: str) -> Path:
    """Where a job works: its name's folder, and in a sweep one below it for each job."""
    return Path(runs) / name / sweep_folder()
