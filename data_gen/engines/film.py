"""Pictures of a body in given states, drawn in a process of their own: a crash of the graphics library ends only that.

K episodes, F frames of each. Nothing here imports mujoco.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8

from data_gen.engines.bodies import BODIES, INSTALL, Body
from data_gen.trajectory import InputError

# The first library that works is used, unless MUJOCO_GL names one.
BACKENDS = ("cgl",) if sys.platform == "darwin" else ("egl", "osmesa")
COMMAND = (sys.executable, "-m", "data_gen.engines.film")
LIMIT = 300.0  # seconds
PACKAGES = ("mujoco", "gymnasium")  # the second has the bodies' MJCF files
ROOT = Path(__file__).resolve().parents[2]
LONGEST = 200  # characters of an error that are repeated
NO_PAINT = np.zeros((0, 3))


class NoRendering(RuntimeError):
    """Nothing could be drawn here; the message is one sentence that says why and what to do."""


def film(
    body: Body,
    qpos: Float[np.ndarray, "K F Nq"],
    height: int,
    width: int,
    paint: Float[np.ndarray, "Nu 3"] | Float[np.ndarray, "0 3"] = NO_PAINT,
) -> UInt8[np.ndarray, "K F H W 3"]:
    """Pictures from the side; the camera goes along with the body over the ground and stays at its height.

    `paint` is the colour, RGB in 0..1, of the limb that each actuator moves; none leaves the MJCF's colours.
    Raises NoRendering where no graphics library works, InputError where positions are not those of the body.
    """
    if qpos.shape[-1] != body.nq or not np.isfinite(qpos).all():
        raise InputError(
            f"film: positions have shape {qpos.shape} and {np.sum(~np.isfinite(qpos))} values that are not finite; "
            f"{body.name} needs [episodes, frames, {body.nq}] finite numbers. Record the data set again."
        )
    missing = [package for package in PACKAGES if find_spec(package) is None]
    if missing:
        raise NoRendering(
            f"Nothing was rendered, because the package {missing[0]!r} is not installed here; {INSTALL} brings it."
        )
    errors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "wanted.npz", body=body.name, qpos=qpos, size=(height, width), paint=paint)
        for backend in [os.environ["MUJOCO_GL"]] if os.environ.get("MUJOCO_GL") else BACKENDS:
            error = drawn_with(backend, folder)
            if not error:
                return np.load(folder / "images.npy")
            errors.append(f"{backend}: {error}")
    raise NoRendering(
        f"Nothing was rendered, because no graphics library for offscreen rendering worked ({'; '.join(errors)}); "
        f"install one (Debian: libegl1 and libopengl0, or libosmesa6) or name a working one in MUJOCO_GL."
    )


def drawn_with(backend: str, folder: Path) -> str:
    """Let a process draw what `folder` says with one graphics library; the first line of its error, or nothing."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "MUJOCO_GL": backend, "PYTHONPATH": os.pathsep.join(paths), "JAX_PLATFORMS": "cpu"}
    said = folder / "error.txt"
    said.unlink(missing_ok=True)
    try:
        done = subprocess.run([*COMMAND, str(folder)], env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"it was stopped after {LIMIT:g} seconds"
    if done.returncode == 0 and (folder / "images.npy").exists():
        return ""
    if said.exists():
        return said.read_text()
    if done.returncode < 0:
        return f"the process was ended by {signal.Signals(-done.returncode).name}"
    return first_line(done.stderr.strip().rpartition("\n")[2]) or f"the process ended with code {done.returncode}"


def first_line(text: str) -> str:
    """The first line that says something, cut to a readable length."""
    return next((line.strip()[:LONGEST] for line in text.splitlines() if line.strip()), "")


def main(arguments: Sequence[str]) -> int:
    """What the process does: read `wanted.npz` in its folder, write `images.npy` or `error.txt` there."""
    folder = Path(arguments[0])
    wanted = np.load(folder / "wanted.npz")
    try:
        renderer = import_module("data_gen.engines.renderer")
        height, width = wanted["size"].tolist()
        images = renderer.draw(BODIES[str(wanted["body"])], wanted["qpos"], height, width, wanted["paint"])
    except Exception as error:  # whatever the graphics library raises is to be told, not to be handled
        (folder / "error.txt").write_text(f"{type(error).__name__}: {first_line(str(error))}")
        return 1
    np.save(folder / "partial.npy", images)
    (folder / "partial.npy").rename(folder / "images.npy")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
