import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains import DOMAIN_CONFIGS, DOMAINS, coordination, hill_climbing, label_names, plane
from data_gen.domains.coordination import Coordination, MeetingState
from data_gen.domains.hill_climbing import HillClimbing, HillState
from data_gen.learners.rollout import act_random, act_scripted, play, team_return
from data_gen.trajectory import InputError, RowIndex, TrajectoryBatch
from tests.data_gen.oracles_plane import best_assignment, hill_reward

KINDS = [(name, kind) for name in DOMAINS for kind in plane.ACTIONS]
HILL = DOMAIN_CONFIGS["hill_climbing"]()


def make(name, kind):
    return DOMAINS[name](DOMAIN_CONFIGS[name](actions=kind))


def rows_of(group, checkpoint):
    group, checkpoint = np.array(group, np.int32), np.array(checkpoint, np.int32)
    return RowIndex(np.arange(len(group), dtype=np.int32), group, checkpoint, np.zeros_like(group))


def batch_of(position, extra=0):
    """A batch whose observations are positions and `extra` more columns of zeros."""
    position = np.asarray(position, np.float32)
    obs = np.concatenate([position, np.zeros((*position.shape[:3], extra), np.float32)], axis=-1)
    return TrajectoryBatch(obs, np.zeros(obs.shape[:3], np.int32), np.ones(obs.shape[:3], bool))


@pytest.mark.parametrize(
    "action, moved", [((0.3, 0.4), (0.03, 0.04)), ((3.0, 4.0), (0.06, 0.08)), ((-2.0, 0.0), (-0.1, 0.0))]
)
def test_continuous_moves_are_cut_to_the_longest_step(action, moved):
    got = plane.displacement(jnp.array([action]), "continuous", 0.1)
    np.testing.assert_allclose(got, [moved], rtol=1e-6)


def test_discrete_moves_are_stay_and_eight_directions_of_one_length():
    moved = np.asarray(plane.displacement(jnp.arange(9), "discrete", 0.1))
    angle = np.arctan2(moved[1:, 1], moved[1:, 0]) % (2 * np.pi)
    np.testing.assert_allclose(angle, np.arange(8) * np.pi / 4, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), [0] + [0.1] * 8, atol=1e-7)


@pytest.mark.parametrize("kind", plane.ACTIONS)
def test_walls_stop_an_agent_and_targets_are_reached(kind):
    corner = jnp.array([[0.95, 0.2]])
    target = jnp.array([[2.0, 0.2]])
    assert np.asarray(plane.move(corner, plane.toward(corner, target, kind, 0.1), kind, 0.1))[0, 0] == 1.0
    position, goal = jnp.array([[-0.5, 0.1], [0.3, -0.7]]), jnp.array([[0.3, 0.4], [0.31, -0.72]])
    for _ in range(20):
        position = plane.move(position, plane.toward(position, goal, kind, 0.1), kind, 0.1)
    reach = 1e-6 if kind == "continuous" else 0.06
    assert np.linalg.norm(np.asarray(position - goal), axis=1).max() < reach


def test_other_agents_are_seen_in_cyclic_order():
    seen = plane.others_offset(jnp.array([[0.0, 0.0], [1.0, 2.0], [5.0, 7.0]]))
    np.testing.assert_allclose(seen, [[1, 2, 5, 7], [4, 5, -1, -2], [-5, -7, -4, -5]])


