"""Episodes of one kind of action as those of the other, in domains whose actions move agents in a plane."""

import numpy as np

from data_gen.domains.plane import translated
from data_gen.trajectory import Dataset, InputError


def in_actions_of(found: Dataset, other: Dataset, where: str) -> Dataset:
    """The other data set with its actions as the kind that `found` has, each in the groups after those of `found`.

    All of its episodes count as test episodes: none of them was made by a learner that `found` knows. Raises InputError
    where the two are not one domain with the same settings, or it has no other kind of action.
    """
    domains = [dict(one.meta.get("domain", {})) for one in (found, other)]
    kinds = [domain.pop("actions", None) for domain in domains]
    if None in kinds or domains[0] != domains[1]:
        raise InputError(
            f"other={where} is of {_told(domains[1])}; it must be of the run's domain, {_told(domains[0])}, "
            "and that be one whose agents can act in both kinds: hill_climbing or coordination."
        )
    seeds = [one.meta["recording"]["seed"] for one in (found, other)]
    if seeds[0] == seeds[1]:
        raise InputError(
            f"other={where} was recorded with recording.seed={seeds[1]}, as the run's data were: its episodes start "
            "where those start that probes are fitted on. Generate it with another recording.seed."
        )
    if kinds[0] == kinds[1]:
        raise InputError(f"other={where} has {kinds[1]} actions, as the run has; give the data of the other kind.")
    batch = other.batch
    actions = translated(np.asarray(batch.actions), kinds[1], kinds[0])
    actions = np.where(batch.mask[..., None] if actions.ndim == 4 else batch.mask, actions, 0).astype(actions.dtype)
    first = found.rows.group.max() + 1
    return other._replace(
        batch=batch._replace(actions=actions),
        features=found.features,
        rows=other.rows._replace(group=(other.rows.group + first).astype(np.int32)),
        split=np.full_like(other.split, 2),
        action=found.action,
    )


def _told(domain: dict) -> str:
    return ", ".join(f"{key}={value}" for key, value in domain.items()) or "no domain of ours"
