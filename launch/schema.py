"""The config of every entry point: YAML becomes these typed objects once, here, and each checks its own values."""

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf

from data_gen.domains import DOMAIN_CONFIGS
from data_gen.ingest.sources import READERS, settings_of
from data_gen.ingest.treatment import Treatment
from data_gen.ingest.write import Storing
from data_gen.learners.ppo import PPO
from data_gen.recording.recording import Recording, seeds_of_shard
from data_gen.trajectory import InputError
from launch.log import Logging
from marl_vae.model import Model
from marl_vae.objectives import OBJECTIVES
from marl_vae.objectives.objective import check_form
from marl_vae.schedule import Schedule
from marl_vae.task import Train
from probes.changes.changes import Changes
from probes.clusters.records import Clustering
from probes.coupling.coupling import Coupling
from probes.interventions.intervention import Intervention
from probes.probe import Probe

MOST_FILMS = 200
SUMMARIES = ("text", "json")
TABLE = "table"
CONF = Path(__file__).resolve().parent.parent / "conf"


@dataclass
class Job:
    """A run lives in `runs`/`name`."""

    name: str = MISSING
    runs: str = "runs"
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if not Path(self.name).parts or Path(self.name).is_absolute() or ".." in Path(self.name).parts:
            raise InputError(f"name={self.name!r} must be the name of a folder below {self.runs!r}.")


@dataclass
class Generate(Job):
    """`only` lists the shards that this job records, so that several jobs share the work; none means all."""

    domain: Any = MISSING
    learner: PPO = field(default_factory=PPO)
    recording: Recording = field(default_factory=Recording)
    only: list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.only == []:
            raise InputError("only=[] records no shard; name some, as in only=[0,1], or leave it out for all.")
        for shard in self.only or ():
            seeds_of_shard(self.recording, shard)


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


@dataclass
class Training(Job):
    """`data` is a data set's folder; none means the run's own."""

    data: str | None = None
    model: Model = field(default_factory=Model)
    objective: Any = MISSING
    schedule: Schedule = field(default_factory=Schedule)
    train: Train = field(default_factory=Train)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_form(self.objective, self.model)


@dataclass
class Probing:
    """`run` is the folder of a trained run; `runs` is a pattern of several to compare with `reference` instead."""

    run: str = MISSING
    runs: str | None = None
    reference: str | None = None
    probe: Probe = field(default_factory=Probe)
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if self.runs and self.logger.kind != "none":
            raise InputError("A comparison of runs=... goes into files and not into a log: leave logger= out.")


@dataclass
class Embedding:
    """`run` is the folder of a trained run, `data` of other episodes; `name` is their folder in the run's `embedded/`.

    None is the data set's own name: the last folder of its path that is not called data.
    """

    run: str = MISSING
    data: str = MISSING
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None and (Path(self.name).name != self.name or self.name in ("", "..")):
            raise InputError(f"name={self.name!r} must be the name of a folder, without slashes.")


@dataclass
class Generalising:
    """`run` is the folder of a trained run, `other` a data set of its domain with the other kind of action."""

    run: str = MISSING
    other: str | None = None
    probe: Probe = field(default_factory=Probe)
    logger: Logging = field(default_factory=Logging)


@dataclass
class StudyDomain:
    """Overrides of `launch.generate` (`data`, and `other` for the other kind of action) and of every training.

    `labels` are probed, `intervene` are overrides of `launch.intervene`; `arms` of the search and `schedules` are
    names, all arms where none is given. `train` holds for every training, `quick` for the many of search and schedules.
    """

    data: list[str] = MISSING
    labels: list[str] = MISSING
    intervene: list[str] = MISSING
    hold_out: list[int] = MISSING
    arms: list[str] = field(default_factory=list)
    schedules: list[str] = field(default_factory=list)
    train: list[str] = field(default_factory=list)
    quick: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)


