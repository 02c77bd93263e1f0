"""Time of the concept tables at the default hill-climbing scale, on planted data.

python benchmarks/concepts.py               one core, then every core
python benchmarks/concepts.py --no-ratio    one core only
"""

import sys
import time

import numpy as np
from probe_table import planted

from probes.concepts.concepts import ConceptTables, concept_tables
from probes.concepts.vectors import Concepts
from probes.labels import make_targets
from probes.probe import Probe


def timed(jobs: int, data: dict) -> tuple[float, float, ConceptTables]:
    """Seconds and processor seconds that the tables took, and the tables."""
    targets = make_targets(data["labels"], data["rows"], data["split"], [])
    parts = {name: data[name] for name in ("z_omega", "rows", "split")}
    start, used = time.perf_counter(), time.process_time()
    tables = concept_tables(Concepts(), Probe(jobs=jobs), targets=targets, **parts)
    return time.perf_counter() - start, time.process_time() - used, tables


def main() -> None:
    """Print the figures."""
    data = planted(np.random.default_rng(0))
    seconds, used, tables = timed(1, data)
    n_labels = tables.concepts["label"].nunique()
    print(f"concepts of {n_labels} team labels, one job: {seconds:.1f} s, {used:.1f} s of one core")
    print(tables.concepts.drop(columns="note").round(3).to_string(index=False))
    if "--no-ratio" not in sys.argv:
        faster, _, same = timed(0, data)
        print(f"every core: {faster:.1f} s, {seconds / faster:.2f}x as fast")
        print(f"the tables are equal: {all(a.equals(b) for a, b in zip(tables, same, strict=True))}")


if __name__ == "__main__":
    main()
