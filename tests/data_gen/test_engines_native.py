"""The native engine: threads change nothing, failures are seen, episodes end in their own ways."""

import os
import subprocess
import sys

import jax
import mujoco
import numpy as np
import pytest

from data_gen.engines import environments
from data_gen.engines.bodies import BODIES
from data_gen.engines.engine import open_engine, start_states
from data_gen.engines.mjcf import load_model
from data_gen.engines.scenarios import make_scenario
from data_gen.trajectory import InputError
from tests.data_gen.oracles_mamujoco import make_env


def started(body_name: str, n_envs: int, **settings):
    """An engine and starting states, the same ones every time."""
    engine = open_engine("native", BODIES[body_name], n_envs, **settings)
    keys = jax.random.split(jax.random.key(0), n_envs)
    return engine, [np.asarray(part, np.float64) for part in start_states(body_name, engine.start, keys)]


@pytest.mark.parametrize("body_name", ("HalfCheetah", "Ant"))
def test_threads_change_nothing(body_name: str) -> None:
    found = []
    for threads in (1, 4):
        engine, states = started(body_name, 5, threads=threads)
        physics = engine.begin(*states)
        rng = np.random.default_rng(1)
        for _ in range(30):
            physics = engine.step(physics, rng.uniform(-1, 1, (5, engine.body.nu)))
        engine.close()
        found.append(physics.fields)
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name])
    assert len({tuple(row) for row in found[0]["qpos"].tolist()}) == 5


def test_reset_touches_only_the_mask() -> None:
    engine, states = started("Ant", 3)
    physics = engine.begin(*states)
    for _ in range(10):
        physics = engine.step(physics, np.full((3, 8), 0.5))
    again = engine.reset(physics, np.array([False, True, False]), *states)
    np.testing.assert_array_equal(again.fields["qpos"][1], states[0][1])
    np.testing.assert_array_equal(again.fields["cfrc_ext"][1], 0)
    for name, values in physics.fields.items():
        np.testing.assert_array_equal(again.fields[name][[0, 2]], values[[0, 2]])
    assert abs(physics.fields["qpos"][1] - states[0][1]).max() > 1e-3
    engine.close()


