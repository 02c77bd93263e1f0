"""What the first pass made is stored as a second pass would store it, and is not kept where it is large."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data_gen.ingest.kept import Kept
from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.treatment import Treatment, episodes_of
from data_gen.ingest.write import Storing, plan, write
from tests.data_gen.ingest.memory import Memory, outline, recording, windows


def source(**changed) -> Memory:
    """Recordings of three agents, one of which says that a row of it was left out."""
    made = [recording(k, frames=12 + k) for k in range(7)]
    return Memory([*made[:3], made[3]._replace(dropped=("a row",)), *made[4:]], **changed)


def ingest(root: Path, reader: Memory) -> dict[str, bytes]:
    """The files of a data set that is made as launch.ingest makes it."""
    kept = Kept(reader, windows(8))
    found = survey(reader, kept.treat)
    made = plan(found, outline(), Storing(shard_bytes=3000), {}, summary_json(found, outline()))
    write(root, *kept.again(found.n_agents), made, {})
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_the_source_is_read_once_and_stored_as_if_it_were_read_twice(tmp_path: Path, monkeypatch) -> None:
    once, twice = source(), source()
    found = ingest(tmp_path / "once", once)
    monkeypatch.setattr("data_gen.ingest.kept.KEPT_BYTES", 1000)
    assert found == ingest(tmp_path / "twice", twice) and len(found) > 10
    assert (once.passes, twice.passes) == (1, 2)


def test_bytes_are_counted_with_labels_and_kept_up_to_the_limit(monkeypatch) -> None:
    episodes, _ = windows(8)(recording(0), 3)
    steps = sum(len(one.mask) for one in episodes)
    # By step: three agents with three observations, two actions and a reward of 4 bytes and a mask, and both endings.
    size = steps * (3 * (4 * 6 + 1) + 2) + len(episodes) * sum(one.nbytes for one in episodes[0].labels.values())
    for limit, whole in ((size, True), (size - 1, False)):
        monkeypatch.setattr("data_gen.ingest.kept.KEPT_BYTES", limit)
        reader = Memory([recording(0)])
        kept = Kept(reader, windows(8))
        survey(reader, kept.treat)
        assert (kept.again(3)[0] is not reader) == whole


def test_no_more_is_in_memory_than_is_counted(tmp_path: Path) -> None:
    game, frame, who = (axis.ravel() for axis in np.meshgrid(range(3), range(20), range(2), indexing="ij"))
    table = pd.DataFrame({"game": game, "frame": frame, "who": who, "x": frame * 1.0, "map": game % 2, "role": who})
    table.assign(phase=frame // 10).to_csv(tmp_path / "games.csv", index=False)
    labels = ["map", "role", "phase"]  # of a recording, an agent, a frame
    asked = Columns(time="frame", episode="game", agent="who", position=["x"], labels=labels, rate=10.0)
    reader = TableReader(tmp_path / "games.csv", asked)
    kept = Kept(reader, lambda one, n_agents: episodes_of(one, reader.layout, Treatment(window=8), n_agents))
    survey(reader, kept.treat)
    again, treat = kept.again(2)
    recordings = list(again.recordings())
    episodes = [episode for one in recordings for episode in treat(one, 2)[0]]
    arrays = [values for one in episodes for values in (*one[:6], *one.labels.values())]
    frames = [values for one in recordings for values in one if isinstance(values, np.ndarray)]
    assert len(episodes) == 9 and sum(owner(values).nbytes for values in frames) == 0
    assert all(owner(values).nbytes == values.nbytes for values in arrays)


def owner(values: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    while isinstance(values.base, np.ndarray):
        values = values.base
    return values


@pytest.mark.parametrize(("agents", "passes"), [((3, 3), 1), ((3, 2), 2), ((1, 1), 2)])
def test_what_was_made_for_another_number_of_agents_is_made_again(agents, passes: int, tmp_path: Path) -> None:
    reader = Memory([recording(k, agents=n) for k, n in enumerate((*agents, agents[0]))])
    assert ingest(tmp_path, reader)
    assert reader.passes == passes
