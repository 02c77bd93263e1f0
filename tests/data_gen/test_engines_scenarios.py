"""Scenarios against the tables read off Gymnasium-Robotics, masks, and one definition for both array namespaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.engines.bodies import BODIES, N_BODIES, WIDTHS, global_state, layout, reward_of, reward_terms
from data_gen.engines.scenarios import (
    SCENARIOS,
    check_range,
    controls_of,
    make_scenario,
    observe,
    padded,
    slots_of,
    state_names,
    state_width,
    without,
)
from data_gen.trajectory import InputError

# Actuators in the order of each agent's actions, and observation widths at obsk 0, 1, 2.
STANDARD = {
    "HalfCheetah 2x3": ([[0, 1, 2], [3, 4, 5]], [[11, 11], [12, 12], [13, 13]]),
    "HalfCheetah 6x1": (
        [[0], [1], [2], [3], [4], [5]],
        [[7] * 6, [9, 9, 8, 9, 9, 8], [11, 10, 9, 11, 10, 9]],
    ),
    "Ant 2x4": ([[2, 3, 4, 5], [6, 7, 0, 1]], [[61, 61], [63, 63], [65, 65]]),
    "Ant 4x2": ([[2, 3], [4, 5], [6, 7], [0, 1]], [[39] * 4, [42] * 4, [45] * 4]),
    "Ant 2x4d": ([[2, 3, 0, 1], [4, 5, 6, 7]], [[61, 61], [63, 63], [65, 65]]),
    "Hopper 3x1": ([[0], [1], [2]], [[7, 7, 7], [8, 9, 8], [9, 9, 9]]),
    "Walker2d 2x3": ([[2, 1, 0], [5, 4, 3]], [[11, 11], [12, 12], [13, 13]]),
    "Humanoid 9|8": (
        [[2, 0, 1, 11, 12, 13, 14, 15, 16], [3, 5, 4, 6, 7, 9, 8, 10]],
        [[236, 167], [242, 170], [244, 174]],
    ),
}
WIDE = {"HalfCheetah": 17, "Ant": 105, "Hopper": 11, "Walker2d": 17, "Humanoid": 348}


def made_up(body, rng, n_envs=4) -> dict[str, np.ndarray]:
    """Fields of the right shapes, large enough to meet the clips."""
    shapes = {"qpos": (body.nq,), "qvel": (body.nv,), "qfrc_actuator": (body.nv,), "xpos": (N_BODIES, 3)}
    shapes |= {"subtree_com": (N_BODIES, 3)} | {name: (N_BODIES, width) for name, width in WIDTHS.items()}
    return {name: rng.normal(0, 3, (n_envs, *shapes[name])) for name in body.fields}


def test_all_standard_scenarios_are_there() -> None:
    assert set(SCENARIOS) == set(STANDARD)


@pytest.mark.parametrize("name", STANDARD)
def test_actions_go_to_the_standard_actuators(name: str) -> None:
    agents, _ = STANDARD[name]
    scenario = make_scenario(name)
    actions = np.full((1, *scenario.action_mask.shape), np.nan)
    wanted = np.zeros(scenario.body.nu)
    for agent, actuators in enumerate(agents):
        for slot, actuator in enumerate(actuators):
            actions[0, agent, slot] = wanted[actuator] = 100 * agent + slot
    np.testing.assert_array_equal(controls_of(scenario, actions), wanted[None])
    assert scenario.action_mask.sum(axis=1).tolist() == [len(agent) for agent in agents]


@pytest.mark.parametrize("name", STANDARD)
def test_widths_are_the_standard_ones(name: str) -> None:
    for k, widths in enumerate(STANDARD[name][1]):
        scenario = make_scenario(name, k)
        assert scenario.obs_mask.sum(axis=1).tolist() == widths
        assert scenario.obs_mask.shape[1] == max(widths)
        assert [len(names) for names in scenario.obs_names] == widths
    everything = make_scenario(name, None)
    assert everything.obs_mask.all() and everything.seen.shape[1] == WIDE[name.split()[0]]


def test_an_index_map_by_hand() -> None:
    scenario = make_scenario("HalfCheetah 2x3", 1)
    assert scenario.seen[0].tolist() == [4, 13, 3, 12, 2, 11, 5, 0, 1, 8, 9, 10]
    assert scenario.obs_names[0][:7] == (
        *("qpos bfoot", "qvel bfoot", "qpos bshin", "qvel bshin", "qpos bthigh", "qvel bthigh", "qpos fthigh"),
    )
    assert scenario.obs_names[0][7:] == ("qpos 1", "qpos 2", "qvel 0", "qvel 1", "qvel 2")
    assert scenario.limbs == (("bthigh", "bshin", "bfoot"), ("fthigh", "fshin", "ffoot"))
    humanoid = make_scenario("Humanoid 9|8", 0)
    assert humanoid.obs_names[1][:2] == ("qpos left_hip_x", "qvel left_hip_x")
    assert humanoid.obs_names[1][2] == "cinert body 7.0" and "qfrc_actuator left_knee" in humanoid.obs_names[1]


@pytest.mark.parametrize("name", BODIES)
def test_every_number_of_the_state_has_a_name(name: str) -> None:
    names = state_names(BODIES[name])
    assert len(set(names)) == len(names) == state_width(BODIES[name]) == WIDE[name]


def test_fields_an_engine_lacks_are_masked() -> None:
    scenario = make_scenario("Ant 4x2", 1)
    less = without(scenario, ("cfrc_ext", "cinert"))
    names = [
        n for agent in range(4) for n, keep in zip(scenario.obs_names[agent], less.obs_mask[agent], strict=True) if keep
    ]
    assert less.obs_mask.sum(axis=1).tolist() == [42 - 24] * 4
    assert not any("cfrc_ext" in name for name in names)
    np.testing.assert_array_equal(without(scenario, ()).obs_mask, scenario.obs_mask)
    with pytest.raises(InputError, match="must be a tuple of cfrc_ext, cinert, cvel, qfrc_actuator, qpos, qvel"):
        without(scenario, ("contact",))


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("obsk", (1, None))
def test_jax_and_numpy_agree(name: str, obsk: int | None) -> None:
    scenario, rng = make_scenario(name, obsk), np.random.default_rng(3)
    before, after = made_up(scenario.body, rng), made_up(scenario.body, rng)
    actions = rng.normal(size=(4, *scenario.action_mask.shape))

    def everything(before, after, actions, xp):
        controls = controls_of(scenario, actions)
        terms = reward_terms(scenario.body, before, after, controls, xp)
        return observe(scenario, after, xp), reward_of(terms), scenario.body.is_healthy(after, xp)

    wanted = everything(before, after, actions, np)
    small = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (before, after, actions))
    found = jax.jit(lambda *x: everything(*x, jnp))(*small)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)


def test_padding_by_hand() -> None:
    filled, mask = padded([[5], [6, 7]])
    assert filled.tolist() == [[5, 0], [6, 7]] and mask.tolist() == [[True, False], [True, True]]


def test_layout_and_clips_by_hand() -> None:
    ant = BODIES["Ant"]
    assert layout(ant) == {"qpos": (0, 13), "qvel": (13, 14), "cfrc_ext": (27, 78)}
    fields = {"qpos": np.zeros((1, 15)), "qvel": np.full((1, 14), 50.0), "cfrc_ext": np.zeros((1, 14, 6))}
    fields["cfrc_ext"][0, 0], fields["cfrc_ext"][0, 1, 0] = 9.0, -9.0  # the world's row is not observed
    state = global_state(ant, fields, np, ant.velocity_clip)
    assert state[0, 13] == 50 and state[0, 27] == -1 and state[0, 28:].tolist() == [0.0] * 77


def test_what_is_unknown_is_named() -> None:
    with pytest.raises(InputError, match=r"did you mean 'Ant 4x2'.*HalfCheetah 2x3, HalfCheetah 6x1, Ant 2x4"):
        make_scenario("ant 4x2")
    with pytest.raises(InputError, match="did you mean 'HalfCheetah 2x3'"):
        make_scenario("HalfCheetah 3x3")
    with pytest.raises(InputError, match="obsk is 3; it must be 0, 1 or 2"):
        make_scenario("Ant 4x2", 3)


def test_indices_out_of_range_are_no_clamped_ones() -> None:
    check_range(np.array([[0, 16]]), 17, "x")
    with pytest.raises(InputError, match=r"cheetah: index 17 at \(0, 1\) is outside 0..16"):
        check_range(np.array([[0, 17]]), 17, "cheetah")
    with pytest.raises(InputError, match=r"index -1 at \(0, 0\)"):
        check_range(np.array([[-1, 3]]), 17, "cheetah")
    with pytest.raises(InputError, match=r"actuators \[0, 0, 1\] must be 0..2, each once"):
        slots_of(np.array([[0, 1], [0, 0]]), np.array([[True, True], [True, False]]), 3, "twice")
