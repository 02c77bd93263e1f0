"""Tables beside the probe table, made where a run's probing asks for them."""

from pathlib import Path
from typing import Any

from launch.progress import progress
from marl_vae.files import write_text
from probes.concepts.concepts import concept_tables
from probes.concepts.figure import completeness_curves
from probes.concepts.vectors import Concepts
from probes.labels import make_targets
from probes.probe import Probe
from probes.table.table import label_efficiency

CONCEPTS = {
    "concepts": "concepts",
    "curve": "concept_curve",
    "vectors": "concept_vectors",
    "episodes": "concept_episodes",
}
DEEPER = ["label_efficiency.csv", *(f"{name}.csv" for name in CONCEPTS.values())]


def deeper(cfg: Probe, run: Path, inputs: dict[str, Any]) -> None:
    """Label efficiency and concepts, as CSV in the run's folder; `inputs` are those of the table."""
    tables = {}
    if cfg.efficiency:
        with progress("label efficiency") as tell:
            few = label_efficiency(cfg, **inputs, progress=lambda done, total: tell(done / total))
        tables["label_efficiency"] = few
    if cfg.concepts:
        with progress("concepts"):
            tables |= concepts(cfg.concepts, cfg, run, inputs)
    for name, table in tables.items():
        write_text(run / f"{name}.csv", table.to_csv(index=False))


def concepts(how: Concepts, cfg: Probe, run: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    """Concepts of the first encoder seed's z_omega, and the figure of completeness against their number."""
    rows, split = inputs["rows"], inputs["split"]
    found = concept_tables(
        how,
        cfg,
        z_omega=inputs["encoded"].z_omega[0],
        rows=rows,
        split=split,
        targets=make_targets(inputs["labels"], rows, split, cfg.labels),
    )
    if len(found.curve):
        (run / "figures").mkdir(exist_ok=True)
        completeness_curves(found.curve).savefig(run / "figures" / "concepts.png")
    return {name: getattr(found, field) for field, name in CONCEPTS.items()}