@pytest.mark.parametrize("name, kind", KINDS)
def test_domain_runs_and_describes_its_episodes(name, kind):
    domain = make(name, kind)
    keys = jax.random.split(jax.random.key(3), 5)
    episodes = jax.vmap(lambda key: play(domain, lambda s, o, k: act_random(domain, s, o, k), key))(keys)
    obs, actions = np.asarray(episodes.obs), np.asarray(episodes.actions)
    batch = TrajectoryBatch(obs, actions, np.ones(obs.shape[:3], bool))
    assert obs.shape == (5, domain.horizon, domain.n_agents, len(domain.obs_names))
    labels = domain.measure(batch, rows_of([0, 0, 1, 1, 1], [0, 1, 0, 1, 1]))
    assert {spec.source for spec in labels.specs} <= set(labels.values)
    assert label_names(domain.config) == sorted([*(spec.name for spec in labels.specs), "return_class", "progress"])
    for spec in labels.specs:
        values = labels.values[spec.source]
        assert values.dtype == (np.float32 if spec.kind == "quantile" else np.int32)
        assert spec.kind == "quantile" or 0 <= values.min() <= values.max() < len(spec.classes)
    moves = np.asarray(plane.displacement(jnp.asarray(actions), kind, domain.config.max_step))
    place = obs[..., list(domain.position)]
    np.testing.assert_allclose(place[:, 1:], np.clip(place + moves, -1, 1)[:, :-1], atol=1e-6)


@pytest.mark.parametrize("name", DOMAINS)
def test_hand_features_read_no_masked_value_and_are_no_label(name):
    domain = make(name, "continuous")
    rng = np.random.default_rng(0)
    obs = rng.normal(size=(6, 12, domain.n_agents, len(domain.obs_names))).astype(np.float32)
    actions = rng.normal(size=(*obs.shape[:3], 2)).astype(np.float32)
    mask = np.ones(obs.shape[:3], bool)
    mask[1, 7:], mask[2, :3, 0] = False, False
    clean = domain.hand_features(TrajectoryBatch(obs, actions, mask))
    noise = rng.normal(size=obs.shape).astype(np.float32) * 10
    dirty = domain.hand_features(TrajectoryBatch(np.where(mask[..., None], obs, noise), actions, mask))
    np.testing.assert_array_equal(clean.values, dirty.values)
    assert len(clean.names) >= 6 and clean.values.std(axis=0).min() > 0
    values = domain.measure(TrajectoryBatch(obs, actions, mask), rows_of([0] * 6, range(6))).values
    for label in (v.reshape(6, -1)[:, 0] for v in values.values()):
        assert not any(np.allclose(column, label) for column in clean.values.T)


def test_path_length_and_straightness_by_hand():
    track = np.array([[0, 0], [3, 0], [3, 4], [3, 4]], np.float32)[None, :, None, :]
    length, straight = plane.paths(track, np.ones((1, 4, 1), bool))
    np.testing.assert_allclose([length[0, 0], straight[0, 0]], [7, 5 / 7])
    length, _ = plane.paths(track, np.array([True, True, False, True])[None, :, None])
    np.testing.assert_allclose(length, [[3]])


def test_team_reward_equals_the_sum_by_agent_and_hill():
    position = np.random.default_rng(1).uniform(-1, 1, (20, 3, 2)).astype(np.float32)
    position[0] = [[0.6, 0.6], [0.6, 0.6], [-0.65, 0.5]]
    got = hill_climbing.team_reward(HILL, jnp.asarray(position))
    want = [hill_reward(p, HILL.hills, HILL.width, HILL.crowding) for p in position]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_a_crowded_hill_pays_each_less():
    config = HillClimbing(hills=[[0.0, 0.0, 1.0], [0.9, 0.9, 1.0]], width=0.1)
    alone = hill_climbing.team_reward(config, jnp.array([[0.0, 0.0], [0.9, 0.9], [-1.0, -1.0]]))
    crowded = hill_climbing.team_reward(config, jnp.array([[0.0, 0.0], [0.0, 0.0], [-1.0, -1.0]]))
    np.testing.assert_allclose([alone, crowded], [2 / 3, 1 / 3], rtol=1e-4)


