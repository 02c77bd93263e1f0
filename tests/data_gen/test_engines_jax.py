"""Engines in JAX: choice and devices, one program as well as step by step, masks, failures, and MJX against native."""

import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from data_gen.engines import environments
from data_gen.engines.batched import devices_for
from data_gen.engines.bodies import BODIES
from data_gen.engines.engine import Engine, choose_engine, open_engine
from data_gen.trajectory import InputError
from tests.data_gen.jax_rollouts import HORIZON, STEPS, one_step, opened, play, scenario_of, states_of

QUICK = ("HalfCheetah", "mjx")  # compiles fastest of the real ones, and is compiled for the parity anyway
KINDS = [
    ("Hopper", "toy"),
    pytest.param("HalfCheetah", "mjx", marks=pytest.mark.slow),
    pytest.param("Hopper", "brax", marks=pytest.mark.slow),
]


def test_auto_chooses_by_the_backend() -> None:
    assert choose_engine("auto", "cpu") == "native"
    assert choose_engine("auto", "gpu") == choose_engine("auto", "tpu") == "mjx"
    assert choose_engine("native", "gpu") == "native" and choose_engine("brax", "cpu") == "brax"
    engine = open_engine("auto", BODIES["Hopper"], 2, threads=1)
    assert engine.name == "native"
    engine.close()


