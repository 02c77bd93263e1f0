"""The explorer in a real browser, from disk with the network off: brushes, filters, table, player and export.

EXPLORER_SHOT=docs/explorer.png EXPLORER_PAGE=runs/x/explorer.html EXPLORER_COLOUR=goal
python -m pytest -k shot tests/probes/test_explorer_browser.py makes the picture in the docs.
"""

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.browser import CHROMIUM, Page, browser, patiently
from probes.coupling.images import image_sums, spread
from probes.explorer.page import explorer_page
from tests.probes.explorer_page import copied, corner, drag, on_raw_axes, press, selected, shades
from tests.probes.planted_explorer import (
    CHECKPOINTS,
    HOSTILE,
    SEEDS,
    B,
    T,
    csv_of,
    planted_explorer,
    planted_latents,
    planted_set,
)

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium here; on Debian apt-get install chromium brings it")

ENTER, SPACE, RIGHT = ("Enter", 13, "\r"), (" ", 32, " "), ("ArrowRight", 39)
TITLE, NAMED = "document.querySelector('#below h2').textContent", "document.getElementById('named').textContent"
READY = "document.readyState === 'complete' && typeof player === 'object'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    (folder / "explorer.html").write_text(explorer_page(planted_explorer()))
    with browser(folder) as opened:
        opened.size(1400, 900)
        opened.downloads_to(folder)
        opened.open(folder / "explorer.html")
        opened.until(READY)
        yield opened
        assert opened.errors == [] and opened.requests == []


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest) -> None:
    """Nothing selected, nothing played, choices replace and drags are rectangles."""
    if "page" in request.fixturenames:
        page = request.getfixturevalue("page")
        page.value(
            "document.querySelector('input[value=replace]').click(); document.getElementById('none').click();"
            "document.querySelector('input[value=rectangle]').click();"
            "document.querySelector('input[name=listed][value=selection]').click(); player.pause();"
            "for (const s of scatters) { s.axes = [0, 1]; s.place(); } drawAll(); window.scrollTo(0, 0)"
        )


def test_a_drag_in_one_view_selects_the_same_episodes_in_all(page: Page) -> None:
    z_omega, z_alpha = planted_latents()
    on_raw_axes(page, 0)
    drag(page, 0, [(4.0, -6.0), (7.0, 0.0), (13.0, 6.0)])
    expected = np.flatnonzero((z_omega[:, 0] > 4) & (abs(z_omega[:, 1]) < 6))
    assert 20 < len(expected) < 40
    np.testing.assert_array_equal(selected(page), expected)
    chosen = np.isin(np.arange(B), expected)
    for view in range(3):  # the kinds lie apart in every view, so no point of one covers one of the other
        page.value(f"scatters[{view}].axes = [0, 2]; scatters[{view}].place(); scatters[{view}].draw()")
        grey = shades(page, view)
        assert grey.count(None) == (1 if view == 2 else 0) and (grey[3] is None) == (view == 2)
        shown = np.array([0 if shade is None else shade for shade in grey], bool)
        wrong = (shown == chosen) & np.array([shade is not None for shade in grey])
        assert wrong.mean() < 0.1, view  # a few lie under others
    rows = page.value("[...document.querySelectorAll('#episodes tbody tr')].map((tr) => Number(tr.dataset.row))")
    assert rows == expected[:15].tolist()
    returns = planted_explorer().returns
    status = page.value("document.getElementById('chosen').textContent")
    assert status.startswith(f"{len(expected)} of {B} episodes selected")
    assert f"mean return {returns[expected].mean():.4g}, of all {returns.mean():.4g}" in status
    spreads = page.value("[...document.querySelectorAll('#latents .spread')].map((p) => p.textContent)")
    for text, z in zip(spreads, [z_omega, z_alpha[:, 0], np.delete(z_alpha[:, 1], 3, 0)], strict=True):
        here = chosen if len(z) == B else np.delete(chosen, 3)
        ratio = np.trace(np.cov(z[here].T)) / np.trace(np.cov(z.T))
        assert f"image spread {ratio:.2f} of all" in text
        sums = image_sums(z[None], np.ones((1, len(z)), bool))[0]  # the tables of coupling say the same
        assert spread(sums[here].sum(0), sums.sum(0)) == pytest.approx(ratio, rel=1e-5)
    assert "brushed" in spreads[0] and "brushed" not in spreads[1]