@pytest.mark.parametrize("kind, share", [("continuous", 0.999), ("discrete", 0.97)])
def test_scripted_team_is_as_good_as_the_best_assignment(kind, share):
    config = HillClimbing(actions=kind)
    domain = hill_climbing.make(config)
    run = jax.jit(lambda key: play(domain, lambda s, o, k: act_scripted(domain, s, o, k), key))
    for seed in range(4):
        episode = run(jax.random.key(seed))
        facts = (config.hills, config.width, config.crowding, config.max_step, config.horizon)
        best = best_assignment(np.asarray(episode.obs)[0, :, :2], *facts)
        got = float(team_return(episode.rewards))
        assert share * best <= got <= 1.02 * best


def test_height_is_observed_only_on_request():
    state = HillState(jnp.array([[0.6, 0.6], [0.0, 0.0], [-0.65, 0.5]]))
    assert hill_climbing.observe(HILL, state).shape == (3, 6)
    seen = np.asarray(hill_climbing.observe(HillClimbing(observe_height=True), state))
    heights = [
        sum(h * np.exp(-((px - x) ** 2 + (py - y) ** 2) / (2 * HILL.width**2)) for x, y, h in HILL.hills)
        for px, py in np.asarray(state.position)
    ]
    np.testing.assert_allclose(seen[:, 6], heights, rtol=1e-5)


def test_hill_labels_of_planted_tracks():
    a, b = HILL.hills[0][:2], HILL.hills[1][:2]
    edge = [a[0] + 0.99 * HILL.width * np.sqrt(2 * np.log(2)), a[1]]
    beyond = [a[0] + 1.01 * HILL.width * np.sqrt(2 * np.log(2)), a[1]]
    ends = np.array([[a, b, [0, 0]], [edge, a, a], [beyond, b, b], [[0, 0]] * 3])
    track = np.zeros((4, 9, 3, 2))
    track[:, 6:] = ends[:, None]
    values = hill_climbing.measure(HILL, batch_of(track, extra=4), rows_of([0] * 4, [0] * 4)).values
    np.testing.assert_array_equal(values["hill"], [[0, 1, 4], [0, 0, 0], [4, 1, 1], [4, 4, 4]])
    np.testing.assert_array_equal(values["n_hills"], [2, 1, 1, 0])
    np.testing.assert_array_equal(values["hill_set"], [3, 1, 2, 0])
    apart = [np.linalg.norm(np.array(p) - q) for p, q in ((a, b), (a, [0, 0]), (b, [0, 0]))]
    np.testing.assert_allclose(values["dispersion"][0], np.mean(apart), rtol=1e-6)
    np.testing.assert_allclose(values["dispersion"][3], 0, atol=1e-7)


def test_partner_is_hidden_until_one_has_committed():
    hidden = jnp.zeros(2, bool)
    near, far = jnp.array([[0.0, 0.0], [0.1, 0.0]]), jnp.array([[0.0, 0.0], [0.3, -0.2]])
    first, second = (np.asarray(coordination.observe(MeetingState(p, hidden))) for p in (near, far))
    np.testing.assert_array_equal(first[0], second[0])
    shown = np.asarray(coordination.observe(MeetingState(far, jnp.array([False, True]))))
    np.testing.assert_allclose(shown, [[0, 0, 0.3, -0.2, 1], [0.3, -0.2, -0.3, 0.2, 1]], rtol=1e-6)


def test_commitment_outlives_leaving_the_goal():
    config = Coordination(actions="continuous")
    state = MeetingState(jnp.array([[config.distance, 0.0], [0.0, 0.0]]), jnp.zeros(2, bool))
    stay, leave = jnp.zeros((2, 2)), jnp.array([[-1.0, 0.0], [0.0, 0.0]])
    state, _ = coordination.step(config, state, stay)
    for _ in range(4):
        state, rewards = coordination.step(config, state, leave)
    assert not np.any(np.asarray(coordination.at_goals(config, state.position))) and not np.any(np.asarray(rewards))
    np.testing.assert_array_equal(state.committed, [True, False])


