"""Gymnasium-Robotics' MaMuJoCo as an oracle: one physics rollout seen at several neighbour depths."""

import warnings
from typing import NamedTuple

import numpy as np

STEPS, SEED = 200, 7


class Rollout(NamedTuple):
    """Of one environment. `starts` maps a step to the state set before it; `observations[obsk][t][agent]`, where t = 0
    and every start have one more than the steps."""

    starts: dict[int, tuple[np.ndarray, np.ndarray]]
    first: dict[int, dict[int, list[np.ndarray]]]
    actions: np.ndarray
    obs: dict[int, list[list[np.ndarray]]]
    states: list[np.ndarray]
    rewards: list[float]
    terminated: list[bool]
    maps: dict[int, list[np.ndarray]]


def make_env(name: str, obsk: int, gym_env=None):
    """The oracle at one depth; depths share a physics where `gym_env` is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports and rendering set-up
        import mujoco
        from gymnasium_robotics import mamujoco_v1

        mujoco.set_mju_user_warning(print)  # else MuJoCo leaves a log file in the working folder
        body, partition = name.split()
        return mamujoco_v1.parallel_env(body, partition, agent_obsk=obsk, gym_env=gym_env)


def seen(env) -> list[np.ndarray]:
    return [env._get_obs()[agent] for agent in env.possible_agents]


def play_oracle(name: str, fling: float) -> Rollout:
    """200 random actions, some beyond the bounds; a fallen body starts again.

    `fling` adds to the starting velocities, so that clips of velocities are met.
    """
    first = make_env(name, 0)
    envs = {0: first, **{k: make_env(name, k, first.single_agent_env) for k in (1, 2)}}
    base = first.single_agent_env.unwrapped
    rng = np.random.default_rng(SEED)
    n_agents, width = len(first.possible_agents), max(space.shape[0] for space in first.action_spaces.values())
    bound = 1.2 * base.action_space.high[0]
    actions = rng.uniform(-bound, bound, (STEPS, n_agents, width))
    found = Rollout({}, {k: {} for k in envs}, actions, {k: [] for k in envs}, [], [], [], {})
    done = True
    for t in range(STEPS):
        if done:
            first.reset(seed=SEED + t)
            base.set_state(base.data.qpos, base.data.qvel + fling * rng.standard_normal(base.model.nv))
            found.starts[t] = (base.data.qpos.copy(), base.data.qvel.copy())
            for k, env in envs.items():
                found.first[k][t] = seen(env)
        chosen = {
            agent: actions[t, i, : first.action_spaces[agent].shape[0]] for i, agent in enumerate(first.possible_agents)
        }
        obs, reward, terminated, _, _ = first.step(chosen)
        done = terminated["agent_0"]
        for k, env in envs.items():
            found.obs[k].append(seen(env) if k else [obs[agent] for agent in first.possible_agents])
        found.states.append(base._get_obs())
        found.rewards.append(float(reward["agent_0"]))
        found.terminated.append(bool(done))
    found.maps.update({k: list(env.observation_factorization.values()) for k, env in envs.items()})
    first.close()
    return found