def test_one_episode_has_no_spread(page: Page) -> None:
    page.value("selection.set(new Uint8Array(EPISODES).map((_, row) => row === 5), 'test')")
    words = page.value("[...document.querySelectorAll('#latents .spread')].map((p) => p.textContent)")
    assert words == ["image spread – of all"] * 3


def test_cells_of_the_learning_curve_are_filled_and_select(page: Page) -> None:
    returns, found = planted_explorer().returns, planted_set()
    assert page.value(TITLE).startswith(f"Learning curve of {SEEDS} training seeds")
    cells = page.value("curve.cells.list.map((c) => [Number(c.seed), Number(c.checkpoint), c.mean, c.count])")
    assert len(cells) == SEEDS * CHECKPOINTS
    for seed, checkpoint, mean, count in cells:
        here = (found.rows.group == seed) & (found.rows.checkpoint == checkpoint)
        assert count == here.sum() == 5 and mean == pytest.approx(returns[here].mean(), rel=1e-6)
    place = page.value(
        "(() => { const b = curve.frame.overlay.getBoundingClientRect();"
        "const i = curve.cells.list.findIndex((c) => c.seed === '8' && c.checkpoint === '1');"
        "return [b.left + curve.xs[i], b.top + curve.ys[i], i]; })()"
    )
    page.click(*place[:2])
    cell = np.flatnonzero((found.rows.group == 8) & (found.rows.checkpoint == 1))
    np.testing.assert_array_equal(selected(page), cell)
    middles = page.value(
        f"(() => {{ const c = {copied('curve.frame.canvas')}; return curve.cells.list.map((cell, i) =>"
        "Array.from(c.getImageData(curve.xs[i], curve.ys[i], 1, 1).data.slice(0, 3))); })()"
    )
    blue = [i for i, (red, _, blue) in enumerate(middles) if red < 40 and blue > 120]
    assert blue == [place[2]]


def test_a_lasso_and_the_ways_to_combine(page: Page) -> None:
    z_omega, _ = planted_latents()
    on_raw_axes(page, 0)
    x, y = z_omega[:, 0], z_omega[:, 1]
    page.value("document.querySelector('input[value=lasso]').click()")
    drag(page, 0, [(-2, -2), (-2, 2), (2, 2)])  # a triangle above the diagonal
    above = (x > -2) & (y > x) & (y < 2)
    assert 5 < above.sum() < 40
    np.testing.assert_array_equal(selected(page), np.flatnonzero(above))
    page.value("document.querySelector('input[value=rectangle]').click()")
    for mode, combined in (
        ("add", above | (y > 0)),
        ("intersect", (above | (y > 0)) & (x > 4)),
        ("remove", (y > 0) & (x > 4) & (y < 1)),
    ):
        page.value(f"document.querySelector('input[value={mode}]').click()")
        low, bottom = {"add": (-6, 0), "intersect": (4, -6), "remove": (-6, 1)}[mode]
        drag(page, 0, [(low, bottom), (15, 8)])
        np.testing.assert_array_equal(selected(page), np.flatnonzero(combined), err_msg=mode)
    press(page, "#invert")
    np.testing.assert_array_equal(selected(page), np.flatnonzero(~((y > 0) & (x > 4) & (y < 1))))
    press(page, "#undo")
    assert len(selected(page)) == ((y > 0) & (x > 4) & (y < 1)).sum()


