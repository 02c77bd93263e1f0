"""`metrics.jsonl`: one JSON object a line, in order of steps, never ahead of the checkpoint that a run resumes from."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from marl_vae.bound import Terms
from marl_vae.diagnostics.units import ActiveUnits
from marl_vae.files import write_text
from marl_vae.model import AUTOENCODER, FLAT, Model

SIGNS = {"omega": "ω", "alpha": "α"}


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


def criterion(form: str) -> str:
    """The name of the figure by which models of a run are compared: an autoencoder has no bound."""
    return "val_recon" if form == AUTOENCODER else "val_bound"


def of_training(terms: Terms, model: Model) -> dict[str, float]:
    """Means of a dispatch's terms, each summed over its level; what the model's form lacks is left out."""
    recon, joint, local, state = (float(np.mean(values)) for values in terms)
    found = {"recon": recon, "kl_omega": joint, "kl_alpha": local}
    kept = {"recon", *(f"kl_{level}" for level in model.random_levels)}
    bound = {} if model.form == AUTOENCODER else {"train_bound": recon - joint - local}
    of_state = {"state": state} if model.predict_state else {}
    return bound | {name: value for name, value in found.items() if name in kept} | of_state


def of_validation(value: float, terms: Terms, units: ActiveUnits, model: Model) -> dict[str, float]:
    """The criterion's value, the state term, and the active units of the levels that there are."""
    of_state = {"val_state": float(np.mean(terms.state))} if model.predict_state else {}
    of_agents = {} if model.form == FLAT else {"active_alpha": int(units.alpha.sum())}
    return {criterion(model.form): value, **of_state, "active_omega": int(units.omega.sum()), **of_agents}


def describe(row: dict[str, Any]) -> str:
    """A row in a few words: bound or data term, KL and β of each level, active units where they were counted."""
    if "train_bound" in row:
        words = [f"bound {row.get('val_bound', row['train_bound']):.2f}"]
    else:
        words = [f"data term {row.get('val_recon', row['recon']):.2f}"]
    for name, title in {"kl": "KL", "beta": "β"}.items():
        levels = [f"{sign} {row[f'{name}_{level}']:.2f}" for level, sign in SIGNS.items() if f"{name}_{level}" in row]
        words += [" ".join([title, *levels])] if levels else []
    units = [str(row[f"active_{level}"]) for level in SIGNS if f"active_{level}" in row]
    return "  ".join(words + ([f"active {'+'.join(units)}"] if units else []))
