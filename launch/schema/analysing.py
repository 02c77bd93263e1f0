"""What launch.pipeline and launch.explore have in common: the analysis."""

from dataclasses import dataclass, field

from probes.changes.changes import Changes
from probes.clusters.records import Clustering
from probes.coupling.coupling import Coupling


@dataclass
class Analysing:
    """Clusters, coupling and change points, which a run without `analysis` does not look for."""

    analysis: bool = True
    clusters: Clustering = field(default_factory=Clustering)
    coupling: Coupling = field(default_factory=Coupling)
    changes: Changes = field(default_factory=Changes)
