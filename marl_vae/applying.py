"""New episodes as a trained model takes them, or why it cannot. N agents, Do observation, Da action."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from jaxtyping import Bool

from data_gen.trajectory import ActionSpec, AnyArray, Dataset, InputError, TrajectoryBatch
from marl_vae.embed import TrainedModel
from marl_vae.latents import Embeddings

AGAIN = "Bring the data in the form that the model was trained on, or train a model on these."


def fitted(model: TrainedModel, found: Dataset, where: str) -> TrainedModel:
    """The model, for more agents where the data have more and it tells none apart (see `TrainedModel.for_agents`).

    Raises InputError where the number of features, the actions or the agents are others than it can take.
    """
    n_agents, n_obs = found.batch.obs.shape[2:]
    dims = model.dims
    if n_obs != dims.obs:
        raise InputError(f"{where} has {n_obs} observation features, and the model was trained on {dims.obs}. {AGAIN}")
    if found.action != dims.action:
        raise InputError(
            f"{where} has {_told(found.action)}, and the model was trained on {_told(dims.action)}. {AGAIN}"
        )
    if n_agents > dims.agents and not model.exchangeable:
        raise InputError(
            f"{where} has {n_agents} agents, and the model tells {dims.agents} apart. Keep {dims.agents} of them, or "
            "train with model.team=pool and model.agent_index=false, whose model takes any number."
        )
    wide = model.for_agents(n_agents) if n_agents > dims.agents else model
    for name, mine, of_model in (
        ("observation", found.features.obs, wide.scale.obs_real),
        ("action", found.features.actions, wide.scale.action_real),
    ):
        _check_real(name, mine, np.asarray(of_model)[:n_agents] > 0, where)
    return wide


def embed_new(model: TrainedModel, batch: TrajectoryBatch) -> Embeddings:
    """Latents of every episode and of the agents that the data have; those they lack are absent from every step."""
    n_agents = batch.mask.shape[2]
    found = model.embed(padded(batch, model.dims.agents))
    return found._replace(alpha_mean=found.alpha_mean[:, :n_agents], alpha_std=found.alpha_std[:, :n_agents])


def padded(batch: TrajectoryBatch, agents: int) -> TrajectoryBatch:
    """The batch with agents at the end that are absent from every step."""
    more = agents - batch.mask.shape[2]
    if not more:
        return batch
    return TrajectoryBatch(
        *(np.pad(field, [(0, 0), (0, 0), (0, more)] + [(0, 0)] * (field.ndim - 3)) for field in batch)
    )


def check_order(what: str, before: Sequence[str], now: Sequence[str], where: str) -> None:
    """Raise InputError where a name stands at another place than in the training data: all would be read wrongly."""
    moved = [name for name, old in zip_longest(now, before) if name in before and name != old]
    if moved:
        here, there = (list(names).index(moved[0]) for names in (now, before))
        raise InputError(
            f"{where}: the {what} {moved[0]!r} is number {here} (from 0), and was number {there} in the training data. "
            f"The model knows {what}s by their place: bring them in the order {', '.join(before)}."
        )


def _check_real(name: str, mine: Bool[np.ndarray, "N F"], wanted: Bool[AnyArray, "N F"], where: str) -> None:
    wrong = np.argwhere(mine != wanted)
    if len(wrong):
        agent, place = wrong[0]
        has, had = ("has", "had none") if mine[agent, place] else ("lacks", "had one")
        raise InputError(
            f"{where}: agent {agent} {has} {name} {place}, and {had} in the training data "
            f"({len(wrong)} difference(s) in all). {AGAIN}"
        )


def _told(action: ActionSpec) -> str:
    return f"{action.kind} actions of {action.size} {'choices' if action.kind == 'discrete' else 'dimensions'}"