@dataclass
class Study:
    """`search` and `schedules` name overrides of `launch.train`; `docs` is where study.md and its tables go.

    `jobs` domains are worked on at once; `only` names one to work on alone, without the page.
    """

    runs: str = "runs/study"
    docs: str = "docs"
    seeds: int = 5
    jobs: int = 2
    only: str | None = None
    search: dict[str, list[str]] = MISSING
    schedules: dict[str, list[str]] = MISSING
    domains: dict[str, StudyDomain] = MISSING

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise InputError(f"seeds={self.seeds}; the study compares encoder seeds, so give at least 2.")
        if self.jobs < 1:
            raise InputError(f"jobs={self.jobs}; at least one domain has to be worked on.")
        if self.only and self.only not in self.domains:
            raise InputError(f"only={self.only}: the domains are {', '.join(self.domains)}.")
        for name, own in self.domains.items():
            for kind, wanted, known in (
                ("arms", own.arms, self.search),
                ("schedules", own.schedules, self.schedules),
            ):
                unknown = sorted(set(wanted) - set(known))
                if unknown:
                    raise InputError(f"domains.{name}.{kind}: there is no {unknown[0]!r}; there are {list(known)}.")


@dataclass
class Intervening:
    """`run` is the folder of a trained and probed run, whose data a simulator here made."""

    run: str = MISSING
    intervention: Intervention = field(default_factory=Intervention)
    logger: Logging = field(default_factory=Logging)


@dataclass
class Analysing:
    """Clusters, coupling and change points, which a run without `analysis` does not look for."""

    analysis: bool = True
    clusters: Clustering = field(default_factory=Clustering)
    coupling: Coupling = field(default_factory=Coupling)
    changes: Changes = field(default_factory=Changes)


@dataclass
class Exploring(Analysing):
    """`run` is the folder of a trained run, `encoder` the place of one of its seeds, `films` how many are filmed."""

    run: str = MISSING
    encoder: int = 0
    films: int = 200
    logger: Logging = field(default_factory=Logging)

    def __post_init__(self) -> None:
        if not 0 <= self.films <= MOST_FILMS:
            raise InputError(f"films={self.films} must lie in 0..{MOST_FILMS}, so that the page stays small.")


@dataclass
class Dashboard:
    """A W&B workspace of a project of `entity`, a user or a team; none means who is logged in.

    `labels` are those whose probes have panels.
    """

    entity: str | None = None
    project: str = "marl-vae"
    title: str = "marl-vae"
    labels: list[str] = MISSING


@dataclass
class Pipeline(Analysing, Training, Generate):
    """Generate, train, analyse and probe in one run."""

    probe: Probe = field(default_factory=Probe)


SCHEMAS = {
    "generate": Generate,
    "ingest": Ingest,
    "train": Training,
    "probe": Probing,
    "intervene": Intervening,
    "embed": Embedding,
    "generalise": Generalising,
    "study": Study,
    "explore": Exploring,
    "pipeline": Pipeline,
    "workspace": Dashboard,
}


def typed(cfg: DictConfig) -> Any:
    """The config as typed objects. Raises InputError for a key that no schema has (hydra lets `+key=value` add one)."""
    _refuse_unknown(cfg, "")
    return OmegaConf.to_object(cfg)


def _refuse_unknown(cfg: Any, where: str) -> None:
    if not isinstance(cfg, DictConfig) or not is_dataclass(kind := OmegaConf.get_type(cfg)):
        return
    known = [part.name for part in fields(kind)]
    for key in cfg:
        if key not in known:
            raise InputError(f"there is no config key {where + str(key)!r}; here there are {', '.join(known)}.")
        _refuse_unknown(cfg._get_node(key), f"{where}{key}.")


def register() -> None:
    """Make the schemas known to hydra, under names that the YAML files start from."""
    store = ConfigStore.instance()
    for name, schema in SCHEMAS.items():
        store.store(group="schema", name=name, node=schema)
    for name, schema in DOMAIN_CONFIGS.items():
        store.store(group="schema/domain", name=name, node=schema)
    for name, schema in OBJECTIVES.items():
        store.store(group="schema/objective", name=name, node=schema)
    for name in READERS:
        store.store(group="source", name=name, package="_global_", node=source_node(name))


def source_node(name: str) -> dict[str, Any]:
    """What choosing a format says: its name, and its settings with their defaults, of a table under `columns`."""
    kind = settings_of(name)
    if kind is None:
        return {"source": name}
    own = kind(path="${path}") if "path" in kind.__dataclass_fields__ else kind
    return {"source": name, "columns" if name == TABLE else "reading": own}
