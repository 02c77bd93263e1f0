"""The page holds what it was given, opens without a network, and says what is absent."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from data_gen.trajectory import ActionSpec, Dataset, Features, Labels, LabelSpec, Outcomes, RowIndex, all_real
from probes.report import report as report_module
from probes.report.episodes import episode_returns
from probes.report.films import Films, no_films
from probes.report.report import Report, pick_tracks, write_report
from tests.builders import DO, N, T, tiny_batch
from tests.probes.test_figures import metrics, table

EPISODES = 24
NAMES = ["learning", "training", "probes", "latents", "trajectories"]


def dataset(**meta: object) -> Dataset:
    rng = np.random.default_rng(0)
    action = ActionSpec("discrete", 5)
    numbers = np.arange(EPISODES, dtype=np.int32)
    goal = rng.integers(0, 3, EPISODES).astype(np.int32)
    return Dataset(
        batch=tiny_batch(action, n_episodes=EPISODES),
        features=all_real(N, DO, action),
        rows=RowIndex(numbers, numbers // 4, numbers % 2 * 3, np.zeros(EPISODES, np.int32)),
        outcomes=Outcomes(
            rewards=rng.normal(size=(EPISODES, T, N)).astype(np.float32),
            terminated=np.zeros((EPISODES, T), bool),
            truncated=np.zeros((EPISODES, T), bool),
        ),
        labels=Labels({"goal": goal}, (LabelSpec("goal", "goal", "class", classes=("a", "b", "none")),)),
        hand=Features(np.zeros((EPISODES, 2), np.float32), ("u", "v")),
        split=np.repeat([0, 1, 2], [12, 4, 8]).astype(np.int32),
        action=action,
        meta=meta,
    )


def full() -> Report:
    rng = np.random.default_rng(1)
    return Report(
        name="a <run> & more",
        dataset=dataset(
            domain={"name": "tiny"},
            curves=rng.normal(size=(6, 9)).astype(np.float32),
            baselines={"random": 0.0, "scripted": 1.0},
            updates=[0, 9],
            position=[0, 1],
            landmarks=[{"name": "A", "x": 0.0, "y": 0.0, "radius": 1.0, "height": 1.0}],
            provenance=[{"revision": "abc"}],
        ),
        key_figures=[("bound", "−3.2 nats", "at β = 1, <validation>")],
        metrics=metrics(),
        table=table(),
        sentences=["goal: z_omega beats <b>majority</b> & more"],
        z_omega=rng.normal(size=(EPISODES, 4)).astype(np.float32),
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of `full`, written once for the tests that only read it."""
    path = tmp_path_factory.mktemp("run") / "report.html"
    assert write_report(path, full()) == [path.parent / "figures" / f"{name}.png" for name in NAMES]
    return path


class Page(HTMLParser):
    """Checks that tags close in order, and collects text, tables, images and addresses."""

    VOID = ("meta", "img")

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.images: list[bytes] = []
        self.addresses: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.tags.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.addresses += [given[name] for name in ("href", "src") if name in given]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "img":
            self.images.append(base64.b64decode(given["src"].removeprefix("data:image/png;base64,"), validate=True))
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag: str):
        assert self.open.pop() == tag

    def handle_data(self, data: str):
        if "style" not in self.open:
            self.text += data
        if self.open[-1:] == ["td"]:
            self.rows[-1][-1] += data


def test_the_page_holds_the_figures_that_lie_beside_it(written: Path):
    page = Page(written.read_text())
    assert page.images == [(written.parent / "figures" / f"{name}.png").read_bytes() for name in NAMES]
    assert all(image.startswith(b"\x89PNG\r\n\x1a\n") for image in page.images)
    assert sorted(p.name for p in written.parent.iterdir()) == ["figures", "report.html"]
    assert len(list((written.parent / "figures").iterdir())) == len(NAMES)


def test_the_page_needs_nothing_from_outside(written: Path):
    text = written.read_text()
    page = Page(text)
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert not re.search(r"https?:|@import|url\(", re.sub(r"base64,[^\"]*", "", text))


def test_the_page_says_what_it_was_given(written: Path):
    page = Page(written.read_text())
    for words in ("a <run> & more", "goal: z_omega beats <b>majority</b> & more", "rare: not evaluated: <3"):
        assert words in page.text
    assert ["bound", "−3.2 nats", "at β = 1, <validation>"] in page.rows
    assert page.text.count("o not trust") == 3 and page.text.count("o not read") == 2 and "do not take" in page.text
    goal = ["goal", "hand", "linear", "balanced_accuracy", "0.350 [0.310, 0.380]", "0.250", "0.240", "0.100"]
    assert [*goal, "0.100 [0.000, 0.300]", "16", ""] in page.rows
    assert ["rare", "z_omega", "linear", "r2", *["–"] * 5, "0", "not evaluated: <3"] in page.rows


def test_the_best_row_of_each_label_and_probe_is_bold(written: Path):
    bold = re.findall(r'<tr class="best"><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>', written.read_text())
    labels, probes = ("checkpoint", "goal", "speed"), ("linear", "mlp")
    assert sorted(bold) == [(label, "odd_one", probe) for label in labels for probe in probes]


