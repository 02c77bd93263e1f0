"""A trained decoder in the simulator that its data came from."""

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from data_gen.keys import named_key
from data_gen.learners.rollout import team_return
from data_gen.recording.recording import label_rollouts
from data_gen.recording.world import World
from marl_vae.embed import TrainedModel
from marl_vae.latents import draw
from probes.interventions.intervention import Behaviour, Rollouts


def rollouts_of(model: TrainedModel, world: World) -> Rollouts:
    """Episodes of the team whose agents all act by the decoder, each with its local latent."""

    def local(z_alpha: Float[np.ndarray, "P N Za"], seed: int) -> Behaviour:
        noise = named_key(seed, world.name, "rollout", "actions")
        memory = model.start(len(z_alpha))

        def act(obs: Float[np.ndarray, "P N Do"], t: int) -> Float[Array, "P N Da"] | Int[Array, "P N"]:
            nonlocal memory
            action, memory = model.step(memory, obs, z_alpha, key=jax.random.fold_in(noise, t))
            return action

        starts = jax.random.split(named_key(seed, world.name, "rollout", "starts"), len(z_alpha))
        played = world.rollout(act, starts)
        return Behaviour(
            labels=label_rollouts(world, played),
            batch=played.batch,
            returns=np.asarray(team_return(played.rewards), float),
            failed=played.failed >= 0,
        )

    def joint(z_omega: Float[np.ndarray, "P Zw"], seed: int) -> Behaviour:
        prior = model.local_prior(z_omega.astype(np.float32))
        noise = jax.random.normal(named_key(seed, world.name, "rollout", "latents"), prior.mean.shape)
        return local(np.asarray(draw(prior, noise)), seed)

    return Rollouts(joint=joint, local=local)
