"""What a W&B run has been given already, so that a resumed or repeated job gives it nothing twice."""

import json
import uuid
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

from marl_vae.files import write_text

FILE = "wandb.json"


@dataclass
class Logged:
    """`wandb.json` of a run's folder.

    `rows` are those of the run's history, which counts on where offline files of one run are joined; `steps` the last
    training step by encoder seed; `content` a checksum by the name of a table, figure or page, `artifacts` one by kind;
    `summary` the names of the figures of the whole run.
    """

    run_id: str
    rows: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    summary: list[str] = field(default_factory=list)

    def forget(self, present: Collection[str]) -> set[str]:
        """Drop the content that is no longer present; its names."""
        gone = self.content.keys() - set(present)
        self.content = {name: value for name, value in self.content.items() if name in present}
        return gone

    def write(self, run: Path) -> None:
        """Keep it in the run's folder."""
        write_text(run / FILE, json.dumps(asdict(self), indent=1))


def logged_of(run: Path, run_id: str | None) -> Logged:
    """What the W&B run of this folder was given; nothing yet where `run_id`, as a sweep sets it, is another run."""
    path = run / FILE
    found = Logged(**json.loads(path.read_text())) if path.exists() else Logged(run_id or uuid.uuid4().hex[:12])
    return found if run_id in (None, found.run_id) else Logged(run_id)
