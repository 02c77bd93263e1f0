"""Brax's spring backend: its coordinates against MuJoCo's, what a control drives, and that bodies move soundly."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from brax import kinematics

from data_gen.engines import environments
from data_gen.engines.bodies import BODIES
from data_gen.engines.brax import links_of, offset_of, system_of, velocities
from data_gen.engines.engine import Engine, open_engine
from data_gen.engines.mjcf import load_model
from data_gen.engines.scenarios import make_scenario, without
from tests.data_gen.jax_rollouts import opened, scenario_of, states_of

SLOW = [name if name == "Hopper" else pytest.param(name, marks=pytest.mark.slow) for name in BODIES]


def scattered(model, n_envs: int):
    """States all over: any place, pitch or attitude of the root, joints within their limits, well above the floor."""
    rng = np.random.default_rng(4)
    qpos = np.tile(model.qpos0, (n_envs, 1))
    root = 7 if model.nq > model.nv else 3
    limits = model.jnt_range[model.jnt_limited == 1]
    qpos[:, root:] = rng.uniform(*(0.9 * limits.T), (n_envs, model.nq - root))
    if root == 7:
        attitude = rng.normal(size=(n_envs, 4))
        qpos[:, 3:7] = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
        qpos[:, :3] += rng.normal(size=(n_envs, 3)) + [0, 0, 9]
    else:
        qpos[:, :3] += rng.uniform(-2.5, 2.5, (n_envs, 3)) + [0, 9, 0]
    return qpos, rng.normal(size=(n_envs, model.nv))


def at(model, qpos, qvel):
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    mujoco.mj_forward(model, data)
    return data


@pytest.mark.parametrize("body_name", SLOW)
def test_brax_takes_and_gives_mujocos_coordinates(body_name: str) -> None:
    """Links are where MuJoCo has them and move as they do there, and Brax's q and our qvel lead back."""
    engine, model = opened(body_name, "brax", 4), load_model(BODIES[body_name])
    system, links = system_of(engine.body), links_of(model)
    qpos, qvel = scattered(model, 4)
    physics = engine.begin(qpos, qvel)
    axes = []
    for number in range(4):
        data, state = at(model, qpos[number], qvel[number]), jax.tree.map(lambda x, n=number: x[n], physics.inner)
        motion = np.zeros((len(links), 6))
        for link, row in zip(links, motion, strict=True):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, link, row, 0)
        np.testing.assert_allclose(state.x.pos, data.xpos[links], atol=1e-5)
        np.testing.assert_allclose(abs((state.x.rot * data.xquat[links]).sum(axis=1)), 1, atol=1e-5)
        np.testing.assert_allclose(state.xd.ang, motion[:, :3], atol=1e-4)
        np.testing.assert_allclose(state.xd.vel, motion[:, 3:], atol=1e-4)
        axes.append(data.xaxis.copy())
        for name in set(engine.body.fields) - set(engine.missing):
            np.testing.assert_allclose(physics.fields[name][number], getattr(data, name), atol=1e-4, err_msg=name)

    @jax.jit
    @jax.vmap
    def back(state, axes):
        with jax.numpy_rank_promotion("allow"):
            q, qd = kinematics.inverse(system, state.j, state.jd)
            return q + offset_of(engine.body, model), velocities(system, state.replace(q=q, qd=qd), axes)

    found = back(physics.inner, jnp.array(axes, jnp.float32))
    if engine.body.nq > engine.body.nv:  # q and −q are one attitude
        sign = np.sign((qpos[:, 3:7] * found[0][:, 3:7]).sum(axis=1, keepdims=True))
        qpos[:, 3:7] *= sign
    np.testing.assert_allclose(found[0], qpos, atol=2e-3)
    np.testing.assert_allclose(found[1], qvel, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("body_name", BODIES)
def test_a_control_drives_the_joint_that_it_drives_in_mujoco(body_name: str) -> None:
    engine, model = opened(body_name, "brax", 4), load_model(BODIES[body_name])
    qpos = np.tile(model.qpos0, (4, 1))
    qpos[:, 2 if model.nq > model.nv else 1] += 5  # in the air
    root = model.nv - model.nu
    joints = range(root, model.nv)
    low, high = model.jnt_range[model.jnt_limited == 1].T
    # At 0, where axes of joints that share a link are orthogonal, unless that is no place for the joint.
    qpos[:, model.nq - model.nu :] = np.where((low < 0) & (high > 0), 0, (low + high) / 2)
    physics = engine.begin(qpos, np.zeros((4, model.nv)))
    rest = np.asarray(engine.step(physics, np.zeros((4, model.nu))).fields["qvel"])
    for actuator in range(model.nu):
        driven = model.jnt_dofadr[model.actuator_trnid[actuator, 0]]
        controls = np.zeros((4, model.nu))
        controls[1, actuator], controls[2, actuator] = 0.3 * engine.body.bound, -0.3 * engine.body.bound
        after = engine.step(physics, controls)
        change = np.asarray(after.fields["qvel"]) - rest
        assert joints[np.argmax(abs(change[1, root:]))] == driven
        assert change[1, driven] > 0 > change[2, driven], "gears are positive"
        np.testing.assert_array_equal(change[[0, 3]], 0)
        if "qfrc_actuator" in after.fields:
            data = mujoco.MjData(model)
            data.ctrl[:] = controls[1]
            mujoco.mj_forward(model, data)
            np.testing.assert_allclose(after.fields["qfrc_actuator"][1], data.qfrc_actuator, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("body_name,low,high", [("HalfCheetah", -0.35, 0.5), ("Ant", 0.2, 1.2), ("Hopper", 0.7, 1.6)])
def test_bodies_stand_and_move_soundly(body_name: str, low: float, high: float) -> None:
    """Nothing flies apart in 100 actions; left alone the body comes to rest on its legs."""
    engine, rng = opened(body_name, "brax", 4), np.random.default_rng(3)
    height = 2 if engine.body.nq > engine.body.nv else 1
    for scale in (0.0, 1.0):
        physics = engine.begin(*states_of(engine, 3))
        first = np.asarray(physics.fields["qpos"])
        for _ in range(100):
            physics = engine.step(physics, scale * rng.uniform(-1, 1, (4, engine.body.nu)))
            assert not physics.broken.any() and abs(physics.fields["qvel"]).max() < 60
        qpos, gap = np.asarray(physics.fields["qpos"]), physics.inner.a_p.pos - physics.inner.a_c.pos
        assert abs(gap[:, 1:]).max() < 0.15, "links have come apart"
        assert ((qpos[:, height] > low) & (qpos[:, height] < high)).all()
        moved = abs(qpos - first)[:, : engine.body.skipped]
        speed = abs(np.asarray(physics.fields["qvel"])).max()
        assert speed < 1 if scale == 0 else moved.max() > 0.05


def test_what_is_missing_is_zero_masked_and_noted() -> None:
    engine = open_engine("brax", BODIES["Ant"], 2)
    assert engine.missing == ("cfrc_ext",) and "contact forces" in engine.notes["contact cost"]
    assert "approximate" in engine.notes["physics"] and isinstance(engine, Engine)
    assert without(make_scenario("Ant 4x2"), engine.missing).obs_mask.sum(axis=1).tolist() == [42 - 24] * 4
    hopper = opened("Hopper", "brax", 4)
    assert hopper.missing == () and "contact cost" not in hopper.notes


@pytest.mark.slow
def test_ant_is_paid_without_contact_cost() -> None:
    engine = opened("Ant", "brax", 4)
    scenario = without(scenario_of("Ant"), engine.missing)
    running, obs = environments.begin(scenario, engine, *states_of(engine, 3))
    for _ in range(10):
        actions = np.full((4, *scenario.action_mask.shape), 0.5, np.float32)
        running, outcome = environments.step(scenario, engine, 100, running, actions)
        assert (outcome.terms.contact == 0).all() and (running.physics.fields["cfrc_ext"] == 0).all()
        np.testing.assert_allclose(outcome.terms.control, 0.5 * 8 * 0.25, rtol=1e-5)
    assert running.physics.fields["cfrc_ext"].shape == (4, 14, 6) and obs.shape == outcome.obs.shape


@pytest.mark.slow
def test_a_somersault_counts_on() -> None:
    """The root's angle goes on past π, as in MuJoCo; Brax gives it within ±π."""
    engine = opened("HalfCheetah", "brax", 4)
    qpos, qvel = np.zeros((4, 9)), np.zeros((4, 9))
    qpos[:, 1], qvel[:, 2], qvel[:, 1] = 20.0, [12, -12, 3, 0], 5.0
    physics, angles = engine.begin(qpos, qvel), []
    for _ in range(20):
        physics = engine.step(physics, np.zeros((4, 6)))
        angles.append(np.asarray(physics.fields["qpos"][:, 2]))
    steps = np.diff(np.array(angles), axis=0)
    assert abs(steps).max() < 2 and angles[-1][0] > 4 and angles[-1][1] < -4