def test_absent_parts_are_said_to_be_absent(tmp_path: Path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "learning.png").touch()
    bare = Report("bare", dataset(), [], [], None, [], None)
    assert write_report(tmp_path / "report.html", bare) == []
    assert list((tmp_path / "figures").iterdir()) == [], "figures of the earlier report no longer hold"
    page = Page((tmp_path / "report.html").read_text())
    assert page.images == []
    for words in (
        "no learning curves",
        "no training metrics",
        "No label was evaluated",
        "no embeddings",
        "positions in a",
    ):
        assert words in page.text


def test_films_stand_where_tracks_would(tmp_path: Path):
    images = np.random.default_rng(2).integers(0, 256, (1, 2, 4, 5, 3), dtype=np.uint8)
    films = Films(images=images, titles=("one",), seconds=np.arange(2.0)[None], metres=np.zeros((1, 2)))
    written = write_report(tmp_path / "report.html", full()._replace(films=films))
    assert [file.stem for file in written] == [*NAMES[:-1], "films"]
    text = (tmp_path / "report.html").read_text()
    page = Page(text)
    assert page.images[-1] == written[-1].read_bytes() and page.text.count("What the agents do") == 2
    assert "do not take one for its checkpoint" in page.text and "colour of the agent" in page.text
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in page.addresses)


def test_where_nothing_can_be_drawn_the_page_says_why(tmp_path: Path):
    written = write_report(tmp_path / "report.html", full()._replace(films=no_films("No <library> for <it>.")))
    assert [file.stem for file in written] == NAMES[:-1]
    page = Page((tmp_path / "report.html").read_text())
    assert "No <library> for <it>." in page.text and "positions in a plane" not in page.text


def test_a_table_without_a_single_value(tmp_path: Path):
    failed = pd.DataFrame(table().tail(1))
    write_report(tmp_path / "report.html", full()._replace(table=failed))
    page = Page((tmp_path / "report.html").read_text())
    assert len(page.images) == 4 and "rare: not evaluated: <3" in page.text


def test_data_without_labels_curves_or_landmarks(tmp_path: Path):
    whole = full()
    data = whole.dataset._replace(
        labels=Labels({}, ()), meta={"position": [1, 0], "curves": np.zeros((0, 0), np.float32)}
    )
    written = write_report(tmp_path / "report.html", whole._replace(dataset=data))
    assert [file.stem for file in written] == ["training", "probes", "trajectories"]


def test_a_failure_leaves_the_earlier_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "report.html").write_text("earlier")

    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(report_module, "page", fails)
    with pytest.raises(RuntimeError):
        write_report(tmp_path / "report.html", Report("bare", dataset(), [], [], None, [], None))
    assert (tmp_path / "report.html").read_text() == "earlier"


def test_returns_count_the_agents_who_are_there():
    data = dataset()
    mask = np.asarray(data.batch.mask)
    data.outcomes.rewards[~mask] = 7.0
    data.outcomes.rewards[3] = np.nan  # an episode whose rewards are not known
    expected = []
    for row in range(EPISODES):
        total = 0.0
        for step in range(T):
            there = [data.outcomes.rewards[row, step, agent] for agent in range(N) if mask[row, step, agent]]
            total += sum(there) / len(there) if there else 0.0
        expected.append(total)
    expected[3] = 0
    np.testing.assert_allclose(episode_returns(data), expected, rtol=1e-5)


def test_tracks_are_of_the_first_and_last_checkpoint_at_three_returns():
    data = dataset()
    returns = episode_returns(data)
    picked = pick_tracks(data, (2, 0))
    expected = []
    for checkpoint in (0, 3):
        rows = sorted(
            (row for row in range(EPISODES) if data.rows.checkpoint[row] == checkpoint), key=lambda r: returns[r]
        )
        expected += [rows[1], rows[6], rows[10]]  # of 12: .55, 5.5 (to even) and 10.45
    for track, row in zip(picked, expected, strict=True):
        np.testing.assert_array_equal(track.xy, np.asarray(data.batch.obs)[row][..., [2, 0]])
        np.testing.assert_array_equal(track.present, np.asarray(data.batch.mask)[row])
        assert track.title.endswith(f"return {returns[row]:.2f}, group {row // 4}")
    assert [track.title.split(" return")[0] for track in picked[::3]] == ["checkpoint 0, low", "checkpoint 3, low"]


def test_one_checkpoint_gives_one_row_of_tracks():
    data = dataset()
    data = data._replace(rows=data.rows._replace(checkpoint=np.zeros(EPISODES, np.int32)))
    assert len(pick_tracks(data, (0, 1))) == 3


def test_episodes_that_were_never_rewarded_are_not_said_to_have_a_return():
    data = dataset()
    zeros = data._replace(outcomes=data.outcomes._replace(rewards=np.zeros((EPISODES, T, N), np.float32)))
    titles = [track.title for track in pick_tracks(zeros, (0, 1))]
    assert len(titles) == 6 and all(", no rewards, group " in title for title in titles)