def test_only_the_same_goal_pays():
    config = Coordination()
    goals = coordination.goal_places(config)
    np.testing.assert_allclose(goals, [[0.7, 0], [0, 0.7], [-0.7, 0], [0, -0.7]], atol=1e-7)
    still = jnp.zeros(2, jnp.int32)
    for places, paid in (((0, 0), 1), ((0, 1), 0), ((2, 2), 1)):
        state = MeetingState(jnp.asarray(goals[list(places)]), jnp.zeros(2, bool))
        np.testing.assert_array_equal(coordination.step(config, state, still)[1], [paid, paid])


def test_coordination_labels_of_planted_tracks():
    goal = np.array([[0.0, 0.0], [0.7, 0.0], [0.0, 0.7]])
    tracks = [  # the goals (0 for none) at which the agents stand, step by step
        ([0, 1, 1, 1, 1], [0, 0, 0, 1, 1]),
        ([0, 0, 2, 2, 2], [0, 2, 2, 2, 2]),
        ([0, 1, 1, 1, 1], [0, 1, 1, 1, 2]),
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0]),
    ]
    position = goal[np.array(tracks).transpose(0, 2, 1)]
    values = coordination.measure(
        Coordination(), batch_of(position, extra=3), rows_of([0, 0, 1, 1], [0, 1, 0, 1])
    ).values
    np.testing.assert_array_equal(values["goal"], [0, 1, 4, 4])
    np.testing.assert_array_equal(values["coordinated"], [1, 1, 0, 0])
    np.testing.assert_array_equal(values["agreement_time"], [3, 2, 5, 5])
    np.testing.assert_array_equal(values["first_mover"], [0, 1, 2, 3])
    np.testing.assert_array_equal(values["convention"], [1, 1, 4, 4])


def test_convention_is_the_commonest_goal_of_the_last_checkpoint():
    goal = np.array([0, 0, 0, 2, 2, 1, 3, 3, 4], np.int32)
    rows = rows_of([0] * 6 + [5] * 3, [0, 0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(coordination.conventions(goal, rows, 5), [2] * 6 + [3] * 3)


def test_goal_entropy_by_hand():
    goal = np.array([0, 0, 9, 1, 1, 1, 2, 1, 4, 4, 0, 0], np.int32) % 9  # the third belongs to an earlier checkpoint
    rows = rows_of([0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4], [1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    within, between = coordination.goal_entropy(goal, rows, 4)
    third = 1 / 3 * np.log(3) + 2 / 3 * np.log(3 / 2)
    np.testing.assert_allclose([within, between], [third / 5, np.log(2)], rtol=1e-6)


@pytest.mark.parametrize("kind", plane.ACTIONS)
def test_scripted_pair_walks_straight_to_a_goal(kind):
    domain = make("coordination", kind)
    episode = play(domain, lambda s, o, k: act_scripted(domain, s, o, k), jax.random.key(0))
    config = domain.config
    steps = np.ceil((config.distance + 2**0.5 * config.start - config.radius) / config.max_step)
    assert float(team_return(episode.rewards)) >= config.horizon - steps


@pytest.mark.parametrize(
    "make_config, word",
    [
        (lambda: HillClimbing(actions="jumps"), "jumps"),
        (lambda: HillClimbing(hills=[[0.0, 0.0]]), "hills"),
        (lambda: HillClimbing(hills=[[0.0, 2.0, 1.0]]), "hills"),
        (lambda: HillClimbing(width=0.0), "width"),
        (lambda: HillClimbing(horizon=1), "horizon"),
        (lambda: Coordination(actions="jumps"), "jumps"),
        (lambda: Coordination(goals=1), "goals"),
        (lambda: Coordination(max_step=-1.0), "max_step"),
        (lambda: Coordination(radius=0.6), "radius"),
    ],
)
def test_a_wrong_value_names_itself(make_config, word):
    with pytest.raises(InputError, match=word):
        make_config()
