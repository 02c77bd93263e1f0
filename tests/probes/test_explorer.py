"""What an explorer page carries: codes that decode, the whole of a latent, a fair part of the episodes, plain text."""

import base64
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.image import imread
from sklearn.decomposition import PCA

from data_gen.trajectory import InputError, RowIndex
from probes.explorer import page as page_module
from probes.explorer.arrays import Store, quantise
from probes.explorer.explorer import explorer_of, stratified
from probes.explorer.page import explorer_page, jpeg
from tests.probes.planted_explorer import HOSTILE, ZA, ZW, B, N, T, planted_explorer, planted_latents, planted_set


class Elements(HTMLParser):
    """Text of the page's script elements by id, and every tag with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.scripts: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open = dict(attrs).get("id", "program") if tag == "script" else ""

    def handle_endtag(self, tag):
        self._open = ""

    def handle_data(self, data):
        if self._open:
            self.scripts[self._open] = self.scripts.get(self._open, "") + data

    def array(self, ref: dict) -> np.ndarray:
        return np.frombuffer(base64.b64decode(self.scripts[ref["id"]]), f"<{ref['type']}")


def read(page: str) -> tuple[Elements, dict]:
    elements = Elements(page)
    return elements, json.loads(elements.scripts["about"])


def decoded(codes: np.ndarray, low, high) -> np.ndarray:
    scaled = np.asarray(low) + codes / 65534 * (np.asarray(high) - np.asarray(low))
    return np.where(codes == 65535, np.nan, scaled)


def test_codes_come_back_as_the_numbers() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3, 4)) * [1e-6, 1, 1e6, 0] + [0, 0, 5e6, 2]
    values[3, 1] = np.nan
    values[..., 3][0, 0] = np.nan
    found = quantise(values)
    back = decoded(found.codes, found.low, found.high)
    assert (np.isnan(back) == np.isnan(values)).all()
    span = np.nanmax(values, (0, 1)) - np.nanmin(values, (0, 1))
    assert (np.nanmax(abs(back - values), (0, 1)) <= span / 131068 * 1.001 + 1e-12).all()
    assert (quantise(np.full((2, 1), np.nan)).codes == 65535).all()


def test_the_page_holds_each_latent_whole() -> None:
    elements, about = read(explorer_page(planted_explorer()))
    z_omega, z_alpha = planted_latents()
    assert [view["name"] for view in about["views"]] == ["omega", "alpha-0", "alpha-1"]
    for view, z in zip(about["views"], [z_omega, z_alpha[:, 0], z_alpha[:, 1]], strict=True):
        low, high = ([axis[end] for axis in view["axes"]] for end in ("low", "high"))
        values = decoded(elements.array(view["values"]).reshape(B, -1), low, high)
        there = np.arange(B) != 3 if view["name"] == "alpha-1" else np.full(B, True)
        assert np.isnan(values[~there]).all() and view["latent"] == z.shape[1]
        np.testing.assert_allclose(values[there, z.shape[1] :], z[there], atol=1e-3)
        pca = PCA().fit(z[there].astype(float))
        np.testing.assert_allclose(abs(values[there, : z.shape[1]]), abs(pca.transform(z[there])), atol=1e-3)
        shares = [f" ({share:.0%} of variance)" for share in pca.explained_variance_ratio_]
        assert [axis["share"] for axis in view["axes"]] == shares + [""] * z.shape[1]


def test_the_page_holds_the_episodes() -> None:
    elements, about = read(explorer_page(planted_explorer()))
    found = planted_set()
    np.testing.assert_array_equal(elements.array(about["episode"]), found.rows.episode)
    np.testing.assert_allclose(elements.array(about["returns"]), found.outcomes.rewards[:, :, 0].sum(1), rtol=1e-5)
    named = {variable["name"]: variable for variable in about["variables"]}
    assert list(named)[:4] == ["training seed", "checkpoint", "split", "return"]
    others = read(explorer_page(planted_explorer(plane=False)))[1]  # no learner here made these
    assert others["group"] == others["variables"][0]["name"] == "group"
    kind = named[HOSTILE]
    assert [one["name"] for one in kind["classes"]] == ["<even>", "odd"]
    np.testing.assert_array_equal(elements.array(kind["values"]), np.arange(B) % 2)
    clusters = elements.array(named["z_omega clusters"]["values"])
    np.testing.assert_array_equal(clusters, [65535] * 2 + [2] * 4 + [0, 1] * (B // 2 - 3))
    assert [one["name"] for one in named["z_omega clusters"]["classes"]] == ["0", "4", "noise"]
    assert [one["colour"] for one in named["z_omega clusters"]["classes"]] == ["#0072b2", "#e69f00", "#8c8c8c"]
    role = named["role, agent 1"]
    assert sum(not one["folded"] for one in role["classes"]) == 7
    assert len({one["shape"] for one in role["classes"] if not one["folded"]}) == 7
    held = elements.array(named["split"]["values"]) == 3
    np.testing.assert_array_equal(held, found.rows.checkpoint == 2)


def test_tracks_are_nan_where_an_agent_is_not_there() -> None:
    found, content = planted_set(), planted_explorer()
    elements, about = read(explorer_page(content))
    tracks = about["tracks"]
    values = decoded(elements.array(tracks["values"]).reshape(B, T, N, 2), tracks["low"], tracks["high"])
    np.testing.assert_array_equal(np.isnan(values), np.broadcast_to(~found.batch.mask[..., None], values.shape))
    np.testing.assert_allclose(values[found.batch.mask], found.batch.obs[found.batch.mask][:, :2], atol=1e-4)


def test_a_page_without_room_holds_a_fair_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "LARGEST", 10_000)
    text = explorer_page(planted_explorer())
    elements, about = read(text)
    rows = elements.array(about["tracks"]["rows"])
    assert 12 <= len(rows) < B and about["tracks"]["shape"][0] == len(rows)
    _, counts = np.unique(rows // 5, return_counts=True)  # a seed at a checkpoint has 5 episodes
    assert len(counts) == 12 and np.ptp(counts) <= 1
    trajectory = next(variable for variable in about["variables"] if variable["name"] == "trajectory")
    assert elements.array(trajectory["values"]).sum() == len(rows)
    assert f"of {len(rows)} of {B} episodes" in text


def test_stratified_rows_are_even_and_the_same_each_time() -> None:
    group = np.repeat(np.arange(6), [2, 40, 40, 40, 40, 40]).astype(np.int32)
    zeros = np.zeros_like(group)
    rows = RowIndex(np.arange(len(group), dtype=np.int32), group, zeros, zeros)
    picked = stratified(rows, 32)
    assert np.bincount(group[picked]).tolist() == [2, 6, 6, 6, 6, 6]
    assert (np.diff(picked) > 0).all() and picked.max() - picked.min() > 150
    np.testing.assert_array_equal(picked, stratified(rows, 32))
    np.testing.assert_array_equal(stratified(rows, 999), np.arange(len(group)))


def test_names_stay_text_and_nothing_is_fetched() -> None:
    text = explorer_page(planted_explorer(films=2))
    elements, _ = read(text)
    assert not [tag for tag in elements.tags if tag[1].get("id") == "hurt"]
    assert not [tag for tag in elements.tags if tag[0] in ("b", "i", "run")]
    assert not [tag for tag in elements.tags if {"src", "href"} & tag[1].keys()]
    assert "<title>a &amp; &quot;b&quot; &lt;run&gt;: marl-vae explorer</title>" in text
    assert not re.search(r"https?://|@import|url\(", text) and text.count("</script>") == text.count("<script")


def test_a_film_is_one_picture_of_its_frames() -> None:
    frames = np.zeros((6, 16, 16, 3), np.uint8)
    frames[np.arange(6), ..., np.arange(6) % 3] = 210
    sheet = imread(io.BytesIO(jpeg(frames)), format="jpg")
    assert sheet.shape == (32, 64, 3)
    for frame in range(6):
        middle = sheet[frame // 4 * 16 + 8, frame % 4 * 16 + 8].astype(int)
        assert abs(middle - frames[frame, 8, 8]).max() < 25
    assert (sheet[24, 40:] > 240).all()


def test_latents_of_other_episodes_are_refused() -> None:
    z_omega, z_alpha = planted_latents()
    with pytest.raises(InputError, match="z_omega are of 59 episodes and the data set of 60"):
        explorer_of("run", planted_set(), z_omega[1:], z_alpha[1:])


def test_latents_that_are_not_finite_are_refused() -> None:
    z_omega, z_alpha = planted_latents()
    z_alpha[7, 1, 0] = np.nan
    with pytest.raises(InputError, match="z_alpha is not finite in 1 of 60 episodes, first in row 7"):
        explorer_of("run", planted_set(), z_omega, z_alpha)


def test_agents_that_repeat_the_joint_latent_get_no_view() -> None:
    z_omega, _ = planted_latents()
    repeated = np.repeat(z_omega[:, None], N, axis=1)
    _, about = read(explorer_page(explorer_of("run", planted_set(), z_omega, repeated)))
    assert [view["name"] for view in about["views"]] == ["omega"] and ZW != ZA


def test_scripts_are_readable_files() -> None:
    files = sorted(page_module.HERE.glob("*.js"))
    assert {file.stem for file in files} == set(page_module.SCRIPTS)
    for file in [*files, page_module.HERE / "style.css"]:
        lines = file.read_text().splitlines()
        assert len(lines) <= 300 and max(map(len, lines)) <= 120, file.name


def test_a_store_keeps_numbers_as_they_are() -> None:
    store = Store()
    ref = store.put(np.array([1, -2, 3]), "i4")
    content = Elements(store.html()).scripts[ref["id"]]
    assert np.frombuffer(base64.b64decode(content), "<i4").tolist() == [1, -2, 3]
    assert store.size() == len(store.html())
