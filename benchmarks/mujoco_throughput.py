"""Rollouts of multi-agent MuJoCo side by side: `python benchmarks/mujoco_throughput.py`. Needs the extras dev.

One jitted policy call a step for all environments and agents. Native engine with the policy, the same physics without
it, and Gymnasium-Robotics' MaMuJoCo with the same policy: one environment, and behind a 15-line Gymnasium wrapper in
Gymnasium's Sync and Async vectors. Ways take turns, so that a busy machine slows all alike; figures are medians.
This part takes 2 minutes.

Then the engines mjx and brax: policy, physics and restarts of a rollout in one program, its compilation apart. On 2
cores that part takes 12 minutes, half of them for mjx with Ant.
"""

import os
import time
from collections.abc import Callable
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium_robotics import mamujoco_v1

from data_gen.engines import environments
from data_gen.engines.engine import Engine, open_engine, start_states
from data_gen.engines.scenarios import Scenario, make_scenario
from data_gen.learners.policy import gaussian_sample, head_of, init_actor
from data_gen.trajectory import ActionSpec

NAMES, SIZES, OBSK, HIDDEN, HORIZON, ROUNDS, SECONDS = ("HalfCheetah 2x3", "Ant 4x2"), (2, 8, 32), 1, 64, 1000, 5, 0.7

JAX_ENGINES, JAX_SIZES, JAX_STEPS, JAX_ROUNDS = ("mjx", "brax"), (16, 64, 256), 20, 3


class Stacked(gymnasium.Env):
    """MaMuJoCo's agents as rows of one array: what a user would write to use Gymnasium's vectors."""

    def __init__(self, name: str):
        self.env = mamujoco_v1.parallel_env(*name.split(), agent_obsk=OBSK)
        shapes = [self.env.observation_space("agent_0").shape, self.env.action_space("agent_0").shape]
        rows = [(len(self.env.possible_agents), shape[0]) for shape in shapes]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, rows[0], np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, rows[1], np.float32)

    def reset(self, seed=None, options=None):
        return np.stack(list(self.env.reset(seed=seed)[0].values()), dtype=np.float32, casting="same_kind"), {}

    def step(self, action):
        obs, reward, end, cut, _ = self.env.step(dict(zip(self.env.possible_agents, action, strict=True)))
        first = self.env.possible_agents[0]
        return (
            np.stack(list(obs.values()), dtype=np.float32, casting="same_kind"),
            reward[first],
            end[first],
            cut[first],
            {},
        )


@jax.jit
def act(actors, obs, number):
    """A Gaussian policy an agent, for all environments in one call."""
    heads = jax.vmap(partial(head_of, kind="continuous"), in_axes=(0, 1), out_axes=1)(actors, obs)
    return gaussian_sample(heads, jax.random.fold_in(jax.random.key(0), number))


def actors_of(scenario: Scenario):
    """New networks."""
    n_agents, n_obs = scenario.obs_mask.shape
    action = ActionSpec("continuous", scenario.action_mask.shape[1])
    return jax.vmap(lambda key: init_actor(key, n_obs, HIDDEN, action))(jax.random.split(jax.random.key(1), n_agents))


def repeat(body: Callable, n_envs: int) -> float:
    """Environment steps a second of `body(number)`, called for about SECONDS."""
    body(0)
    start, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - start) < SECONDS:
        count += 1
        body(count)
    return n_envs * count / spent


