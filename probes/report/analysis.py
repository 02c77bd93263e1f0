"""Sections of the report on clusters, coupling and change points, which are computed and drawn elsewhere."""

from typing import NamedTuple

from probes.report.page import Section, bullets

TITLES = {
    "clusters": "Clusters of the latents",
    "coupling": "Coupling between levels and agents",
    "changes": "Change points over training",
}
CAPTIONS = {
    "clusters": "Episodes whose latent means lie together, found without labels in the latent's full width; bars show "
    "what each cluster is made of, by the label that it agrees with most. Do not trust them where there are few "
    "groups, where redrawing the groups or another encoder seed gives other clusters, where a cluster is one group, or "
    "where the level has collapsed; the list says which of these holds for which level.",
    "coupling": "Which clusters of one latent go with which of another, against teams whose members were put together "
    "at random, and how tight a region's episodes lie in the other agents' latents. Do not take it for influence: "
    "agents that only learn at the same pace are coupled as well; with few groups nothing can be significant, "
    "and unstable clusters or a collapsed level leave nothing to couple.",
    "changes": "Where along the checkpoints the distribution of a latent changes, by group, beside what the team "
    "earned. Do not trust a single group's change: with few checkpoints or few groups a slow drift looks like a "
    "step, a collapsed level cannot change, and z_alpha is read together with z_omega.",
}


class Analysis(NamedTuple):
    """What was found by kind (the keys of TITLES): sentences, and figures as PNGs. `of` names the encoder."""

    of: str
    sentences: dict[str, list[str]]
    pictures: dict[str, list[bytes]]


def analysis_sections(found: Analysis | None, absent: str) -> list[Section]:
    """One a kind; `absent` says why there is no analysis."""
    return [
        Section(
            name=kind,
            title=title,
            caption=f"{CAPTIONS[kind]} Of {found.of}." if found else "",
            figure=None,
            pictures=tuple(found.pictures[kind]) if found else (),
            absent="There is no figure, for the reason below." if found else absent,
            below=bullets(found.sentences[kind]) if found else "",
        )
        for kind, title in TITLES.items()
    ]
