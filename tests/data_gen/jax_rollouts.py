"""Rollouts on engines in JAX, here or in a process with more devices:
`python -m tests.data_gen.jax_rollouts HalfCheetah mjx 4 out.npz` (or `Hopper toy`)."""

import sys
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from data_gen.engines import environments
from data_gen.engines.batched import Batched, Single, devices_for
from data_gen.engines.bodies import BODIES
from data_gen.engines.engine import open_engine, start_states
from data_gen.engines.scenarios import SCENARIOS, make_scenario

STEPS, HORIZON = 6, 4


def toy_fresh(qpos, qvel):
    return jnp.zeros(()), {"qpos": qpos, "qvel": qvel}


def toy_advance(inner, fields, controls):
    """A body whose every part moves with the sum of the controls; needs an `inner` of its own."""
    inner = inner + 0.1 * controls.sum()
    qvel = 0.9 * fields["qvel"] + inner
    return inner, {"qpos": fields["qpos"] + 0.05 * qvel, "qvel": qvel}


@cache
def opened(body_name: str, kind: str, n_envs: int):
    """An engine, compiled once for all tests; `toy` is a made-up physics that compiles at once."""
    body = BODIES[body_name]
    if kind != "toy":
        return open_engine(kind, body, n_envs)
    qpos = np.zeros(body.nq)
    qpos[1] = 1.25
    return Batched(
        *("toy", body, n_envs),
        single=Single(fresh=toy_fresh, advance=toy_advance),
        start=(qpos, np.zeros(body.nv)),
        devices=devices_for("toy", n_envs, None),
        missing=(),
        notes={},
    )


def states_of(engine, seed: int):
    return start_states(engine.body.name, engine.start, jax.random.split(jax.random.key(seed), engine.n_envs))


def scenario_of(body_name: str):
    return make_scenario(next(name for name in SCENARIOS if name.startswith(body_name)))


def one_step(scenario, engine, running, number):
    """Actions that depend on the number alone; episodes that end begin again."""
    shape = (engine.n_envs, *scenario.action_mask.shape)
    actions = jax.random.uniform(jax.random.fold_in(jax.random.key(5), number), shape, minval=-1.0, maxval=1.0)
    running, outcome = environments.step(scenario, engine, HORIZON, running, actions)
    ended = outcome.terminated | outcome.truncated | outcome.broken
    running, obs = environments.restart(scenario, engine, running, ended, states_of(engine, 9))
    return running, (outcome, obs)


def play(scenario, engine):
    """All steps in one program."""

    @jax.jit
    def everything(states):
        running, first = environments.begin(scenario, engine, *states)
        return jax.lax.scan(lambda now, k: one_step(scenario, engine, now, k), running, jnp.arange(STEPS)), first

    return everything(states_of(engine, 3))


if __name__ == "__main__":
    jax.config.update("jax_numpy_rank_promotion", "raise")
    body_name, kind, n_envs, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    engine = opened(body_name, kind, n_envs)
    (running, (outcome, obs)), _ = play(scenario_of(body_name), engine)
    qpos = running.physics.fields["qpos"]
    eager = engine.begin(*states_of(engine, 3)).fields["qpos"]
    np.savez(
        out,
        obs=obs,
        rewards=outcome.rewards,
        devices=[len({shard.device for shard in array.addressable_shards}) for array in (qpos, eager)],
        shares=[shard.data.shape[0] for array in (qpos, eager) for shard in array.addressable_shards],
    )
