"""What all episodes have in common, and what cannot be made of a source."""

import pytest

from data_gen.ingest.recording import LabelColumn, Layout
from data_gen.ingest.treatment import Treatment, episodes_of, outline
from data_gen.trajectory import ActionSpec, InputError, LabelSpec
from tests.data_gen.ingest.recordings import layout_of, walk
from tests.data_gen.ingest.treated import TWO


def test_the_outline():
    found = outline(TWO, Treatment(), 4, True)
    assert found.obs_names == ("tail x", "tail y", "nose x", "nose y", "pulse") and found.position == (0, 1)
    assert (found.derived, found.action, found.rate) == ("velocity", ActionSpec("continuous", 4), 10.0)
    assert found.action_names == ("tail x", "tail y", "nose x", "nose y")
    assert found.units == {"position": "m", "time": "s", "action": "m/s"}
    assert found.agents == ("agent 0", "agent 1", "agent 2", "agent 3")
    assert found.labels[:3] == (
        LabelSpec("return_class", "team_return", "quantile", bins=3),
        LabelSpec("site", "site", "class", classes=("barn", "field")),
        LabelSpec("weight", "weight", "real"),
    )
    roles = TWO._replace(agents=("cat", "dog"), rate=0.0, action=ActionSpec("discrete", 5))
    found = outline(roles, Treatment(frame="teammates", rate=0.5, return_within="site"), 3, True)
    assert found.agents == ("cat", "dog", "agent 2") and found.position == ()
    assert (found.derived, found.action, found.rate) == ("given", ActionSpec("discrete", 5), 0.0)
    assert found.labels[0].within == "site" and "action" not in found.units
    assert outline(roles, Treatment(action="displacement"), 3, False).units["action"] == "m/step"
    assert outline(TWO._replace(rate=0.0), Treatment(), 3, False).derived == "displacement"
    assert outline(TWO, Treatment(rate=5.0), 3, False).rate == 5.0
    assert "return_class" not in [spec.name for spec in outline(TWO, Treatment(), 3, False).labels]


NO_PLACE = layout_of(parts=(), axes=(), features=("a",))


@pytest.mark.parametrize(
    ("layout", "how", "n_agents", "words"),
    [
        (TWO, {"heading": ["tail", "nos"]}, 3, "heading names 'nos'.*its parts are tail, nose"),
        (TWO, {"action": "given"}, 3, "action=given, but made up has no actions"),
        (TWO._replace(rate=0.0), {"action": "velocity"}, 3, "needs a rate"),
        (NO_PLACE, {}, 3, "has no places whose change could be an action"),
        (NO_PLACE, {"frame": "teammates"}, 3, "frame=teammates needs places"),
        (layout_of(axes=("x",)), {"frame": "egocentric"}, 3, "needs two axes; made up has 1"),
        (TWO._replace(agents=("cat", "dog", "pig", "cow")), {}, 3, r"room for 3 agent\(s\), but need 4"),
        (TWO, {"return_within": "near"}, 3, r"return_within is 'near'.*those are \['site', 'phase'\]"),
        (layout_of(labels=(LabelColumn("team_return", "recording", "real"),)), {}, 3, "a label is named 'team_return'"),
    ],
)
def test_what_the_source_does_not_have_is_refused(layout: Layout, how: dict, n_agents: int, words: str):
    for call in (
        lambda: outline(layout, Treatment(**how), n_agents, True),
        lambda: episodes_of(walk(layout), layout, Treatment(**how), n_agents),
    ):
        with pytest.raises(InputError, match=words):
            call()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"frame": "alien"}, "frame is 'alien'; choose one of world, egocentric, teammates"),
        ({"action": "given "}, "action is 'given '"),
        ({"gap": -1.0}, "gap is -1.0; it must be 0 or more"),
        ({"rate": float("nan")}, "rate is nan"),
        ({"speed": float("inf")}, "speed is inf"),
        ({"least": 0}, "least is 0"),
        ({"window": 3, "least": 4}, "window is 3, but episodes have at least 4"),
        ({"heading": ["nose"]}, "heading is"),
        ({"heading": ["nose", "nose"]}, "heading is"),
    ],
)
def test_a_wrong_treatment_is_refused(how: dict, words: str):
    with pytest.raises(InputError, match=words):
        Treatment(**how)
