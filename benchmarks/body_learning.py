"""Do two halves of a cheetah learn to run? `python benchmarks/body_learning.py` (36 minutes on 2 busy cores).

Trains 4 seeds of HalfCheetah 2x3 for 2 million steps each on native, with the settings of conf/learner/ppo_body.yaml,
prints the curve and the time, and then plays whole episodes with the last policies. The exit code is 1 where a bar is
missed: a mean return of 1500 in 3 of 4 seeds, in 60 minutes or less.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import yaml

from data_gen.domains.mujoco import EngineChoice, MuJoCo
from data_gen.keys import named_key
from data_gen.learners.ppo import PPO
from data_gen.recording.body_world import BodyWorld

SEEDS, STEPS, EPISODES, ROWS = 4, 2_000_000, 16, 20
SETTINGS = Path(__file__).parent.parent / "conf" / "learner" / "ppo_body.yaml"


def learner() -> PPO:
    """The experiment's learner, for as many updates as the steps need."""
    given = yaml.safe_load(SETTINGS.read_text())
    return PPO(**given | {"updates": -(-STEPS // (given["envs"] * given["segment"]))})


def show(curve: np.ndarray, ppo: PPO, start: int) -> None:
    """Mean return of the episodes that ended in these updates, by seed."""
    steps = (start + curve.shape[1]) * ppo.envs * ppo.segment
    print(f"  {steps:9,d} steps  " + "  ".join(f"{value:7.0f}" for value in np.nanmean(curve, axis=1)), flush=True)


def main() -> None:
    """Train, print, play."""
    ppo = learner()
    world = BodyWorld(MuJoCo(scenario="HalfCheetah 2x3", recorded=1000, engine=EngineChoice("native")), ppo)
    seeds = jnp.arange(SEEDS, dtype=jnp.int32)
    key = named_key(0, "mujoco", "train")
    began = time.perf_counter()
    state = world.start(jax.vmap(lambda seed: jax.random.fold_in(key, seed))(seeds))
    print(f"HalfCheetah 2x3, {ppo.updates} updates of {ppo.envs} x {ppo.segment} steps; mean return by seed")
    for start in range(0, ppo.updates, -(-ppo.updates // ROWS)):
        count = min(-(-ppo.updates // ROWS), ppo.updates - start)
        state, progress = world.train(state, count, lambda share: None)
        show(np.asarray(progress.team_return), ppo, start)
    minutes = (time.perf_counter() - began) / 60
    found = world.play(state, named_key(0, "mujoco", "record"), seeds, jnp.int32(0), EPISODES)
    returns = found.rewards.mean(axis=2).sum(axis=1).reshape(SEEDS, EPISODES)
    print(f"  {SEEDS * ppo.updates * ppo.envs * ppo.segment:,d} environment steps in {minutes:.1f} minutes")
    print(
        f"  mean return of {EPISODES} whole episodes with the last policies: {np.round(returns.mean(axis=1)).tolist()}"
    )
    reached = np.sum(returns.mean(axis=1) >= 1500) >= 3 and minutes <= 60
    print("reached" if reached else "MISSED", "mean return of 1500 in 3 of 4 seeds, in 60 minutes")
    sys.exit(0 if reached else 1)


if __name__ == "__main__":
    main()
