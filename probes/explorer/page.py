"""The explorer as one HTML file: data, style and script inside, nothing from a network."""

import html
import io
import json
import re
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8
from matplotlib.image import imsave

from probes.explorer.arrays import Store, quantise
from probes.explorer.explorer import Explorer, Strips, Tracks, stratified
from probes.explorer.variables import EPISODE, OTHER, SHADES, class_variable, looks_of, variables_of
from probes.report.figures import PALETTE
from probes.report.figures_plane import project

HERE = Path(__file__).parent
SCRIPTS = "data selection raster axes colour brush scatter curve filters table actions stage player main".split()
LARGEST = 38_000_000  # bytes of a page; trajectories get what the rest leaves
FILM_COLUMNS, QUALITY = 4, 82
NOTE = (
    "Every point is an episode. Clusters and the spread of a selection's image are found in the whole latent, never in "
    "these pictures: episodes that lie together here can be far apart in the other dimensions. Training episodes are "
    "among the points; choose a split under Filter."
)


def explorer_page(content: Explorer) -> str:
    """The whole page. Text of the user's, such as names of labels, is never read as HTML."""
    store = Store()
    about: dict[str, Any] = {
        "name": content.name,
        "file": re.sub(r"[^\w.-]+", "_", content.name),
        "episodes": len(content.split),
        "episode": store.put(content.rows.episode, "i4"),
        "t0": store.put(content.rows.t0, "i4"),
        "returns": store.put(content.returns, "f4"),
        "group": content.group,
        "updates": updates_of(content),
        "variables": variables_of(content, store),
        "views": views_of(content, store),
        "palette": PALETTE,
        "other": OTHER,
        "viridis": SHADES,
        "films": None if content.strips is None else films_json(content.strips, store),
    }
    about["coloured"] = min(4, len(about["variables"]) - 1)  # the first label, where there is one
    kept = kept_rows(content, LARGEST - store.size())
    about["tracks"] = tracks_json(content.tracks, kept, store)
    about["variables"] += shown_variables(content, kept, store)
    return Template((HERE / "page.html").read_text()).substitute(
        name=html.escape(content.name),
        style=(HERE / "style.css").read_text(),
        note=NOTE,
        missing=html.escape(missing(content, len(kept))),
        data=f'<script type="application/json" id="about">{json_text(about)}</script>\n{store.html()}',
        script="\n".join((HERE / f"{name}.js").read_text() for name in SCRIPTS),
    )


def updates_of(content: Explorer) -> dict[str, int] | None:
    """The learner's update at each checkpoint; None where the data set does not name them all."""
    numbers = np.unique(content.rows.checkpoint).tolist()
    if not 0 <= min(numbers) <= max(numbers) < len(content.updates):
        return None
    return {str(number): int(content.updates[number]) for number in numbers}


