"""Steps of long work, each done once and noted with its seconds."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from data_gen.storage.store import sha256_of
from marl_vae.files import write_text


class StepFailed(RuntimeError):
    """A command ended with another exit code than 0."""

    def __init__(self, said: str, code: int):
        super().__init__(said)
        self.code = code


class Steps:
    """What was done, by command, in `folder`; a step that was done is not done again."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._asked: dict[Path, None] = {}  # in the order of asking, each once

    def launch(self, entry: str, *overrides: str, makes: Path) -> None:
        """`python -m launch.<entry> <overrides>` in a process of its own, which takes its memory with it."""
        command = ["python", "-m", f"launch.{entry}", *overrides]
        self.once(command, lambda: run_command(command), makes)

    def once(self, what: list[str], do: Callable[[], None], makes: Path) -> None:
        """Do it unless it was done and what it `makes` is as it left it, and note what it took.

        Another step, or a user, may have written that file since.
        """
        stamp = self._folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}.json"
        self._asked[stamp] = None
        if stamp.exists() and makes.exists() and json.loads(stamp.read_text())["made"] == content_of(makes):
            return
        print(" ".join(what), flush=True)
        start, used = time.monotonic(), _processor()
        do()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        took = {"seconds": round(time.monotonic() - start), "processor_seconds": round(_processor() - used)}
        write_text(stamp, json.dumps({"step": " ".join(what), **took, "made": content_of(makes)}))

    def times(self) -> pd.DataFrame:
        """Every step that was asked for here, its seconds, and those of its processors added up."""
        notes = [json.loads(stamp.read_text()) for stamp in self._asked]
        return pd.DataFrame(notes, columns=["step", "seconds", "processor_seconds"])


def content_of(made: Path) -> str:
    """What stands for a file's content; a folder keeps checksums of its own."""
    return sha256_of(made) if made.is_file() else "folder"


def _processor() -> float:
    """Seconds of processor that this process and the ended ones it started have used."""
    return sum(os.times()[:4])


def run_command(command: list[str]) -> None:
    """Run `python …` and wait; StepFailed where it did not end well."""
    ended = subprocess.run([sys.executable, *command[1:]])
    if ended.returncode:
        said = f"{' '.join(command)} ended with {ended.returncode}; what it said stands above."
        raise StepFailed(said, ended.returncode)
