"""What is written is what the source held: padded, in order, in the same bytes however often it was interrupted."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_gen.ingest.recording import Reader
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.write import Plan, Storing, plan, write
from data_gen.storage.dataset import present_shards, read_dataset
from data_gen.trajectory import FeatureMask, InputError, seen_rows
from tests.data_gen.ingest.memory import LAYOUT, Memory, outline, recording, windows
from tests.data_gen.test_hand import features_of


@pytest.fixture(autouse=True)
def small_shards(monkeypatch) -> None:
    """Shards may be smaller than their metadata, so that a few tiny recordings make several."""
    monkeypatch.setattr("data_gen.ingest.write.META_SHARE", 0)


def source(n: int = 7, **changed) -> Memory:
    """Recordings of 12, 13, … frames; two of one group; the second holds a window with nobody there."""
    made = [recording(k, frames=12 + k, agents=2 + k % 2, group=f"g{max(k, 1)}") for k in range(n)]
    made[1].present[8:] = False
    return Memory(made, **changed)


def planned(reader: Reader, how: Storing | None = None) -> Plan:
    found = survey(reader, windows(8))
    return plan(found, outline(), how or Storing(shard_bytes=3000), {"window": 8}, summary_json(found, outline()))


def stored(root: Path, reader: Reader, how: Storing | None = None) -> Plan:
    made = planned(reader, how)
    write(root, reader, windows(8), made, {"made": "here"})
    return made


def content(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_every_window_is_stored_with_its_recording_and_first_step(tmp_path: Path) -> None:
    made = stored(tmp_path, source())
    found = read_dataset(tmp_path)
    wanted = [
        (number, episode) for number, one in enumerate(source().recordings()) for episode in windows(8)(one, 3)[0]
    ]
    assert found.rows.episode.tolist() == [number for number, _ in wanted]
    assert found.rows.t0.tolist() == [episode.t0 for _, episode in wanted]
    assert found.rows.group.tolist() == [max(0, number - 1) for number, _ in wanted]
    assert set(found.rows.checkpoint.tolist()) == {0}
    for row, (_, episode) in enumerate(wanted):
        t = len(episode.mask)
        for name in ("obs", "actions", "mask"):
            whole = getattr(found.batch, name)[row]
            np.testing.assert_array_equal(whole[:t], getattr(episode, name))
            assert not whole[t:].any()
        np.testing.assert_array_equal(found.labels.values["weight"][row], episode.labels["weight"])
        assert found.labels.values["style"][row] == episode.labels["style"]
        np.testing.assert_array_equal(found.hand.values[row], features_of(episode))
    assert made.n_shards == 3 and len(present_shards(tmp_path)) == made.n_shards
    assert found.meta["discarded"] == ["r1: 1 window(s) with nobody"]
    meta = found.meta
    assert meta["recordings"] == [f"r{k}" for k in range(7)] and meta["groups"] == [f"g{k}" for k in range(1, 7)]
    assert meta["units"] == {"position": "m", "heat": "K"} and meta["obs_names"] == ["x", "y", "heat"]
    assert (meta["rate"], meta["frame"], meta["derived"], meta["position"]) == (10, "world", "given", [0, 1])
    assert meta["recording"] == {"split": [3, 1, 2], "seed": 0} and meta["treatment"] == {"window": 8}
    assert meta["found"]["recordings"]["count"] == 7 and meta["curves"].size == 0


def test_no_shard_is_larger_than_asked_and_all_but_the_last_are_full(tmp_path: Path, monkeypatch) -> None:
    made = stored(tmp_path, source(30), Storing(shard_bytes=10**6))
    row = 4 * made.steps * made.n_agents * (3 + 2 + 1)
    assert made.rows_per_shard == 10**6 // row and made.n_shards == 1
    monkeypatch.setattr("data_gen.ingest.write.META_SHARE", 16)  # the metadata that each repeats is the floor
    small = planned(source(30), Storing(shard_bytes=1))
    assert small.rows_per_shard == 16 * len(json.dumps(small.meta)) // row


def test_a_group_has_one_split_whatever_its_windows(tmp_path: Path) -> None:
    stored(tmp_path, source(12), Storing(split=[1, 1, 1], seed=3))
    found = read_dataset(tmp_path)
    assert [len(np.unique(found.rows.group[found.rows_of(name)])) for name in ("train", "validation", "test")] == [
        4,
        4,
        3,
    ]
    for group in np.unique(found.rows.group):
        assert len(np.unique(found.split[found.rows.group == group])) == 1


@pytest.mark.parametrize("fail_at", [0, 3, 6])
def test_an_interrupted_ingest_ends_in_the_same_bytes(fail_at: int, tmp_path: Path) -> None:
    made = stored(tmp_path / "whole", source())
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "cut", source(fail_at=fail_at), windows(8), made, {"made": "here"})
    kept = {name: (tmp_path / "cut" / name).stat().st_mtime_ns for name in content(tmp_path / "cut")}
    assert len(present_shards(tmp_path / "cut")) < made.n_shards
    assert bool(kept) == (fail_at > 0)
    treated = []

    def treat(one, n_agents):
        treated.append(one.name)
        return windows(8)(one, n_agents)

    write(tmp_path / "cut", source(), treat, made, {"made": "here"})
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert {name: (tmp_path / "cut" / name).stat().st_mtime_ns for name in kept} == kept
    assert ("r0" in treated) == (fail_at == 0)
    before = content(tmp_path / "cut")
    write(tmp_path / "cut", source(), windows(8), made, {"made": "there"})
    assert content(tmp_path / "cut") == before


def test_a_shard_that_went_missing_in_the_middle_is_written_again(tmp_path: Path) -> None:
    made = stored(tmp_path / "whole", source())
    shutil.copytree(tmp_path / "whole", tmp_path / "holed")
    shutil.rmtree(tmp_path / "holed" / "shard-00001")
    write(tmp_path / "holed", source(), windows(8), made, {"made": "here"})
    assert content(tmp_path / "holed") == content(tmp_path / "whole")


def test_shards_of_another_source_are_not_taken_over(tmp_path: Path) -> None:
    stored(tmp_path, source())
    other = source()
    next(other.recordings()).position[0, 0, 0, 0] += 1
    with pytest.raises(InputError, match="shard-00000 was recorded with other settings"):
        write(tmp_path, other, windows(8), planned(other), {"made": "here"})


def test_copies_are_refused_or_dropped_and_named(tmp_path: Path) -> None:
    own = [recording(k) for k in range(5)]
    reader = Memory([*own[:3], own[1]._replace(name="again", group="elsewhere"), *own[3:]])
    with pytest.raises(InputError, match="'again' is the same as 'r1' \\(groups elsewhere and g1\\).*duplicates=drop"):
        planned(reader)
    stored(tmp_path, reader, Storing(duplicates="drop"))
    found = read_dataset(tmp_path)
    assert set(found.rows.episode.tolist()) == {0, 1, 2, 4, 5} and "elsewhere" not in found.meta["groups"]
    assert found.meta["discarded"] == ["'again' is the same as 'r1' (groups elsewhere and g1); it was left out"]


def test_too_few_groups_and_no_episode_say_what_to_do() -> None:
    with pytest.raises(InputError, match=r"there are 2 group\(s\) \(g0, g1\).*name a finer group"):
        planned(Memory([recording(0), recording(1)]), Storing(split=[1, 1, 1]))
    gone = recording(0)
    gone.present[:] = False
    with pytest.raises(InputError, match=r"no episode is left of 1 recording\(s\).*nobody"):
        planned(Memory([gone]))


def test_two_groups_are_stored_to_be_embedded(tmp_path: Path) -> None:
    stored(tmp_path, Memory([recording(0), recording(1)]))
    found = read_dataset(tmp_path)
    assert found.split.tolist() == [2] * 6 and found.meta["recording"]["split"] == [0, 0, 2]
    with pytest.raises(InputError, match=r"has 2 group\(s\).*launch.embed"):
        seen_rows(found, [])


def test_a_source_that_changes_under_the_hand_is_noticed(tmp_path: Path) -> None:
    made = planned(source())
    with pytest.raises(InputError, match="'r9' was not in this place"):
        write(tmp_path, Memory([recording(9)]), windows(8), made, {})
    grown = source()
    longer = Memory([recording(0, frames=33, agents=2, group="g1"), *list(grown.recordings())[1:]])
    with pytest.raises(InputError, match="'r0' gives 5 episode"):
        write(tmp_path, longer, windows(8), made, {})
    short = Memory(list(source().recordings())[:4])
    with pytest.raises(InputError, match="4 recording.* instead of 7"):
        write(tmp_path, short, windows(8), made, {})


def test_agents_that_lack_a_feature_lack_it_in_the_store(tmp_path: Path) -> None:
    mask = FeatureMask(obs=np.array([[True], [False]]), actions=np.array([[True, False], [True, True]]))
    layout = LAYOUT._replace(agents=("a0", "a1"), feature_mask=mask)
    made = [recording(k, agents=2) for k in range(4)]
    for one in made:
        one.features[:, 1] = one.actions[:, 0, 1] = 0
    reader = Memory(made, layout)
    stored(tmp_path, reader)
    real = read_dataset(tmp_path).features
    assert real.obs.tolist() == [[True, True, True], [True, True, False]]
    assert real.actions.tolist() == [[True, False], [True, True]]
    found, derived = survey(reader, windows(8)), outline()._replace(derived="velocity")
    assert plan(found, derived, Storing(), {}, {}).meta["feature_mask"]["actions"] == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    "wrong", [{"duplicates": "keep"}, {"split": [1, 2]}, {"split": [0, 1, 1]}, {"seed": -1}, {"shard_bytes": 0}]
)
def test_wrong_settings_are_refused(wrong: dict) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Storing(**wrong)


STREAM = """
import resource, sys
from pathlib import Path
import numpy as np
from tests.data_gen.ingest.memory import LAYOUT, outline, recording, windows
from data_gen.ingest.summary import summary_json
from data_gen.ingest.survey import survey
from data_gen.ingest.write import Storing, plan, write

class Stream:
    layout = LAYOUT
    def __init__(self, n): self.n = n
    def recordings(self):
        for k in range(self.n):
            yield recording(k, frames=1000, agents=8)

def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def ingest(n, root):
    reader = Stream(n)
    found = survey(reader, windows(100))
    made = plan(found, outline(), Storing(shard_bytes=2**20), {}, summary_json(found, outline()))
    write(Path(root), reader, windows(100), made, {})
    return made.n_shards
ingest(6, sys.argv[1] + "/small")
before = peak()
print(ingest(int(sys.argv[2]), sys.argv[1] + "/large"), peak() - before)
"""


def test_memory_does_not_grow_with_the_source(tmp_path: Path) -> None:
    """60 recordings of .3 MB are 20 MB of arrays; a peak that holds them all would be seen."""
    told = subprocess.run(
        [sys.executable, "-c", STREAM, str(tmp_path), "60"], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    shards, grown = told.stdout.split()
    assert int(shards) > 8 and float(grown) < 8
