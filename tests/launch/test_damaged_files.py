"""Over 200 damaged files, through the whole ingest: a store that says what was left out, or a message and no store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from data_gen.ingest.readers.calms21 import CalMS21
from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.idtracker import IdTracker
from data_gen.ingest.readers.mabe import MABe
from data_gen.ingest.readers.tracking import Scored
from data_gen.ingest.sources import Archive
from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import Dataset, InputError
from launch.ingest import main
from launch.schema.ingest import Ingest
from tests.data_gen.ingest import test_archive, test_table_dirt
from tests.data_gen.ingest.tracking_damage import DAMAGED, NAMES, keypoints, sequence, whole
from tests.data_gen.ingest.tracking_files import idtracker_text, planted, write_deeplabcut, write_sleap

Damage = Callable[[Path], Any]
COLUMNS = Columns(
    episode="game",
    time="frame",
    agent="who",
    position=["x", "y"],
    features=["speed"],
    actions=["move"],
    labels=["map"],
)


class Source(NamedTuple):
    """A format: its name, that of the file, its settings, and what writes a file without fault."""

    format: str
    file: str
    settings: Any
    write: Damage


def games() -> pd.DataFrame:
    """Two games of two players, four frames each."""
    game, frame, who = (part.reshape(-1) for part in np.mgrid[:2, :4, :2])
    head = {"game": [f"g{k}" for k in game], "frame": frame, "who": [f"p{k}" for k in who]}
    values = np.arange(len(game)) + 0.25
    moves = [("left", "right")[k % 2] for k in frame]
    return pd.DataFrame(
        {**head, "x": values, "y": 2 * values, "speed": values / 4, "move": moves, "map": [f"m{k}" for k in game]}
    )


def write_table(table: pd.DataFrame) -> Damage:
    def write(file: Path) -> None:
        if file.suffix == ".csv":
            table.to_csv(file, index=False)
        else:
            table.to_parquet(file, index=False)

    return write


def arrays(**changed: np.ndarray) -> dict[str, np.ndarray]:
    return test_archive.arrays(missing=0.0) | changed


def write_arrays(found: dict[str, np.ndarray]) -> Damage:
    return lambda file: test_archive.save(file.parent, **found)


SETTINGS = {
    "idtracker": IdTracker(),
    "calms21": CalMS21(allow_pickle=True),
    "deeplabcut": Scored(),
    "sleap": Scored(),
    "mabe": MABe(allow_pickle=True, missing="nan"),
}
SOURCES = {
    "csv": Source("table", "t.csv", COLUMNS, write_table(games())),
    "parquet": Source("table", "t.parquet", COLUMNS, write_table(games())),
    "archive": Source("archive", "a.npz", Archive(), write_arrays(arrays())),
    **{
        name: Source(name.split()[0], file, SETTINGS[name.split()[0]], lambda path, name=name: whole(name, path))
        for name, file in NAMES.items()
    },
}


def cut(share: float) -> Damage:
    """The file ends early; of a text in the middle of a line, since at its end nothing would show."""

    def damage(file: Path) -> None:
        content = file.read_bytes()
        end = int(share * len(content))
        if file.suffix in (".csv", ".txt"):
            line = content.rfind(b"\n", 0, end) + 1
            separator = b"," if file.suffix == ".csv" else b"\t"
            end = content.index(separator, line) + 1
        file.write_bytes(content[:end])

    return damage


def cells(**changed: Any) -> Damage:
    return write_table(games().assign(**changed))


def with_rows(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Damage:
    return write_table(change(games()))


def text_in(name: str) -> Damage:
    values = games()[name].astype(str)
    values[5] = "far"
    return cells(**{name: values})


def one_frame(source: str) -> Damage:
    place, sure = planted(1), np.full((1, 2, 3), 0.9)
    return {
        "idtracker": lambda file: file.write_text(idtracker_text(planted(1, 2, 1)[:, :, 0], np.ones((1, 2)))),
        "calms21": sequence(keypoints=planted(1, 2, 7).transpose(0, 1, 3, 2).tolist(), annotations=[0], scores=None),
        "deeplabcut": lambda file: write_deeplabcut(file, place, sure, individuals=("ann", "bob")),
        "deeplabcut h5": lambda file: write_deeplabcut(file, place, sure, individuals=("ann", "bob")),
        "sleap": lambda file: write_sleap(file, place, sure),
        "mabe": keypoints(place),
    }[source]


def nan_block(frame: pd.DataFrame) -> pd.DataFrame:
    frame.loc[4:9, ["x", "y"]] = np.nan
    return frame


TABLE = {
    "doubled rows": with_rows(lambda frame: pd.concat([frame, frame[3:9]])),
    "a row twice that differs": with_rows(lambda frame: pd.concat([frame, frame[3:4].assign(x=9.0)])),
    "shuffled columns": with_rows(lambda frame: frame[list(frame.columns[::-1])]),
    "shuffled rows": with_rows(lambda frame: frame.sample(frac=1, random_state=0).sort_values("game", kind="stable")),
    "NaN block": with_rows(nan_block),
    "NaN everywhere": cells(x=np.nan),
    "one frame": with_rows(lambda frame: frame[frame.frame == 0]),
    "no rows": with_rows(lambda frame: frame[:0]),
    "text in a place": text_in("x"),
    "text in the time": text_in("frame"),
    "infinite": cells(y=np.inf),
    "no place": with_rows(lambda frame: frame.drop(columns="y")),
    "an agent a row": cells(game="g", frame=range(16), who=range(16)),
}
ARCHIVE = {
    **{name: write_arrays(test_archive.wrong(name)[0]) for name in test_archive.wrong("no mask")[2]},
    "NaN block": write_arrays(arrays(obs=np.where(np.arange(4)[:, None, None, None] == 1, np.nan, arrays()["obs"]))),
    "NaN everywhere": write_arrays(arrays(obs=np.full_like(arrays()["obs"], np.nan))),
    "one frame": write_arrays({name: arrays()[name][:, :1] for name in ("obs", "actions", "mask")}),
}
CASES: dict[tuple[str, str], Damage] = {
    **{(source, f"cut at {share}"): cut(share) for source in SOURCES for share in (0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9)},
    **{(source, kind): damage for source in ("csv", "parquet") for kind, damage in TABLE.items()},
    **{
        ("csv", kind): lambda file, rows=rows: test_table_dirt.csv(file.parent, rows)
        for kind, (rows, _) in test_table_dirt.BAD.items()
    },
    **{("archive", kind): damage for kind, damage in ARCHIVE.items()},
    **{(source, kind): damage for source in DAMAGED for kind, (damage, _) in DAMAGED[source].items()},
    **{(source, "one frame"): one_frame(source) for source in DAMAGED},
}
# What is given in another order is the same data, and one row a player is few, not wrong.
HARMLESS = {(source, kind) for source in ("csv", "parquet") for kind in ("shuffled columns", "shuffled rows")}


def ingest(source: str, folder: Path) -> Dataset:
    """What the command does, without its command line."""
    how = SOURCES[source]
    settings = {"columns" if how.format == "table" else "reading": how.settings}
    main(Ingest(name="it", runs=str(folder / "runs"), source=how.format, path=str(folder / how.file), **settings))
    return read_dataset(folder / "runs" / "it" / "data")


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> dict[str, tuple[bytes, Dataset]]:
    """Each format's file without fault, and its store."""
    found = {}
    for source, how in SOURCES.items():
        folder = tmp_path_factory.mktemp("sound")
        how.write(folder / how.file)
        found[source] = ((folder / how.file).read_bytes(), ingest(source, folder))
    return found


def test_there_are_over_two_hundred() -> None:
    assert len(CASES) >= 200 and {source for source, _ in CASES} == set(SOURCES)


@pytest.mark.parametrize(("source", "kind"), CASES, ids=lambda part: part)
def test_a_damaged_file_is_a_store_that_says_so_or_a_message(sound, tmp_path: Path, source: str, kind: str) -> None:
    content, before = sound[source]
    file = tmp_path / SOURCES[source].file
    file.write_bytes(content)
    CASES[source, kind](file)
    try:
        found = ingest(source, tmp_path)
    except InputError as error:
        assert (source, kind) not in HARMLESS and file.name in str(error)
        assert not (tmp_path / "runs").exists()
        return
    assert not list((tmp_path / "runs").rglob("*.tmp")) and (tmp_path / "runs" / "it" / "data" / "README.md").exists()
    same = all(np.array_equal(one, other) for one, other in zip(found.batch, before.batch, strict=True))
    new = set(found.meta["discarded"]) - set(before.meta["discarded"])
    assert same if (source, kind) in HARMLESS else new, "what was left out is not said"
