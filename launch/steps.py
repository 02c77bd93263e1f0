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

from data_gen.trajectory import InputError
from marl_vae.files import write_text

class Steps:
    """What was done, by command, in `folder`; a step that was done is not done again."""

    def __init__(self, folder: Path):
        self._folder = folder

    def launch(self, entry: str, *overrides: str, makes: Path) -> None:
        """`python -m launch.<entry> <overrides>` in a process of its own, which takes its memory with it."""
        command = ["python", "-m", f"launch.{entry}", *overrides]
        self.once(command, lambda: _run(command), makes)

    def once(self, what: list[str], do: Callable[[], None], makes: Path) -> None:
        """Do it unless it was done and what it `makes` is still there, and note what it took."""
        stamp = self._folder / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]}.json"
        if stamp.exists() and makes.exists():
            return
        print(" ".join(what), flush=True)
        start, used = time.monotonic(), _processor()
        do()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        took = {"seconds": round(time.monotonic() - start), "processor_seconds": round(_processor() - used)}
        write_text(stamp, json.dumps({"what": what, **took}))

    def times(self) -> pd.DataFrame:
        """Every step that was done, its seconds, and those of its processors added up."""
        notes = [json.loads(stamp.read_text()) for stamp in sorted(self._folder.glob("*.json"))]
        return pd.DataFrame([note | {"what": " ".join(note["what"])} for note in notes]).rename(columns={"what": "step"})


def _processor() -> float:
    """Seconds of processor that this process and the ended ones it started have used."""
    return sum(os.times()[:4])


def _run(command: list[str]) -> None:
    ended = subprocess.run([sys.executable, *command[1:]])
    if ended.returncode:
        raise InputError(f"{' '.join(command)} ended with {ended.returncode}; what it said stands above.")
