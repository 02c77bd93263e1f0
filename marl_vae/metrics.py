"""`metrics.jsonl`: one JSON object a line, in order of steps, never ahead of the checkpoint that a run resumes from."""

import json
from pathlib import Path
from typing import Any

from marl_vae.files import write_text


class MetricsLog:
    """Appends rows to a file; opening it cuts back what lies beyond `step`, and a last line that was half written."""

    def __init__(self, path: Path, step: int):
        kept = [row for row in read_metrics(path) if row["step"] <= step] if path.exists() else []
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "".join(json.dumps(row) + "\n" for row in kept))
        self._file = path.open("a")

    def append(self, row: dict[str, Any]) -> None:
        """Write one row and hand it to the operating system."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole rows of a file."""
    rows = []
    for line in path.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return rows


def describe(row: dict[str, Any]) -> str:
    """A row in a few words: bound, KL and β of each level, active units where they were counted."""
    words = (
        f"bound {row.get('val_bound', row['train_bound']):.2f}  KL ω {row['kl_omega']:.2f} α {row['kl_alpha']:.2f}  "
        f"β {row['beta_omega']:.2f} {row['beta_alpha']:.2f}"
    )
    return words + (f"  active {row['active_omega']}+{row['active_alpha']}" if "active_omega" in row else "")