def json_text(about: dict[str, Any]) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(about, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def views_of(content: Explorer, store: Store) -> list[dict[str, Any]]:
    """The latent of the team, then of each agent that was ever there."""
    views = [view_of("omega", "z_ω team", content.z_omega.astype(np.float64), store)]
    for agent in range(content.z_alpha.shape[1]):
        z = content.z_alpha[:, agent].astype(np.float64)
        if np.isfinite(z).all(1).any():
            views.append(view_of(f"alpha-{agent}", f"z_α agent {agent}", z, store))
    return views


def view_of(name: str, title: str, z: Float[np.ndarray, "B Z"], store: Store) -> dict[str, Any]:
    """A latent's axes, all its principal components before its own dimensions, and every episode's place on them."""
    there, width = np.isfinite(z).all(1), z.shape[1]
    plane = project(z[there], width)
    values = np.full((len(z), 2 * width), np.nan)
    values[there] = np.concatenate([plane.points, z[there]], axis=1)
    found = quantise(values)
    names = [f"PC {k + 1}" for k in range(width)] + [f"dim {k + 1}" for k in range(width)]
    shares = [f" ({share:.0%} of variance)" for share in plane.explained] + [""] * width
    axes = [
        {"name": name, "share": share, "low": low, "high": high}
        for name, share, low, high in zip(names, shares, found.low.tolist(), found.high.tolist(), strict=True)
    ]
    return {"name": name, "title": title, "axes": axes, "latent": width, "values": store.put(found.codes, "u2")}


def kept_rows(content: Explorer, room: int) -> Int[np.ndarray, " K"]:
    """The episodes whose trajectories fit into `room` bytes of base64: all, else a stratified part."""
    one = 2 * np.prod(content.tracks.values.shape[1:], dtype=int) * 4 / 3
    return stratified(content.rows, max(0, min(len(content.split), int(room / one))))


def tracks_json(tracks: Tracks, kept: Int[np.ndarray, " K"], store: Store) -> dict[str, Any]:
    """The trajectories of some episodes as codes."""
    found = quantise(tracks.values[kept])
    return {
        "kind": tracks.kind,
        "channels": tracks.channels,
        "discrete": tracks.discrete,
        "marks": [{key: _plain(value) for key, value in mark.items()} for mark in tracks.marks],
        "shape": list(found.codes.shape),
        "low": found.low.tolist(),
        "high": found.high.tolist(),
        "rows": store.put(kept, "i4"),
        "values": store.put(found.codes, "u2"),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else float(value)


def films_json(strips: Strips, store: Store) -> dict[str, Any]:
    """Each episode's frames as one JPEG, FILM_COLUMNS in a row."""
    for place, images in enumerate(strips.films.images):
        store.put_bytes(f"film-{place}", jpeg(images))
    _, frames, side, _, _ = strips.films.images.shape
    return {
        "rows": store.put(strips.rows[: len(strips.films.images)], "i4"),
        "frames": frames,
        "columns": FILM_COLUMNS,
        "side": side,
        "seconds": np.round(strips.films.seconds, 2).tolist(),
        "metres": (np.round(strips.films.metres, 1) + 0.0).tolist(),  # + 0 so that −0 is 0
        "absent": strips.films.absent,
    }


def jpeg(images: UInt8[np.ndarray, "F H W 3"]) -> bytes:
    """Frames side by side in rows of FILM_COLUMNS, white where the last row is not full."""
    frames, height, width, _ = images.shape
    lines = -(-frames // FILM_COLUMNS)
    sheet = np.full((lines * height, FILM_COLUMNS * width, 3), 255, np.uint8)
    for frame, image in enumerate(images):
        top, left = frame // FILM_COLUMNS * height, frame % FILM_COLUMNS * width
        sheet[top : top + height, left : left + width] = image
    buffer = io.BytesIO()
    imsave(buffer, sheet, format="jpg", pil_kwargs={"quality": QUALITY})
    return buffer.getvalue()


def shown_variables(content: Explorer, kept: Int[np.ndarray, " K"], store: Store) -> list[dict[str, Any]]:
    """Whether an episode can be played and was filmed, where that is not so for all."""
    n, found = len(content.split), []
    if len(kept) < n:
        codes = np.isin(np.arange(n), kept).astype(int)
        found.append(
            class_variable(store, EPISODE, "trajectory", codes, looks_of(codes, ("not in the file", "in the file")))
        )
    if content.strips is not None and len(content.strips.films.images):
        codes = np.isin(np.arange(n), content.strips.rows).astype(int)
        found.append(class_variable(store, EPISODE, "film", codes, looks_of(codes, ("none", "filmed"))))
    return found


def missing(content: Explorer, kept: int) -> str:
    """Which episodes the player can show."""
    n, what = len(content.split), "places in the plane" if content.tracks.kind == "plane" else "actions"
    if kept == n:
        said = f"The file holds the {what} of all {n} episodes."
    else:
        said = (
            f"The file holds the {what} of {kept} of {n} episodes, drawn evenly from every {content.group} at every "
            "checkpoint so that it stays below 40 MB; the variable “trajectory” says which."
        )
    if content.strips is None:
        return said
    films = content.strips.films
    return f"{said} " + (films.absent or f"{len(films.images)} have film strips; the variable “film” says which.")