def test_failed_physics_is_seen_though_mujoco_resets(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    mujoco.set_mju_user_warning(None)  # the oracle sets one too
    engine, states = started("HalfCheetah", 3)
    scenario = make_scenario("HalfCheetah 2x3")
    running, _ = environments.begin(scenario, engine, *states)
    states[1][2, 0] = 1e200
    running, _ = environments.restart(scenario, engine, running, np.array([False, False, True]), tuple(states))
    running, outcome = environments.step(scenario, engine, 1, running, np.ones((3, 2, 3)))
    assert outcome.broken.tolist() == [False, False, True]
    assert np.isfinite(running.physics.fields["qpos"]).all(), "MuJoCo has put a sound state in its place"
    assert outcome.truncated.tolist() == [True, True, False] and not outcome.terminated.any()
    assert outcome.rewards[2].tolist() == [0, 0] and (outcome.rewards[:2] != 0).all()
    states[1][2, 0] = 0
    running, _ = environments.restart(scenario, engine, running, outcome.broken, tuple(states))
    running, outcome = environments.step(scenario, engine, 9, running, np.ones((3, 2, 3)))
    assert not outcome.broken.any() and running.age.tolist() == [2, 2, 1]
    assert os.listdir(tmp_path) == [], "MuJoCo left its log behind"
    engine.close()


@pytest.mark.parametrize("wild", [np.nan, np.inf, 1e30])
def test_an_action_that_is_not_sound_breaks_its_environment_alone(wild: float) -> None:
    """NaN is no control at all; a control cost of 1e60 is no reward, though MuJoCo clamps the force."""
    engine, states = started("Hopper", 3)
    scenario = make_scenario("Hopper 3x1", 0)
    running, _ = environments.begin(scenario, engine, *states)
    actions = np.zeros((3, 3, 1))
    actions[1, 2] = wild
    running, outcome = environments.step(scenario, engine, 9, running, actions)
    assert outcome.broken.tolist() == [False, True, False]
    assert outcome.rewards[1].tolist() == [0, 0, 0] and (outcome.rewards[[0, 2]] != 0).all()
    assert not (outcome.terminated | outcome.truncated)[1]
    running, _ = environments.restart(scenario, engine, running, outcome.broken, tuple(states))
    running, outcome = environments.step(scenario, engine, 9, running, np.zeros((3, 3, 1)))
    assert not outcome.broken.any() and running.age.tolist() == [2, 1, 2]
    engine.close()


def test_what_does_not_fit_the_environments_is_named() -> None:
    engine, states = started("Hopper", 2)
    scenario = make_scenario("Hopper 3x1", 0)
    running, _ = environments.begin(scenario, engine, *states)
    for shape in ((2, 3, 2), (2, 2, 1), (1, 3, 1)):
        with pytest.raises(InputError, match=r"needs \(2, 3, 1\)"):
            environments.step(scenario, engine, 9, running, np.zeros(shape))
    with pytest.raises(InputError, match="engine native of Hopper: .* HalfCheetah 2x3"):
        environments.step(make_scenario("HalfCheetah 2x3"), engine, 9, running, np.zeros((2, 2, 3)))
    with pytest.raises(InputError, match="mask of 2 truth values"):
        environments.restart(scenario, engine, running, np.array([True]), (states[0][:1], states[1][:1]))
    engine.close()
    with pytest.raises(InputError, match="closed"):
        environments.step(scenario, engine, 9, running, np.zeros((2, 3, 1)))


def test_more_environments_than_memory_holds_are_refused_at_once() -> None:
    with pytest.raises(InputError, match="100000000 environments of Hopper, .* kB each"):
        open_engine("native", BODIES["Hopper"], 10**8)


def test_terminated_and_truncated_apart() -> None:
    engine, states = started("Hopper", 2)
    scenario = make_scenario("Hopper 3x1", 0)
    states[0][1, 2] = 0.6  # leans further than the healthy .2 rad
    running, _ = environments.begin(scenario, engine, *states)
    ends = []
    for _ in range(3):
        running, outcome = environments.step(scenario, engine, 3, running, np.zeros((2, 3, 1)))
        ends.append((outcome.terminated.tolist(), outcome.truncated.tolist()))
    assert ends == [([False, True], [False, False])] * 2 + [([False, True], [True, True])]
    assert outcome.terms.healthy.tolist() == [1, 0]
    engine.close()


@pytest.mark.parametrize("body_name,scenario", [(name.split()[0], name) for name in ("Ant 4x2", "Hopper 3x1")])
def test_starts_have_gymnasiums_noise(body_name: str, scenario: str) -> None:
    base = make_env(scenario, 0).single_agent_env.unwrapped
    theirs = []
    for seed in range(200):
        base.reset(seed=seed)
        theirs.append(np.concatenate([base.data.qpos, base.data.qvel]))
    start = (base.init_qpos, base.init_qvel)
    qpos, qvel = start_states(body_name, start, jax.random.split(jax.random.key(1), 200))
    ours, theirs = np.concatenate([qpos, qvel], axis=1) - np.concatenate(start), theirs - np.concatenate(start)
    nq = len(start[0])
    for part in (slice(0, nq), slice(nq, None)):
        a, b = ours[:, part], theirs[:, part]
        np.testing.assert_allclose(a.std(), b.std(), rtol=0.05)
        np.testing.assert_allclose((a**4).mean() / a.var() ** 2, (b**4).mean() / b.var() ** 2, rtol=0.1)
        assert abs(a.mean()) < 0.05 * a.std() * 2


def test_starts_depend_on_their_key_alone() -> None:
    start = (np.zeros(6), np.zeros(6))
    keys = jax.random.split(jax.random.key(2), 3)
    more = start_states("Hopper", start, keys)
    less = start_states("Hopper", start, keys[1:2])
    np.testing.assert_array_equal(more[0][1:2], less[0])
    np.testing.assert_array_equal(more[1][1:2], less[1])


def test_bad_settings_are_named(monkeypatch) -> None:
    hopper = BODIES["Hopper"]
    with pytest.raises(InputError, match="no engine 'mjcx'; did you mean 'mjx'. The engines are native"):
        open_engine("mjcx", hopper, 2)
    with pytest.raises(InputError, match="n_envs is 0"):
        open_engine("native", hopper, 0)
    with pytest.raises(InputError, match="threads is -1"):
        open_engine("native", hopper, 2, threads=-1)
    with pytest.raises(InputError, match="Hopper needs .9, 6, 3"):
        load_model(hopper._replace(nq=9))
    with pytest.raises(InputError, match="has no .*nowhere.xml"):
        load_model(hopper._replace(xml="nowhere.xml"))
    engine, states = started("Hopper", 2)
    with pytest.raises(InputError, match=r"needs \(2, 6\) and \(2, 6\)"):
        environments.begin(make_scenario("Hopper 3x1"), engine, states[0][:1], states[1][:1])
    engine.close()
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.delitem(sys.modules, "data_gen.engines.native")
    with pytest.raises(InputError, match=r"package 'mujoco' is not installed. Run: python -m pip install .*\[mujoco\]"):
        open_engine("native", hopper, 2)


@pytest.mark.parametrize("graphics", ["osmesa", "nonsense"])
def test_physics_runs_where_the_graphics_that_were_asked_for_do_not(graphics: str) -> None:
    code = (
        "from data_gen.engines.bodies import BODIES; from data_gen.engines.engine import open_engine; import os;"
        "engine = open_engine('native', BODIES['Hopper'], 1); engine.begin(*(part[None] for part in engine.start));"
        "print(engine.name, os.environ['MUJOCO_GL'])"
    )
    env = {**os.environ, "MUJOCO_GL": graphics}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["native", graphics], done.stderr


@pytest.mark.parametrize("name", BODIES)
def test_switching_islands_off_changes_nothing(name: str) -> None:
    engine, states = started(name, 1)
    model, controls = load_model(BODIES[name]), np.random.default_rng(4).uniform(-1, 1, (60, 1, BODIES[name].nu))
    data = mujoco.MjData(model)
    assert model.opt.disableflags != engine.model.opt.disableflags
    data.qpos[:], data.qvel[:] = states[0][0], states[1][0]
    mujoco.mj_forward(model, data)
    physics = engine.begin(*states)
    for control in controls:
        physics = engine.step(physics, control)
        data.ctrl[:] = control[0]
        mujoco.mj_step(model, data, engine.body.frame_skip)
    np.testing.assert_array_equal(physics.fields["qpos"][0], data.qpos)
    engine.close()
