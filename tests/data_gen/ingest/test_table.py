"""A table that was written by pandas comes back as the arrays that it was made from."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers import buckets, chunks
from data_gen.ingest.readers.columns import Columns
from data_gen.ingest.readers.table import TableReader
from data_gen.ingest.recording import LabelColumn, Recording

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "overcooked_humans.parquet"
COLORS, MOVES = ("blue", "green", "red"), ("left", "right")
COLUMNS = dict(
    episode="game",
    time="frame",
    agent="who",
    group="club",
    position=["x", "y"],
    features=["speed", "color"],
    reward="gain",
    labels=["map", "role", "phase", "busy", "wind"],
)


def columns(**changes) -> Columns:
    return Columns(**{**COLUMNS, "actions": ["move"], **changes})


class Truth:
    """Arrays of some games, and the table that says the same; agents that are missing have no row."""

    def __init__(self, lengths: list[int], n_agents: int, missing: float, seed: int):
        rng = np.random.default_rng(seed)
        self.games = [self._game(rng, number, size, n_agents, missing) for number, size in enumerate(lengths)]
        self.table = pd.concat([self._rows(number, game) for number, game in enumerate(self.games)], ignore_index=True)

    def _game(self, rng, number: int, size: int, n_agents: int, missing: float) -> dict[str, np.ndarray]:
        shape = (size, n_agents)
        present = rng.random(shape) >= missing
        present[:, 0] = True  # so that every frame has a row, and every game one
        floats = rng.normal(size=(5, *shape)).astype(np.float32)
        floats[2][rng.random(shape) < missing] = np.nan
        color = rng.integers(-1, 3, shape).astype(np.int32)  # -1: not said
        choice, busy = (rng.integers(0, 2, shape).astype(np.int32) for _ in range(2))
        if not number:  # every class is in the table, whatever is missing
            color[:4, 0], choice[:4, 0], busy[:4, 0] = [0, 1, 2, -1], [0, 1, 0, 1], [0, 1, 1, 0]
        return dict(
            present=present,
            x=floats[0],
            y=floats[1],
            speed=floats[2],
            gain=floats[3],
            color=color,
            move=choice,
            map=np.full(shape, number % 2, np.int32),
            role=np.tile(np.arange(n_agents, dtype=np.int32) % 2, (size, 1)),
            phase=np.tile(np.arange(size, dtype=np.int32)[:, None] % 3, (1, n_agents)),
            busy=busy,
            wind=np.full(shape, number / 3, np.float32),
        )

    def _rows(self, number: int, game: dict[str, np.ndarray]) -> pd.DataFrame:
        frame, who = np.nonzero(game["present"])
        cells = {name: values[frame, who] for name, values in game.items() if name != "present"}
        cells["color"] = np.array([*COLORS, None], object)[cells["color"]]
        cells["move"] = np.array(MOVES)[cells["move"]]
        cells["map"] = np.array(["city", "wood"])[cells["map"]]
        cells["busy"] = cells["busy"].astype(bool)
        names = np.array([f"p{n}" for n in range(game["present"].shape[1])])
        head = dict(game=f"g{number}", frame=3 + frame, who=names[who], club=f"c{number // 2}")
        return pd.DataFrame({**head, **cells})


def write(table: pd.DataFrame, folder: Path, suffix: str) -> Path:
    path = folder / f"table.{suffix}"
    if suffix == "parquet":
        table.to_parquet(path, index=False, row_group_size=7)
    else:
        table.to_csv(path, index=False, sep={"tsv": "\t"}.get(suffix, ","))
    return path


def read(path: Path, **changes) -> dict[str, Recording]:
    return {found.name: found for found in TableReader(path, columns(**changes)).recordings()}


def scope_of(table: pd.DataFrame, name: str) -> str:
    """The widest thing that a label is one value of, by pandas."""
    for scope, keys in (("recording", ["game"]), ("agent", ["game", "who"]), ("frame", ["game", "frame"])):
        if (table.groupby(keys)[name].nunique(dropna=False) == 1).all():
            return scope
    return "frame and agent"


def check_labels(game: dict[str, np.ndarray], found: Recording, labels: tuple[LabelColumn, ...]) -> None:
    who, names = np.flatnonzero(game["present"].any(0)), {"map": ["city", "wood"], "busy": ["false", "true"]}
    for label in labels:
        value, want = found.labels[label.name], game[label.name][:, who]
        axes = {"recording": (0, 1), "agent": (0,), "frame": (1,), "frame and agent": ()}[label.scope]
        assert value.shape == tuple(size for axis, size in enumerate(want.shape) if axis not in axes)
        cells = np.broadcast_to(np.expand_dims(value, axes), want.shape)
        here = found.present
        if label.kind == "class":
            known = names.get(label.name, [str(k) for k in range(3)])
            assert [label.classes[k] for k in cells[here]] == [known[k] for k in want[here]]
        else:
            np.testing.assert_array_equal(cells[here], want[here])
        if label.scope == "frame and agent":
            assert (cells[~here] == -1).all()


def check_equal(game: dict[str, np.ndarray], found: Recording) -> None:
    """Compare with the arrays cell by cell; agents that never came are not in the recording."""
    who = np.flatnonzero(game["present"].any(0))
    present = game["present"][:, who]
    here = {name: values[:, who] for name, values in game.items()}
    assert found.agents == tuple(f"p{n}" for n in who)
    np.testing.assert_array_equal(found.time, 3 + np.arange(len(present)))
    np.testing.assert_array_equal(found.present, present)
    for axis, name in enumerate("xy"):
        np.testing.assert_array_equal(found.position[:, :, 0, axis], np.where(present, here[name], np.nan))
    np.testing.assert_array_equal(found.features[..., 0], np.where(present, here["speed"], np.nan))
    known = present & (here["color"] >= 0)
    for number in range(3):
        want = np.where(known, here["color"] == number, np.nan)
        np.testing.assert_array_equal(found.features[..., 1 + number], want)
    np.testing.assert_array_equal(found.actions, np.where(present, here["move"], -1))
    np.testing.assert_array_equal(found.rewards, np.where(present, here["gain"], 0))
    assert found.dropped == ()


@settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=3, max_size=5),
    n_agents=st.integers(2, 4),
    missing=st.sampled_from([0.0, 0.2, 0.7]),
    order=st.sampled_from(["written", "by agent", "by time", "shuffled"]),
    suffix=st.sampled_from(["csv", "parquet", "tsv", "csv.gz"]),
    seed=st.integers(0, 10**6),
)
def test_round_trip(tmp_path, monkeypatch, lengths, n_agents, missing, order, suffix, seed):
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 5)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 700)
    truth = Truth([4, *lengths], n_agents, missing, seed)
    table = truth.table.sample(frac=1, random_state=seed) if order == "shuffled" else truth.table
    keys = {"by agent": ["game", "who", "frame"], "by time": ["frame", "who", "game"]}.get(order)
    table = table.sort_values(keys) if keys else table
    path = write(table, tmp_path, suffix)
    reader = TableReader(path, columns(), tmp_path)
    found = list(reader.recordings())
    assert [one.name for one in found] == list(dict.fromkeys(table.game))
    for one in found:
        number = int(one.name[1:])
        check_equal(truth.games[number], one)
        check_labels(truth.games[number], one, reader.layout.labels)
        assert one.group == f"c{number // 2}" and one.file == str(path) and not one.terminated
    assert [label.scope for label in reader.layout.labels] == [scope_of(table, name) for name in COLUMNS["labels"]]
    assert reader.layout.features == ("speed", *(f"color={name}" for name in COLORS))
    assert [one.name for one in reader.recordings()] == [one.name for one in found]
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name.startswith("rows-")) == []


@pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not here")
def test_people_who_cook():
    asked = dict(episode="episode", time="time", agent="agent", group="pair", position=["x", "y"], reward="team_reward")
    seen = ["facing_x", "facing_y", "holding"]
    reader = TableReader(REAL, Columns(**asked, features=seen, actions=["action"], labels=["layout"], rate=6.67))
    found, table = list(reader.recordings()), pd.read_parquet(REAL)
    assert reader.layout.labels[0][1:3] == ("recording", "class") and reader.layout.action == ("discrete", 6)
    assert len(found) == 76 and {len(one.time) for one in found} == set(table.groupby("episode").time.nunique())
    assert {one.group for one in found} == set(table.pair.astype(str))
    for one in found[::25]:
        rows = table[table.episode == int(one.name)].set_index(["time", "agent"])
        assert one.group == str(rows.pair.iloc[0]) and one.present.all() and one.dropped == ()
        assert reader.layout.labels[0].classes[one.labels["layout"]] == rows.layout.iloc[0]
        for n, agent in enumerate(one.agents):
            own = rows.xs(int(agent), level="agent").sort_index()
            np.testing.assert_allclose(one.time, own.index / 6.67, atol=1e-12)
            np.testing.assert_array_equal(one.position[:, n, 0], own[["x", "y"]])
            np.testing.assert_array_equal(one.rewards[:, n], own.team_reward)
            held = np.array([name.removeprefix("holding=") for name in reader.layout.features[2:]])
            np.testing.assert_array_equal(held[one.features[:, n, 2:].argmax(1)], own.holding.astype(str))
            np.testing.assert_array_equal(np.array(reader.layout.action_names)[one.actions[:, n]], own.action)
