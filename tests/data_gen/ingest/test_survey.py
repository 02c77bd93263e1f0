"""What is counted of a source is what was put into it."""

import json

import numpy as np
import pytest

from data_gen.ingest.copies import BEGINNING, SAME, Copy
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.words import summary_text
from data_gen.trajectory import ActionSpec, InputError
from tests.data_gen.ingest.memory import LAYOUT, Memory, outline, recording, windows


def dirty() -> list:
    """Five recordings, four groups: missing values, an agent who leaves, a gap in time, another rate, a label lost."""
    first = recording(0, frames=20, agents=2, group="left")
    first.features[3:6, 1] = np.nan
    first.present[15:, 0] = False
    second = recording(1, frames=24, agents=3, group="left", terminated=True, dropped=("r1: row 7 doubled",))
    second.position[:6, 2, 0, 0] = np.inf
    gap = recording(2, frames=16, time=np.r_[np.arange(8), np.arange(9, 17)] / 10)
    slow = recording(3, frames=12, time=np.arange(12) / 5)
    lost = recording(4, frames=10, labels={"style": np.int32(-1), "weight": np.array([1, np.nan, 7], np.float32)})
    lost.rewards[2:4] = 1
    return [first, second, gap, slow, lost]


@pytest.fixture
def found():
    return survey(Memory(dirty()), windows(8))


def test_counts_are_those_that_were_planted(found) -> None:
    assert found.names == ("r0", "r1", "r2", "r3", "r4") and found.groups == ("left", "g2", "g3", "g4")
    assert found.group_of.tolist() == [0, 0, 1, 2, 3] and found.lengths.tolist() == [20, 24, 16, 12, 10]
    assert found.agents.tolist() == [2, 3, 3, 3, 3] and found.n_agents == 3
    assert (found.least_at_once, found.most_at_once) == (1, 3)
    assert (found.terminated, found.rewarded, found.dropped) == (1, 6, (1, ("r1: row 7 doubled",)))
    assert found.columns.frames.tolist() == [82, 82, 62] and found.columns.there.tolist() == [77, 82, 62]
    assert found.columns.missing.tolist() == [[0, 0, 0], [0, 0, 3], [6, 0, 0]]
    assert found.classes["style"].tolist() == [2, 2, 1]
    assert found.values["weight"].missing.sum() == 1 and found.values["weight"].high[0] == 7
    np.testing.assert_allclose(found.rates, [10, 10, 10, 5, 10])
    assert found.irregular.count == 1 and found.irregular.first[0].startswith("r2 (r2.csv): 1 of 15 steps")
    assert found.copies == ()


def test_ranges_and_means_are_of_the_values_that_are_there(found) -> None:
    parts = [
        np.where(one.present[..., None], np.concatenate([one.position[:, :, 0], one.features], 2), np.nan)
        for one in dirty()
    ]
    for column in range(3):
        values = np.concatenate([part[..., column].ravel() for part in parts])
        values = values[np.isfinite(values)].astype(float)
        np.testing.assert_allclose(found.columns.low[column], values.min())
        np.testing.assert_allclose(found.columns.high[column], values.max())
        shown = summary_json(found, outline())["columns"][column]
        assert shown["mean"] == pytest.approx(values.mean(), rel=1e-5)


def test_the_treatments_episodes_are_counted(found) -> None:
    made = [windows(8)(one, 3)[0] for one in dirty()]
    assert found.treated.episodes.tolist() == [len(one) for one in made] == [3, 3, 2, 2, 2]
    assert found.treated.longest == 8 and found.treated.steps == 82
    assert found.treated.agent_steps == sum(one.mask.sum() for of in made for one in of)


def test_an_agent_alone_is_treated_as_one_of_a_team_that_is_not_known_yet() -> None:
    told = []

    def treat(one, n_agents):
        told.append(n_agents)
        return windows(8)(one, n_agents)

    found = survey(Memory([recording(k, agents=k) for k in (1, 2, 4)]), treat)
    assert told == [2, 2, 4] and found.n_agents == 4
    alone = survey(Memory([recording(1, agents=1)]), windows(8))
    assert alone.n_agents == 1 and alone.treated.agent_steps == 20


def test_the_summary_is_json_and_its_text_says_the_same(found) -> None:
    summary = json.loads(json.dumps(summary_json(found, outline()), allow_nan=False))
    heat = summary["columns"][2]
    assert (heat["name"], heat["unit"]) == ("heat", "K") and heat["missing"] == pytest.approx(3 / 221, rel=1e-5)
    assert heat["missing_by_slot"] == [0, pytest.approx(3 / 82, rel=1e-5), 0]
    assert summary["agents"]["recordings_by_number"] == {"2": 1, "3": 4}
    assert summary["agents"]["there_by_slot"] == [pytest.approx(77 / 82, rel=1e-5), 1, 1]
    assert summary["rate"]["stated"] == 10 and summary["rate"]["measured"] == {"least": 5, "median": 10, "most": 10}
    assert summary["treated"]["padded"] == pytest.approx(1 - 82 / (12 * 8), rel=1e-5)
    text = summary_text(summary)
    for said in (
        "5; 1 end because they terminated",
        "10 to 24 (median 16) a recording, 82 in all",
        "1 with 2, 4 with 3; 1 to 3 there at once",
        "10 a second stated, 5 to 10 (median 10) measured",
        "1 recording(s) with irregular time stamps; first: r2",
        "style (by recording): calm 2, wild 2; 1 not known",
        "1 time(s) by the reader; first: r1: row 7 doubled",
        "12 of up to 8 steps, 3 agents",
    ):
        assert said in text, said
    (line,) = [line for line in text.splitlines() if line.startswith("heat")]
    assert line.split()[1] == "K" and line.split()[5:] == ["1.4", "%", "0", "%", "3.7", "%", "0", "%"]
    assert max(map(len, text.splitlines())) < 160


