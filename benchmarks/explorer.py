"""The explorer with 20,000 episodes in headless chromium: size of the file, first paint, a selection in every view.

python benchmarks/explorer.py               three agents, 50 steps, 48 seeds at 24 checkpoints
"""

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from browser import CHROMIUM, Page, browser

from data_gen.trajectory import Labels, LabelSpec, RowIndex
from probes.explorer.explorer import PLANE, Explorer, Tracks
from probes.explorer.page import explorer_page

B, T, N, ZW, ZA, SEEDS, CHECKPOINTS, CLASSES = 20_000, 50, 3, 8, 4, 48, 24, 5
LIMITS = {"MB": 40, "first paint": 5.0, "selection": 0.3}
REPEATS = 4
SELECT = """new Promise((done) => {{
  const view = scatters[{view}];
  const edge = view.frame.left(0) + {shift};
  const start = performance.now();
  view.onBrush((x, y) => x > edge);
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
}})"""


def planted(rng: np.random.Generator) -> Explorer:
    """Random episodes; what they are does not matter to the time, but how many they are."""
    kind = rng.integers(0, CLASSES, B)
    centres = rng.normal(size=(CLASSES, ZW)) * 3
    seed, checkpoint = np.arange(B) % SEEDS, np.arange(B) // SEEDS % CHECKPOINTS
    values = {"kind": kind.astype(np.int32), "speed": rng.random(B).astype(np.float32)}
    values["role"] = rng.integers(0, CLASSES, (B, N)).astype(np.int32)
    specs = (*(LabelSpec(name, name, "class") for name in ("kind", "role")), LabelSpec("speed", "speed", "real"))
    places = np.cumsum(rng.normal(size=(B, T, N, 2)) * 0.05, axis=1)
    return Explorer(
        name="20,000 episodes",
        rows=RowIndex(*(part.astype(np.int32) for part in (np.arange(B), seed, checkpoint, np.zeros(B)))),
        split=(seed % 3).astype(np.int32),
        returns=checkpoint + rng.normal(size=B),
        labels=Labels(values, specs),
        z_omega=centres[kind] + rng.normal(size=(B, ZW)),
        z_alpha=centres[kind][:, None, :ZA] + rng.normal(size=(B, N, ZA)),
        tracks=Tracks(places, PLANE, ("x", "y")),
        group="training seed",
        clusters={"z_omega clusters": kind},
    )


def used(page: Page) -> float:
    """Processor seconds that the page's main thread has taken."""
    metrics = page.send("Performance.getMetrics")["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


def paint(page: Page, path: Path) -> float:
    """Seconds from the start of the loading until all views are on the screen."""
    page.open(path)
    return page.until("performance.getEntriesByName('drawn').map((mark) => mark.startTime)[0]", 120) / 1000


def main() -> None:
    """Print the figures beside their limits."""
    if not CHROMIUM:
        print("no chromium here; on Debian apt-get install chromium brings it")
        return
    with tempfile.TemporaryDirectory() as name, browser(Path(name)) as page:
        start, path = time.perf_counter(), Path(name) / "explorer.html"
        path.write_text(explorer_page(planted(np.random.default_rng(0))))
        print(f"made in {time.perf_counter() - start:.1f} s")
        print(f"file {path.stat().st_size / 1e6:.1f} MB (limit {LIMITS['MB']})")
        page.size(1400, 900)
        page.send("Performance.enable", timeDomain="threadTicks")
        seen = paint(page, path)
        print(f"all views drawn after {seen:.2f} s, {used(page):.2f} of processor (limit {LIMITS['first paint']})")
        for view in range(1 + N):
            before = used(page)
            taken = [page.value(SELECT.format(view=view, shift=20 * k)) / 1000 for k in range(REPEATS)]
            processor, middle = (used(page) - before) / REPEATS, statistics.median(taken)
            times = f"median {middle:.3f} s, worst {max(taken):.3f}, {processor:.3f} of processor"
            print(f"selection in view {view}: {times} (limit {LIMITS['selection']})")
        page.value("focus.play(9)")
        opened = page.value(
            "(() => { const t = performance.now(); focus.play(10000); return performance.now() - t; })()"
        )
        print(f"an episode opens in {opened / 1000:.3f} s")
        print(f"console errors: {page.errors or 'none'}, requests: {page.requests or 'none'}")


if __name__ == "__main__":
    main()
