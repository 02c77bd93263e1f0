"""The config of launch.ingest, and of the formats that it reads."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.ingest.sources import READERS, settings_of
from data_gen.ingest.treatment import Treatment
from data_gen.ingest.write import Storing
from data_gen.trajectory import InputError
from launch.schema.job import Job

SUMMARIES = ("text", "json")
TABLE = "table"


@dataclass
class Ingest(Storing, Job):
    """`source` is a format and `path` where the data are; `columns` says what a table's columns are, `reading` how
    another format is read. A `dry_run` writes nothing. `summary` is printed as text or as json.
    """

    source: str = MISSING
    path: str = ""
    columns: Any = None
    reading: Any = None
    treatment: Treatment = field(default_factory=Treatment)
    dry_run: bool = False
    summary: str = "text"

    def __post_init__(self) -> None:
        Job.__post_init__(self)
        super().__post_init__()
        if self.summary not in SUMMARIES:
            raise InputError(f"summary={self.summary!r}; it is one of {', '.join(SUMMARIES)}.")


def source_node(name: str) -> dict[str, Any]:
    """What choosing a format says: its name, and its settings with their defaults, of a table under `columns`."""
    kind = settings_of(name)
    if kind is None:
        return {"source": name}
    own = kind(path="${path}") if "path" in kind.__dataclass_fields__ else kind
    return {"source": name, "columns" if name == TABLE else "reading": own}


ConfigStore.instance().store(group="schema", name="ingest", node=Ingest)
for _name in READERS:
    ConfigStore.instance().store(group="source", name=_name, package="_global_", node=source_node(_name))