def test_a_column_too_far_from_zero_for_single_precision_is_said(found) -> None:
    one = recording(0)
    one.features[..., 0] = 4_600_000 + one.features[..., 0]
    summary = summary_json(survey(Memory([one]), windows()), outline())
    assert {column["name"]: column["step"] for column in summary["columns"]}["heat"] == 0.5  # 2^22 < 4.6e6 < 2^23
    (said,) = [line for line in summary_text(summary).splitlines() if line.startswith("coarse")]
    assert "heat reaches 4,600,002, and is kept in steps of 0.5" in said
    assert "coarse" not in summary_text(summary_json(found, outline()))


def test_discrete_actions_are_counted_by_choice() -> None:
    layout = LAYOUT._replace(action=ActionSpec("discrete", 3), action_names=("stay", "go", "turn"))
    actions = np.array([[0, 1], [2, 2], [1, -1]] * 2, np.int32)
    one = recording(0, frames=6, agents=2, actions=actions)
    one.present[0] = False
    treat = lambda one, n_agents: ([], ())  # noqa: E731
    found = survey(Memory([one], layout), treat)
    shown = summary_json(found, outline())["actions"]
    assert shown["choices"] == {"stay": 1, "go": 3, "turn": 4} and shown["out_of_range"] == 2


def test_a_rate_that_is_not_stated_is_counted_in_frames() -> None:
    layout = LAYOUT._replace(rate=0.0)
    found = survey(Memory([recording(0, time=np.arange(20) * 2.0)], layout), windows())
    rate = summary_json(found, outline())["rate"]
    assert rate["stated"] is rate["measured"] is None and rate["frames_a_step"]["median"] == 2


def test_copies_are_found_whatever_they_are_called() -> None:
    one = recording(1, frames=40)
    turned = [2, 0, 1]
    same = one._replace(name="again", group="h", agents=("b", "c", "d"), time=one.time + 100)
    same = same._replace(**{k: getattr(one, k)[:, turned] for k in ("present", "position", "features", "actions")})
    cut = {k: getattr(one, k)[:25] for k in ("time", "present", "position", "features", "actions", "rewards")}
    short = one._replace(name="short", **cut)
    near = one._replace(name="near", position=one.position.copy())
    near.position[39, 2, 0, 1] += 1e-3
    reader = Memory([recording(0), short, one, recording(3), same, near])
    found = survey(reader, windows())
    assert found.copies == (Copy(1, 2, BEGINNING), Copy(4, 2, SAME))
    assert reader.passes == 2
    assert "short is the beginning of r1; again is the same as r1" in summary_text(summary_json(found, outline()))


def test_what_is_missing_compares_as_missing_and_absent_agents_do_not_count() -> None:
    one, other = recording(1, agents=2), recording(1, agents=3, name="other")
    for values in (one, other):
        values.features[4, 0] = np.nan
    two = {k: getattr(one, k) for k in ("position", "features", "actions", "rewards")}
    three = {k: np.concatenate([v, 5 + v[:, :1]], 1) for k, v in two.items()}
    present = np.concatenate([one.present, np.zeros((20, 1), bool)], 1)
    reader = Memory([one, other._replace(**three, present=present)])
    assert survey(reader, windows()).copies == (Copy(1, 0, SAME),)
    assert reader.passes == 1


def test_recordings_of_one_name_and_an_empty_source_are_refused() -> None:
    with pytest.raises(InputError, match="recording 'r1' is also in r1.csv"):
        survey(Memory([recording(1), recording(1)]), windows())
    with pytest.raises(InputError, match="there is no recording in it"):
        survey(Memory([]), windows())


def test_an_agent_without_a_role_is_refused() -> None:
    layout = LAYOUT._replace(agents=("a1", "a0"))
    found = survey(Memory([recording(1, agents=2)], layout), windows())
    assert found.n_agents == 2
    with pytest.raises(InputError, match="an agent 'a2', which is none of the roles a1, a0"):
        survey(Memory([recording(1, agents=3)], layout), windows())


def test_roles_have_their_own_places() -> None:
    layout = LAYOUT._replace(agents=("a1", "a0"))
    one = recording(1, agents=2)
    one.features[:5, 0] = np.nan
    assert survey(Memory([one], layout), windows()).columns.missing[:, 2].tolist() == [0, 5]


def test_the_digest_is_of_all_that_is_said() -> None:
    plain = survey(Memory([recording(0), recording(1)]), windows()).digest
    assert plain == survey(Memory([recording(0), recording(1)]), windows()).digest
    relabelled = recording(1, labels={"style": np.int32(0), "weight": np.arange(3, dtype=np.float32)})
    moved = recording(1)
    moved.position[0, 0, 0, 0] += 1e-3
    for other in (relabelled, moved, recording(1, group="g0"), recording(1, terminated=True)):
        assert survey(Memory([recording(0), other]), windows()).digest != plain