class NativeRollout:
    """Episodes on the native engine; `with_policy` or prepared controls."""

    def __init__(self, scenario: Scenario, n_envs: int):
        self.scenario, self.n_envs = scenario, n_envs
        self.actors = actors_of(scenario)
        self.engine = open_engine("native", scenario.body, n_envs)
        self.starts = jax.jit(partial(start_states, scenario.body.name, self.engine.start))
        self.running, self.obs = environments.begin(scenario, self.engine, *self.draw(0))
        shape = (64, n_envs, scenario.body.nu)
        self.controls = np.random.default_rng(0).uniform(-1, 1, shape)

    def draw(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        keys = jax.random.split(jax.random.key(number), self.n_envs)
        qpos, qvel = self.starts(keys)
        return np.asarray(qpos, np.float64), np.asarray(qvel, np.float64)

    def with_policy(self, number: int) -> None:
        actions = np.asarray(act(self.actors, self.obs.astype(np.float32), number), np.float64)
        self.running, outcome = environments.step(self.scenario, self.engine, HORIZON, self.running, actions)
        self.obs = outcome.obs
        ended = outcome.terminated | outcome.truncated | outcome.broken
        if ended.any():
            states = self.draw(number)
            self.running, self.obs = environments.restart(self.scenario, self.engine, self.running, ended, states)

    def without(self, number: int) -> None:
        self.engine.step(self.running.physics, self.controls[number % 64])


class VectorRollout:
    """Gymnasium's vector of stacked MaMuJoCo environments."""

    def __init__(self, kind: Callable, name: str, n_envs: int):
        self.vector = kind([partial(Stacked, name)] * n_envs)
        self.actors = None
        self.obs, _ = self.vector.reset(seed=0)

    def with_policy(self, number: int) -> None:
        self.obs, *_ = self.vector.step(np.asarray(act(self.actors, self.obs, number)))


class OneRollout:
    """One MaMuJoCo environment as it is."""

    def __init__(self, name: str):
        self.env = Stacked(name)
        self.actors = None
        self.obs, _ = self.env.reset(seed=0)

    def with_policy(self, number: int) -> None:
        actions = np.asarray(act(self.actors, self.obs[None], number))[0]
        self.obs, _, end, cut, _ = self.env.step(actions)
        if end or cut:
            self.obs, _ = self.env.reset()


def rivals(name: str) -> dict[tuple[str, int], OneRollout | VectorRollout]:
    """Gymnasium-Robotics in its three forms."""
    found = {("Gymnasium-Robotics alone", 1): OneRollout(name)}
    found |= {("Async", n): VectorRollout(AsyncVectorEnv, name, n) for n in SIZES}
    return found | {("Sync", n): VectorRollout(SyncVectorEnv, name, n) for n in SIZES}


def compare(name: str, theirs: dict[tuple[str, int], OneRollout | VectorRollout]) -> None:
    """One table."""
    scenario = make_scenario(name, OBSK)
    actors = actors_of(scenario)
    bodies = {}
    for way, rollout in theirs.items():
        rollout.actors = actors
        bodies[way] = rollout.with_policy
    ours = {n: NativeRollout(scenario, n) for n in SIZES}
    bodies |= {("native", n): rollout.with_policy for n, rollout in ours.items()}
    bodies |= {("native, no policy", n): rollout.without for n, rollout in ours.items()}
    speeds = {way: [] for way in bodies}
    for number in range(ROUNDS + 1):
        for (way, n), body in bodies.items():
            speed = repeat(body, n)
            if number:  # the first round compiles and warms up
                speeds[way, n].append(speed)
    report(name, speeds)
    for rollout in theirs.values():
        (rollout.env if isinstance(rollout, OneRollout) else rollout.vector).close()


def report(name: str, speeds: dict[tuple[str, int], list[float]]) -> None:
    """Medians, and the two ratios that matter: both are of medians over the same rounds."""
    medians = {way: float(np.median(found)) for way, found in speeds.items()}
    print(f"{name}, environment steps a second on {len(os.sched_getaffinity(0))} processors")
    for (way, n), speed in medians.items():
        print(f"  {way:24s} {n:3d} environments {speed:9.0f}")
    best = max((s, way) for way, s in medians.items() if not way[0].startswith("native"))
    ours = max((s, way) for way, s in medians.items() if way[0] == "native")
    print(f"  best native {ours[1]} / best of Gymnasium-Robotics {best[1]}: {ours[0] / best[0]:.2f}")
    for n in SIZES:
        share = medians["native", n] / medians["native, no policy", n]
        rival = max(medians["Sync", n], medians["Async", n])
        print(
            f"  {n:3d} environments: {medians['native', n] / rival:.2f} of Sync and Async, {share:.0%} of physics alone"
        )


def play(scenario: Scenario, engine: Engine, actors, running: environments.Running, obs, first):
    """JAX_STEPS steps of all environments in one program; episodes that end begin again."""

    def body(carry, number):
        running, obs = carry
        actions = act(actors, obs, number)
        running, outcome = environments.step(scenario, engine, HORIZON, running, actions)
        ended = outcome.terminated | outcome.truncated | outcome.broken
        keys = jax.random.split(jax.random.fold_in(jax.random.key(2), number), engine.n_envs)

        def again():
            states = start_states(scenario.body.name, engine.start, keys)
            return environments.restart(scenario, engine, running, ended, states)

        carry = jax.lax.cond(ended.any(), again, lambda: (running, outcome.obs))
        return carry, (obs, actions, outcome.rewards)

    return jax.lax.scan(body, (running, obs), first + jnp.arange(JAX_STEPS))


def time_jax(name: str) -> None:
    """One table of the engines that run in JAX."""
    scenario, devices = make_scenario(name, OBSK), jax.devices()
    actors = actors_of(scenario)
    print(f"{name}, environment steps a second on {len(devices)} {devices[0].platform} ({devices[0].device_kind})")
    for kind in JAX_ENGINES:
        for n_envs in JAX_SIZES:
            engine = open_engine(kind, scenario.body, n_envs)
            states = start_states(name.split()[0], engine.start, jax.random.split(jax.random.key(0), n_envs))
            started = time.perf_counter()
            carry = environments.begin(scenario, engine, *states)
            program = jax.jit(partial(play, scenario, engine, actors)).lower(*carry, 0).compile()
            compiled = time.perf_counter() - started
            speeds = []
            for number in range(JAX_ROUNDS + 1):
                started = time.perf_counter()
                carry, _ = jax.block_until_ready(program(*carry, number * JAX_STEPS))
                speeds.append(n_envs * JAX_STEPS / (time.perf_counter() - started))
            speed = float(np.median(speeds[1:]))  # the first round warms up
            print(f"  {kind:24s} {n_envs:3d} environments {speed:9.0f}, after {compiled:.0f} s of compilation")


if __name__ == "__main__":
    mujoco.set_mju_user_warning(lambda message: None)  # else a log file is left in the working folder
    opponents = {name: rivals(name) for name in NAMES}  # Async forks here, before JAX starts its threads
    for scenario_name, opponent in opponents.items():
        compare(scenario_name, opponent)
    for scenario_name in NAMES:
        time_jax(scenario_name)
