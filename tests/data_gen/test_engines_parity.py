"""Observations, rewards and terminations on the native engine against Gymnasium-Robotics, every scenario and depth."""

from functools import cache

import numpy as np
import pytest

from data_gen.engines import environments
from data_gen.engines.bodies import BODIES, reward_terms
from data_gen.engines.engine import open_engine
from data_gen.engines.scenarios import SCENARIOS, make_scenario
from tests.data_gen.oracles_mamujoco import STEPS, Rollout, make_env, play_oracle

FLING = {"Walker2d": 9.0, "Hopper": 9.0}  # rad/s; else their clip at 10 is never met before they fall
DEPTHS = (0, 1, 2, None)
CLOSE = dict(rtol=0, atol=1e-6)


@cache
def oracle(name: str) -> Rollout:
    return play_oracle(name, FLING.get(name.split()[0], 0.0))


@cache
def ours(name: str) -> dict:
    """The same rollout in the second of three environments; the others do other things, and must not matter."""
    found, rng = oracle(name), np.random.default_rng(0)
    scenarios = {k: make_scenario(name, k) for k in DEPTHS}
    engine = open_engine("native", scenarios[0].body, 3)
    seen = {k: [] for k in DEPTHS}
    first, rewards, terminated = {k: {} for k in DEPTHS}, [], []
    running = None
    for t in range(STEPS):
        if t in found.starts:
            states = [np.tile(part, (3, 1)) for part in found.starts[t]]
            if running is None:
                running, _ = environments.begin(scenarios[0], engine, *states)
            else:
                running, _ = environments.restart(
                    scenarios[0], engine, running, np.array([False, True, False]), tuple(states)
                )
            for k in DEPTHS:
                first[k][t] = environments.observe(scenarios[k], running.physics.fields, np)[1]
        actions = np.stack([rng.uniform(-1, 1, found.actions[t].shape), found.actions[t], 0 * found.actions[t]])
        running, outcome = environments.step(scenarios[0], engine, 1000, running, actions)
        for k in DEPTHS:
            seen[k].append(environments.observe(scenarios[k], running.physics.fields, np)[1])
        rewards.append(outcome.rewards[1])
        terminated.append(outcome.terminated[1])
        assert not outcome.broken.any() and not outcome.truncated.any()
    engine.close()
    return {"first": first, "seen": seen, "rewards": rewards, "terminated": terminated, "scenarios": scenarios}


@pytest.mark.parametrize("obsk", (0, 1, 2))
@pytest.mark.parametrize("name", SCENARIOS)
def test_agents_see_what_the_oracle_shows(name: str, obsk: int) -> None:
    theirs, mine = oracle(name), ours(name)
    mask = mine["scenarios"][obsk].obs_mask
    pairs = [*zip(theirs.obs[obsk], mine["seen"][obsk], strict=True)]
    pairs += [(theirs.first[obsk][t], mine["first"][obsk][t]) for t in theirs.starts]
    assert len(pairs) == STEPS + len(theirs.starts)
    for wanted, found in pairs:
        for agent, values in enumerate(wanted):
            np.testing.assert_allclose(found[agent, mask[agent]], values, **CLOSE)
            assert (found[agent, ~mask[agent]] == 0).all()


@pytest.mark.parametrize("name", SCENARIOS)
def test_global_state_is_gymnasiums_observation(name: str) -> None:
    for wanted, found in zip(oracle(name).states, ours(name)["seen"][None], strict=True):
        np.testing.assert_allclose(found, np.tile(wanted, (len(found), 1)), **CLOSE)


@pytest.mark.parametrize("name", SCENARIOS)
def test_rewards_and_terminations(name: str) -> None:
    theirs, mine = oracle(name), ours(name)
    wanted = np.tile(np.array(theirs.rewards)[:, None], (1, mine["scenarios"][0].n_agents))
    np.testing.assert_allclose(np.stack(mine["rewards"]), wanted, **CLOSE)
    assert [bool(end) for end in mine["terminated"]] == theirs.terminated
    falls = sum(theirs.terminated)
    assert falls == 0 if name.startswith("HalfCheetah") else falls >= 1 or name.startswith("Ant")


@pytest.mark.parametrize("name", SCENARIOS)
def test_index_maps_are_the_oracles(name: str) -> None:
    for k in (0, 1, 2):
        scenario = make_scenario(name, k)
        for agent, wanted in enumerate(oracle(name).maps[k]):
            assert scenario.seen[agent, scenario.obs_mask[agent]].tolist() == wanted.tolist()


def test_the_oracle_meets_every_clip_and_cost() -> None:
    """Otherwise the tests above would not see a wrong constant."""
    for name, width in (("Hopper 3x1", 6), ("Walker2d 2x3", 9)):
        speeds = [abs(state[-width:]).max() for state in oracle(name).states]
        assert max(speeds) == 10
    local = [abs(np.concatenate(obs)).max() for obs in oracle("Walker2d 2x3").obs[0]]
    assert max(local) > 10.1, "MaMuJoCo shows Walker2d's velocities past Gymnasium's clip"
    assert max(state[27:].max() for state in oracle("Ant 4x2").states) == 1
    assert max(abs(state[-78:]).max() for state in oracle("Humanoid 9|8").states) > 1


@pytest.mark.parametrize("name", ("Ant 4x2", "Hopper 3x1", "Walker2d 2x3", "Humanoid 9|8"))
def test_health_and_contact_cost_at_their_edges(name: str) -> None:
    """Gymnasium's own properties, on states that a rollout seldom meets."""
    base, body = make_env(name, 0).single_agent_env.unwrapped, BODIES[name.split()[0]]
    edges = np.array([0.2, 0.7, 0.8, 1.0, 2.0, -0.2, -1.0, 100.0, -100.0])
    values = np.concatenate([edges, edges - 1e-9, edges + 1e-9, [1.4, 0.0, np.nan]])
    healths = []
    for place in range(body.nq + body.nv):
        for value in values:
            state = np.concatenate([base.init_qpos, base.init_qvel])
            state[place] = value
            base.data.qpos[:], base.data.qvel[:] = state[: body.nq], state[body.nq :]
            fields = {"qpos": base.data.qpos[None].copy(), "qvel": base.data.qvel[None].copy()}
            healths.append(bool(base.is_healthy))
            assert bool(body.is_healthy(fields, np)[0]) == healths[-1], (place, value)
    assert 0 < np.mean(healths) < 1
    if body.contact_weight:
        rng = np.random.default_rng(5)
        still = {field: np.zeros((1, *getattr(base.data, field).shape)) for field in body.fields}
        for scale in (0.3, 30.0, 3e4):
            base.data.cfrc_ext[:] = rng.normal(0, scale, base.data.cfrc_ext.shape)
            after = still | {"cfrc_ext": base.data.cfrc_ext[None].copy()}
            terms = reward_terms(body, still, after, np.zeros((1, body.nu)), np)
            np.testing.assert_allclose(terms.contact[0], base.contact_cost, rtol=1e-9)
