"""Episodes under a given policy: the same episodes that recording plays, when the policy is the same."""

import json
from dataclasses import asdict
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data_gen.domains import DOMAIN_CONFIGS, DOMAIN_LABELS, DOMAINS, RUN_LABELS, coordination, name_of
from data_gen.domains.mujoco import EngineChoice, MuJoCo
from data_gen.keys import named_key
from data_gen.learners.body_learner import team_of
from data_gen.learners.ppo import PPO
from data_gen.learners.rollout import act_random, act_scripted, perform, play
from data_gen.learners.segments import actions_of
from data_gen.recording.body_world import RECORD, BodyWorld, episode_keys
from data_gen.recording.plane_world import PlaneWorld
from data_gen.recording.recording import json_value, label_episodes, label_rollouts, of_episodes
from data_gen.recording.worlds import world_of
from data_gen.trajectory import InputError, RowIndex
from tests.data_gen.bodies import SMALL, seed_keys

PLANE = PPO(updates=2, envs=8, hidden=8)
MEETING = DOMAINS["coordination"](coordination.Coordination())


def to_goal(obs: np.ndarray, t: int) -> np.ndarray:
    """The scripted team of coordination, from observations alone: both walk to goal 0."""
    offset = (coordination.goal_places(MEETING.config)[0] - obs[..., :2]) / MEETING.config.max_step
    after = offset[..., None, :] - np.array(coordination.plane.DIRECTIONS)
    return np.argmin((after**2).sum(-1), axis=-1).astype(np.int32)


@pytest.mark.parametrize("name", DOMAINS)
def test_a_given_policy_plays_what_the_domains_own_episodes_are(name: str) -> None:
    """The policy looks an episode's recorded actions up: any shift in time or start would part the two."""
    domain = DOMAINS[name](DOMAIN_CONFIGS[name]())
    keys = jax.random.split(jax.random.key(5), 4)
    want = jax.jit(jax.vmap(partial(play, domain, partial(act_random, domain))))(keys)
    seen = []

    def act(obs: np.ndarray, t: int) -> np.ndarray:
        seen.append(obs)
        return np.asarray(want.actions)[:, t]

    found = perform(domain, act, keys)
    for field, value in want._asdict().items():
        np.testing.assert_allclose(getattr(found, field), value, atol=1e-6, err_msg=field)
    np.testing.assert_array_equal(np.stack(seen, axis=1), found.obs)


def test_a_policy_of_observations_plays_what_the_one_of_states_plays() -> None:
    world, keys = PlaneWorld(MEETING, PLANE), jax.random.split(jax.random.key(2), 5)
    played = world.rollout(to_goal, keys)
    want = jax.jit(jax.vmap(partial(play, MEETING, partial(act_scripted, MEETING))))(keys)
    np.testing.assert_allclose(played.batch.obs, want.obs, atol=1e-6)
    np.testing.assert_allclose(played.rewards, want.rewards)
    labels = label_rollouts(world, played)
    assert (labels.values["goal"] == 0).all() and (played.failed == -1).all() and played.batch.mask.all()
    np.testing.assert_allclose(labels.values["team_return"], np.asarray(want.rewards).mean(2).sum(1))


def test_labels_of_the_training_run_are_left_out() -> None:
    world, keys = PlaneWorld(MEETING, PLANE), jax.random.split(jax.random.key(2), 5)
    played = world.rollout(to_goal, keys)
    rows = RowIndex(*(np.arange(5, dtype=np.int32) for _ in RowIndex._fields))
    recorded = label_episodes(world.describe(played, rows)[0], played.rewards, rows, 5)
    names = {spec.name for spec in of_episodes(recorded).specs}
    assert names == {"return_class", *DOMAIN_LABELS["coordination"]} - set(RUN_LABELS)
    assert "convention" in recorded.values and "convention" not in of_episodes(recorded).values
    assert {spec.name for spec in label_rollouts(world, played).specs} == names


CHEETAH = MuJoCo(scenario="HalfCheetah 2x3", horizon=60, recorded=12, engine=EngineChoice("native"))
BODY_PPO = type(SMALL)(**vars(SMALL) | {"updates": 2})


def test_a_body_under_its_own_policies_plays_what_was_recorded() -> None:
    world = BodyWorld(CHEETAH, BODY_PPO)
    state = world.start(seed_keys(0))
    seeds, checkpoint, key = jnp.zeros(1, jnp.int32), jnp.int32(0), named_key(0, "record")
    want = world.play(state, key, seeds, checkpoint, 3)
    keys = episode_keys(key, seeds, checkpoint, 3)
    team, scene = team_of(False, state)._replace(keys=keys), world.scene(RECORD, 3)
    found = world.rollout(lambda obs, t: actions_of(scene, team, obs, np.int32(t)), keys[0])
    for field in ("obs", "actions", "mask"):
        np.testing.assert_array_equal(getattr(found.batch, field), getattr(want.batch, field), err_msg=field)
    np.testing.assert_array_equal(found.rewards, want.rewards)
    for name, values in label_rollouts(world, found).values.items():
        np.testing.assert_array_equal(values, label_rollouts(world, want).values[name], err_msg=name)
    world.close()


def test_equal_keys_start_equal_episodes_whatever_acts() -> None:
    world, keys = BodyWorld(CHEETAH, BODY_PPO), jax.random.split(jax.random.key(1), 3)
    still, moving = (
        world.rollout(lambda obs, t, size=size: np.full((3, 2, 3), size, np.float32), keys).batch.obs
        for size in (0.0, 0.8)
    )
    np.testing.assert_array_equal(still[:, 0], moving[:, 0])
    assert np.abs(still[:, 1] - moving[:, 1]).max() > 0.01 and np.ptp(still[:, 0], axis=0).max() > 0.01
    world.close()


@pytest.mark.parametrize("config", [coordination.Coordination(actions="continuous", goals=3), CHEETAH])
def test_what_a_data_set_says_makes_its_world_again(config) -> None:
    ppo = PLANE if config is not CHEETAH else BODY_PPO
    own = {"name": name_of(config), **json_value(asdict(config))}
    meta = json.loads(json.dumps({"domain": own, "learner": asdict(ppo), "engine": {"name": "native"}}))
    again = world_of(meta, "data")
    assert again.config == config and again.ppo == ppo


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"domain": {"name": "fish"}}, "of domain 'fish', which no simulator here can play"),
        ({"domain": {}}, "of domain None"),
        ({"learner": {"speed": 3}}, "recorded with other settings than this version has"),
        ({"domain": {"name": "coordination", "colour": 3}}, "recorded with other settings"),
    ],
)
def test_data_that_no_simulator_made_are_refused(change: dict, said: str) -> None:
    meta = {"domain": {"name": "coordination"}, "learner": vars(PLANE)} | change
    with pytest.raises(InputError, match=said):
        world_of(meta, "data")
