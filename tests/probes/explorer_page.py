"""What a user's hands and eyes do on the explorer's page: drags at values, clicks on elements, colours of points."""

import numpy as np

from benchmarks.browser import Page

PALE = "r === g && g === b"


def selected(page: Page) -> np.ndarray:
    return np.flatnonzero(page.value("Array.from(selection.mask)"))


def press(page: Page, target: str) -> None:
    """Click in the middle of an element with the mouse."""
    box = page.value(
        f"(() => {{ const e = document.querySelector({target!r}); e.scrollIntoView({{block: 'nearest'}});"
        "const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    page.click(*box)


def on_raw_axes(page: Page, view: int) -> None:
    """Show a view on the latent's own first two dimensions, by its drop-downs."""
    page.value(
        f"(() => {{ const s = scatters[{view}]; const box = document.querySelectorAll('.view')[{view}];"
        "box.querySelectorAll('select').forEach((select, i) => { select.value = s.view.latent + i;"
        "select.dispatchEvent(new Event('change')); }); })()"
    )


def corner(page: Page, view: int, x: float, y: float) -> tuple[float, float]:
    """The place in the window of a value on each axis of a view; the edge of the plot where it lies outside."""
    left, top = page.value(
        f"(() => {{ const f = scatters[{view}].frame; const b = f.overlay.getBoundingClientRect();"
        "const within = (place, size) => Math.max(3, Math.min(size - 3, place));"
        f"return [b.left + within(f.left({x}), f.width), b.top + within(f.top({y}), f.height)]; }})()"
    )
    return left, top


def drag(page: Page, view: int, corners: list[tuple[float, float]]) -> None:
    page.drag([corner(page, view, *each) for each in corners])


def copied(canvas: str) -> str:
    """The context of a canvas's copy, which is made for reading."""
    made = f"new OffscreenCanvas({canvas}.width, {canvas}.height).getContext('2d', {{ willReadFrequently: true }})"
    return f"((copy) => {{ copy.drawImage({canvas}, 0, 0); return copy; }})({made})"


def shades(page: Page, view: int) -> list[bool]:
    """Of every episode, whether the pixel in its place is grey."""
    return page.value(
        f"(() => {{ const s = scatters[{view}]; const c = {copied('s.frame.canvas')};"
        "return Array.from(s.xs, (x, row) => { if (x < 0) return null;"
        "const [r, g, b] = c.getImageData(Math.round(x), Math.round(s.ys[row]), 1, 1).data;"
        f"return {PALE}; }}); }})()"
    )