@pytest.mark.parametrize(
    "name,n_envs,settings,message",
    [
        ("mjcx", 2, {}, "no engine 'mjcx'; did you mean 'mjx'. The engines are native, mjx, brax, and auto"),
        ("mjx", 0, {}, "n_envs is 0"),
        ("mjx", 2, {"device": "gpu"}, "engine mjx: there is no device 'gpu'; JAX sees cpu"),
        ("brax", 2, {"device": "tpu"}, "engine brax: there is no device 'tpu'; JAX sees cpu"),
        ("mjx", 2, {"threads": 2}, "engine mjx: there is no setting 'threads'. Its settings are device"),
        ("native", 2, {"device": "gpu"}, "engine native: there is no setting 'device'. Its settings are threads"),
    ],
)
def test_what_is_wrong_is_named(name: str, n_envs: int, settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_engine(name, BODIES["Hopper"], n_envs, **settings)


def test_environments_that_devices_cannot_share_are_named(monkeypatch) -> None:
    monkeypatch.setattr(jax, "devices", lambda kind: [SimpleNamespace(platform="gpu")] * 4)
    assert len(devices_for("mjx", 8, None)) == 4
    with pytest.raises(InputError, match="n_envs is 10, which 4 gpu devices cannot share evenly; use 8 or 12"):
        devices_for("mjx", 10, None)
    with pytest.raises(InputError, match="n_envs is 3, .*; use 4"):
        devices_for("mjx", 3, None)


def test_changes_and_slowness_are_recorded() -> None:
    humanoid, cheetah = (open_engine("mjx", BODIES[name], 2) for name in ("Humanoid", "HalfCheetah"))
    assert humanoid.notes["solver"].startswith("NEWTON in place of the MJCF's PGS")
    assert "solver" not in cheetah.notes and "slower than native" in cheetah.notes["device"]
    assert humanoid.missing == () and isinstance(humanoid, Engine)


@pytest.mark.parametrize("body_name,kind", KINDS)
def test_one_program_is_the_same_as_step_by_step(body_name: str, kind: str) -> None:
    scenario, engine = scenario_of(body_name), opened(body_name, kind, 4)
    (last, (outcomes, obs)), first = play(scenario, engine)
    running, begun = environments.begin(scenario, engine, *states_of(engine, 3))
    np.testing.assert_allclose(begun, first, rtol=1e-5, atol=1e-6)
    for number in range(STEPS):
        running, (outcome, seen) = one_step(scenario, engine, running, number)
        np.testing.assert_allclose(seen, obs[number], rtol=1e-3, atol=1e-4)
        for mine, theirs in zip(outcome[:-1], outcomes[:-1], strict=True):
            np.testing.assert_allclose(mine, theirs[number], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(running.age, last.age)
    assert outcomes.truncated[HORIZON - 1].all() and last.age.tolist() == [STEPS - HORIZON] * 4
    assert not outcomes.broken.any() and abs(obs[0] - first).max() > 1e-3


@pytest.mark.parametrize("body_name,kind", [KINDS[0], QUICK, KINDS[2]])
def test_reset_touches_only_the_mask(body_name: str, kind: str) -> None:
    engine = opened(body_name, kind, 4)
    states, where = states_of(engine, 3), np.array([False, True, False, False])
    physics = engine.step(engine.begin(*states), np.full((4, engine.body.nu), 0.5))
    again = engine.reset(physics, where, *states)
    kept = [
        (np.asarray(a), np.asarray(b)) for a, b in zip(jax.tree.leaves(physics), jax.tree.leaves(again), strict=True)
    ]
    for before, after in kept:
        np.testing.assert_array_equal(after[~where], before[~where])
    np.testing.assert_array_equal(again.fields["qpos"][1], states[0][1])
    np.testing.assert_array_equal(again.fields["qvel"][1], states[1][1])
    fresh = jax.tree.leaves(engine.begin(*states))
    for (_, after), begun in zip(kept, fresh, strict=True):
        np.testing.assert_array_equal(after[1], begun[1])
    assert any((before[1] != after[1]).any() for before, after in kept)


@pytest.mark.parametrize("body_name,kind", [KINDS[0], QUICK, KINDS[2]])
def test_failed_physics_is_seen_and_stays_with_its_environment(body_name: str, kind: str) -> None:
    scenario, engine = scenario_of(body_name), opened(body_name, kind, 4)
    qpos, qvel = (np.array(part) for part in states_of(engine, 3))
    actions = np.full((4, *scenario.action_mask.shape), 0.3, np.float32)
    wanted, _ = environments.begin(scenario, engine, qpos, qvel)
    wanted, sound = environments.step(scenario, engine, 9, wanted, actions)
    bad = qvel.copy()
    bad[1, 0], bad[2, 1] = np.nan, 1e30  # a NaN from the start, and what only physics finds
    running, _ = environments.begin(scenario, engine, qpos, bad)
    assert running.physics.broken.tolist() == [False, True, True, False]
    running, outcome = environments.step(scenario, engine, 1, running, actions)
    assert outcome.broken.tolist() == [False, True, True, False]
    assert outcome.rewards[1:3].tolist() == [[0] * scenario.n_agents] * 2
    assert outcome.truncated.tolist() == [True, False, False, True]
    assert not outcome.terminated[1:3].any() and np.isfinite(outcome.obs).all()
    for number in (0, 3):
        np.testing.assert_array_equal(outcome.obs[number], sound.obs[number])
    # A control that is not finite breaks its environment alone, which keeps the values that it had.
    actions[3] = np.nan
    held = running.physics.fields["qpos"][3]
    running, outcome = environments.step(scenario, engine, 9, running, actions)
    assert outcome.broken.tolist() == [False, True, True, True]
    np.testing.assert_array_equal(running.physics.fields["qpos"][3], held)
    running, _ = environments.restart(scenario, engine, running, outcome.broken, (qpos, qvel))
    running, outcome = environments.step(scenario, engine, 9, running, np.nan_to_num(actions))
    assert not outcome.broken.any() and running.age.tolist() == [3, 1, 1, 1]


@pytest.mark.parametrize("body_name,kind", KINDS)
def test_four_devices_share_the_work(body_name: str, kind: str, tmp_path) -> None:
    out = tmp_path / "out.npz"
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.data_gen.jax_rollouts", body_name, kind, "4", str(out)]
    subprocess.run(command, check=True, env=environment, timeout=1800)
    found = np.load(out)
    assert found["devices"].tolist() == [4, 4] and found["shares"].tolist() == [1] * 8
    (_, (outcome, obs)), _ = play(scenario_of(body_name), opened(body_name, kind, 4))
    np.testing.assert_allclose(found["obs"], obs, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found["rewards"], outcome.rewards, rtol=1e-3, atol=1e-4)


def natively(engine, states):
    """The native engine with MJX's solver."""
    native = open_engine("native", engine.body, engine.n_envs)
    if engine.body.name == "Humanoid":
        assert native.model.opt.solver == mujoco.mjtSolver.mjSOL_PGS
        native.model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    return native, native.begin(*(np.asarray(part, np.float64) for part in states))


@pytest.mark.parametrize(
    "body_name", [QUICK[0], *(pytest.param(name, marks=pytest.mark.slow) for name in BODIES if name != QUICK[0])]
)
def test_mjx_follows_native(body_name: str) -> None:
    """All that the body reads, from the start on; both are MuJoCo's algorithms, in float32 and float64."""
    engine = opened(body_name, "mjx", 4)
    states = states_of(engine, 3)
    native, theirs = natively(engine, states)
    ours, rng, contacts = engine.begin(*states), np.random.default_rng(2), 0
    for _ in range(11):
        for field in engine.body.fields:
            np.testing.assert_allclose(ours.fields[field], theirs.fields[field], rtol=1e-3, atol=1e-3, err_msg=field)
        assert not ours.broken.any()
        controls = rng.uniform(-1.2, 1.2, (4, engine.body.nu)) * engine.body.bound
        ours, theirs = engine.step(ours, controls), native.step(theirs, controls)
        contacts += sum(data.ncon for data in native.data)
    assert contacts > 0, "nothing touched the floor, so contacts were not compared"
    native.close()


@pytest.mark.slow
def test_a_physics_may_be_used_again() -> None:
    engine = opened(*QUICK, 4)
    physics, controls = engine.begin(*states_of(engine, 3)), jnp.full((4, 6), 0.4)
    first, second = engine.step(physics, controls), engine.step(physics, controls)
    for one, other in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(one, other)
