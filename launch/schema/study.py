"""The config of launch.study."""

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from data_gen.trajectory import InputError


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


ConfigStore.instance().store(group="schema", name="study", node=Study)
