"""The line of facts at the head of the report says what the data set is, and nothing that it is not."""

import numpy as np

from probes.report.report import facts_of
from tests.builders import DO, UNEVEN, N, T, uneven_batch
from tests.probes.test_report import EPISODES, dataset


def test_facts_count_groups_and_episodes():
    facts = dict(
        facts_of(
            dataset(
                domain={"name": "tiny"},
                learner={"updates": 9},
                provenance=[{"revision": "abc", "versions": {"jax": "0", "zarr": "3"}}, {}],
            )
        )
    )
    assert facts["Episodes"] == f"24, up to {T} steps, 2 checkpoint(s)"
    assert facts["Agents"] == f"{N}; {DO} observations and 5 discrete actions each"
    assert facts["Groups (training seeds)"] == "3 train (12 episodes), 1 validation (4 episodes), 2 test (8 episodes)"
    assert facts["Recorded with"] == "revision abc; versions: jax 0, zarr 3" and facts["Domain"] == "tiny"
    assert "Recorded with" not in dict(facts_of(dataset()))


def test_data_of_elsewhere_are_not_said_to_be_learned_or_of_failed_physics():
    brought = dict(facts_of(dataset(groups=["a", "b"], discarded=["r4: doubled"], domain={"name": "table"})))
    assert brought["Left out"] == "1 time(s), first: r4: doubled" and "Groups (training seeds)" not in brought
    assert brought["Groups"] == "3 train (12 episodes), 1 validation (4 episodes), 2 test (8 episodes)"


def test_facts_name_the_physics_and_what_it_lacks():
    meta = {
        "domain": {"name": "mujoco", "scenario": "Ant 4x2", "obsk": None, "engine": {"name": "auto"}, "hills": [1]},
        "engine": {"name": "brax", "missing": ["cfrc_ext"], "accuracy": "approximate"},
        "discarded": ["training seed 3: failed", "training seed 4: failed"],
    }
    facts = facts_of(dataset(**meta))
    assert facts[:3] == [
        ("Domain", "mujoco: scenario Ant 4x2"),
        ("Physics", "brax; fields it cannot give: cfrc_ext; accuracy: approximate"),
        ("Physics failed", "2 time(s), first: training seed 3: failed"),
    ]
    assert [name for name, _ in facts_of(dataset(engine={"name": "native", "missing": []}))][:3] == [
        *("Domain", "Physics", "Episodes")
    ]


def test_facts_give_the_widths_of_agents_that_are_not_alike():
    batch, features = uneven_batch(n_episodes=EPISODES)
    data = dataset()._replace(batch=batch, features=features, action=UNEVEN)
    said = "3; 3–5 (padded to 5) observations and 1–3 (padded to 3) continuous actions each"
    assert dict(facts_of(data))["Agents"] == said
    features.obs[:] = np.arange(5) < 4
    assert dict(facts_of(data))["Agents"].startswith("3; 4 (padded to 5) observations and 1–3 (padded to 3)")