def test_the_keyboard_selects_without_a_mouse(page: Page) -> None:
    found, (z_omega, _) = planted_set(), planted_latents()
    page.value("document.querySelectorAll('.condition')[1].querySelector('.chip:nth-child(2)').focus()")
    page.key(*ENTER)
    page.value("document.getElementById('add').focus()")
    page.key(*ENTER)
    page.value(
        "(() => { const c = filters.conditions[2]; c.select.value = 'z_ω team: dim 1';"
        "c.select.dispatchEvent(new Event('change')); c.node.querySelector('input').focus(); })()"
    )
    page.send("Input.insertText", text="4")
    assert page.value("filters.matching.textContent").startswith(
        str(((z_omega[:, 0] >= 4) & (found.rows.checkpoint == 1)).sum())
    )
    page.key(*ENTER)  # sends the form
    np.testing.assert_array_equal(selected(page), np.flatnonzero((z_omega[:, 0] >= 4) & (found.rows.checkpoint == 1)))
    page.value("filters.remove(filters.conditions[2]); document.getElementById('idlist').focus()")
    page.send("Input.insertText", text="103, 110-112 999")
    page.key(*ENTER)
    assert selected(page).tolist() == [3, 10, 11, 12]
    assert page.value(NAMED) == "no episode has the number 999"
    lost, none = "no episode has the number ", "no number given; type some, as in 3, 10-20"
    for typed, said in (("abc", f"{lost}abc"), ("12-10, x7 ,", f"{lost}12-10, x7"), (" ,", none), ("110", "")):
        page.value(f"document.getElementById('idlist').value = {typed!r}; document.getElementById('idlist').focus()")
        page.key(*ENTER)
        assert page.value(NAMED) == said
        assert selected(page).tolist() == ([10] if typed == "110" else [3, 10, 11, 12])  # a selection is not lost by it
    page.value("filters.name('103, 110-112')")
    page.value("document.querySelector('#episodes tbody tr:nth-child(2)').focus()")
    page.key(*ENTER)
    assert page.value("focus.playing") == 10
    assert page.value("document.activeElement.dataset.row") == "10"  # the focus stays where it was
    page.value("document.querySelector('#episodes tbody tr input').focus()")
    page.key(*SPACE)
    assert selected(page).tolist() == [10, 11, 12]
    page.value("document.querySelector('#legend .line').focus()")
    page.key(*ENTER)
    assert selected(page).tolist() == list(range(0, B, 2))


def test_a_click_plays_an_episode(page: Page) -> None:
    found, (z_omega, _) = planted_set(), planted_latents()
    row = int(np.argmax(z_omega[:, 1]))
    on_raw_axes(page, 0)
    page.click(*corner(page, 0, z_omega[row, 0], z_omega[row, 1]))
    assert page.value("focus.playing") == row
    assert page.value("document.getElementById('episode').textContent").startswith(f"{100 + row} · return")
    page.until("player.step > 1")
    pictures = page.value("[0, 3, 6].map((step) => (player.show(step), player.stage.canvas.toDataURL()))")
    assert len(set(pictures)) == 3
    page.value("player.stage.canvas.focus()")
    page.value("player.pause(); player.speed.value = '0.5'")
    for running in (True, False):
        page.key(*SPACE)
        assert page.value("player.running") is running
    page.value("player.speed.value = '1'; player.show(0)")
    page.key(*RIGHT)
    assert page.value("[player.step, player.last]") == [1, T - 1]
    for step in (0, 3, T - 1):
        page.value(f"player.show({step})")
        seen = page.value(
            "(() => { const out = []; const c = player.stage.canvas.getContext('2d'); const arc = c.arc.bind(c);"
            "c.arc = (x, y, r, ...rest) => { if (r === 6) out.push([c.fillStyle, x, y]); arc(x, y, r, ...rest); };"
            f"player.stage.draw({step}); delete c.arc; return out; }})()"
        )
        there = np.flatnonzero(found.batch.mask[row, step])
        assert [colour for colour, *_ in seen] == [["#0072b2", "#e69f00"][agent] for agent in there]
        if len(there) == 2:  # the picture is the plane, with one scale for both axes and y upward
            shown = np.subtract(seen[1][1:], seen[0][1:]) * [1, -1]
            true = np.diff(found.batch.obs[row, step, :, :2], axis=0)[0]
            assert np.cross([*shown, 0], [*true, 0])[2] == pytest.approx(0, abs=0.02 * np.linalg.norm(shown))
            assert np.dot(shown, true) > 0


