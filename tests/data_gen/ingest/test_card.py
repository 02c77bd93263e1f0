"""A card says what its data set holds, counted again here from the data set itself."""

from pathlib import Path

import numpy as np
import pytest

from data_gen.ingest.card import card
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.write import Storing, plan, write
from data_gen.storage.dataset import digest, read_dataset, write_shard
from data_gen.trajectory import SPLITS, InputError
from tests.data_gen.ingest.memory import Memory, outline, recording, windows
from tests.data_gen.test_dataset import tiny_shard


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("mine") / "data"
    made = [recording(k, frames=20, group=f"pair{k // 2}") for k in range(12)]
    made[3] = made[3]._replace(labels={**made[3].labels, "style": np.int32(-1)})
    made[4] = made[4]._replace(dropped=("r4: row 3 is doubled",))
    reader = Memory([*made, made[0]._replace(name="again")])
    found = survey(reader, windows(8))
    how = Storing(duplicates="drop")
    planned = plan(found, outline(), how, {"window": 8, "frame": "world"}, summary_json(found, outline()))
    planned = planned._replace(rows_per_shard=13, n_shards=3)
    write(root, reader, windows(8), planned, {"revision": "abc", "command": "python -m launch.ingest"})
    return root


def cells(text: str, first: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_counts_are_those_of_the_data_set(root: Path) -> None:
    text, found = card(root), read_dataset(root)
    for name in SPLITS:
        rows = found.rows_of(name)
        steps = int(found.batch.mask[rows].sum())
        assert cells(text, name) == [name, str(len(np.unique(found.rows.group[rows]))), str(len(rows)), str(steps)]
        groups = ", ".join(f"pair{group}" for group in np.unique(found.rows.group[rows]))
        assert f"- {name}: {groups}\n" in text
    style, split = found.labels.values["style"], found.split
    shown = cells(text, "style")
    assert shown[1:4] == ["class", "episode", "calm 18, wild 15, not known 3"]
    for number in range(3):
        here = style[split == number]
        assert shown[4 + number] == " / ".join(str((here == code).sum()) for code in (0, 1, -1))
    assert cells(text, "weight")[3] == "0 to 2, 108 known"


def test_where_it_is_from_and_what_is_missing_is_said(root: Path) -> None:
    text = card(root)
    for said in (
        "# Data set mine0",
        "36 episodes of up to 8 steps and 3 agents",
        "- 3 observations: x, y, heat",
        "- continuous actions of size 2: ax, ay",
        "- rate: 10 steps a second",
        "- units: position in m, heat in K",
        "- r4: row 3 is doubled",
        "- 'again' is the same as 'r0'; it was left out",
        '- made: "by a test"',
        f"- digest of this data set: `{digest(root)}`",
        "- revision: `abc`",
        "- window: 8",
        "python -m launch.train name=mine0",
    ):
        assert said in text, said


def test_readers_do_not_look_at_it(root: Path) -> None:
    before = digest(root)
    (root / "README.md").write_text(card(root))
    assert digest(root) == before and len(read_dataset(root).split) == 36


def test_a_set_that_is_not_whole_has_no_card(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no data set"):
        card(tmp_path)


def test_columns_that_agents_have_of_their_own_are_named_by_agent(tmp_path: Path) -> None:
    for index in range(3):
        write_shard(tmp_path, index, 3, tiny_shard(index, obs_names=[["knee", "hip"], ["foot"]]), {})
    assert "observations: agent 0: knee, hip; agent 1: foot\n" in card(tmp_path)