def test_the_selection_is_exported_as_csv(page: Page, folder: Path) -> None:
    page.value("selection.choose((row) => row % 7 === 3, 'test')")
    press(page, "#export")
    patiently(lambda: list(folder.glob("*.csv")), 20, "the download")
    file = next(folder.glob("*.csv"))
    content = patiently(file.read_text, 20, "the file's content")
    assert file.name == "a_b_run_-episodes.csv"
    with file.open(newline="") as opened:
        head, *lines = list(csv.reader(opened))
    assert head[:6] == ["episode", "group", "checkpoint", "split", "return", HOSTILE]
    expected = csv_of(planted_explorer(), np.arange(3, B, 7), planted_set())
    for line, wanted in zip(lines, expected, strict=True):
        assert [cell if "." not in cell else f"{float(cell):.4f}" for cell in line] == wanted
    assert content.endswith("\n")


def test_colours_follow_the_variable(page: Page) -> None:
    page.value("colouring.use(variableOf('effort'))")
    assert page.value("document.querySelectorAll('#legend .bar').length") == 1
    assert f"grey: {B // 2} without a value" in page.value("document.getElementById('legend').textContent")
    grey = page.value("Array.from(colouring.style, (style) => colouring.styles[style].colour === ABOUT.other)")
    assert grey == [row % 2 == 0 for row in range(B)]
    page.value(f"colouring.use(variableOf({HOSTILE!r}))")
    lines = page.value("[...document.querySelectorAll('#legend .line')].map((b) => b.textContent)")
    assert lines == ["<even>30", "odd30"]
    assert page.value("document.getElementById('hurt')") is None
    shapes = page.value("colouring.styles.map((style) => style.shape)")
    assert shapes[:2] == ["circle", "square"]


def test_actions_and_films_are_drawn(tmp_path: Path) -> None:
    (tmp_path / "explorer.html").write_text(explorer_page(planted_explorer(plane=False, films=2)))
    with browser(tmp_path) as page:
        page.size(1000, 800)
        page.open(tmp_path / "explorer.html")
        page.until(READY)
        assert page.value(TITLE).startswith(f"Learning curve of {SEEDS} groups")
        page.value("focus.play(1)")
        page.until("player.stage.film !== null")
        count = (
            f"(() => {{ const c = {copied('player.stage.canvas')};"
            "const d = c.getImageData(0, 0, c.canvas.width, c.canvas.height).data; let [red, blue] = [0, 0];"
            "for (let i = 0; i < d.length; i += 4) {"
            "if (d[i] > 160 && d[i + 2] < 60 && d[i + 1] < 60) red++;"
            "if (d[i] < 60 && d[i + 2] > 160 && d[i + 1] < 60) blue++; } return [red, blue]; })()"
        )
        red, blue = page.value(count)
        assert red > 500 and blue / red == pytest.approx(5, rel=0.15)  # one red frame and five blue ones
        assert page.value("TRACKS.kind") == "actions" and page.value("player.last") == T - 1
        page.value("focus.play(5)")
        assert page.value("player.stage.film") is None and page.value(count) == [0, 0]
        page.until("player.step > 1")
        assert page.errors == [] and page.requests == []


@pytest.mark.skipif("EXPLORER_SHOT" not in os.environ, reason="only makes a picture; EXPLORER_SHOT says where")
def test_shot(tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.size(1400, 900)
        page.open(Path(os.environ["EXPLORER_PAGE"]))
        page.until(READY, 60)
        choose = "(c => {{ c.value = '{}'; c.dispatchEvent(new Event('change')); }})(document.getElementById('colour'))"
        page.value(choose.format(os.environ["EXPLORER_COLOUR"]))
        ends = "[s.view.axes[0].low, s.view.axes[0].high, s.view.axes[1].low, s.view.axes[1].high]"
        left, right, low, high = page.value(f"(() => {{ const s = scatters[1]; return {ends}; }})()")
        drag(page, 1, [(right, low), (right - 0.35 * (right - left), low + 0.6 * (high - low))])
        chosen = selected(page)
        assert 0 < len(chosen) < page.value("EPISODES")
        page.value(f"focus.play({chosen[len(chosen) // 2]})")
        page.until("player.step >= 16")
        page.value("player.pause()")
        page.screenshot(Path(os.environ["EXPLORER_SHOT"]))
        assert page.errors == [] and page.requests == []
