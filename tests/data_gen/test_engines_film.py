"""Pictures show the body where its joints put it; where nothing can be drawn, one sentence says why."""

import os
import subprocess
import sys

import numpy as np
import pytest

from data_gen.engines import film as film_module
from data_gen.engines.bodies import BODIES
from data_gen.engines.film import NoRendering, film
from data_gen.trajectory import InputError

SIZE = (60, 80)
# Standing over its start: height, and where a body moves freely also place and quaternion.
STANDING = {
    "HalfCheetah": (0, 0),
    "Ant": (0, 0, 0.75, 1, 0, 0, 0),
    "Hopper": (0, 1.25),
    "Walker2d": (0, 1.25),
    "Humanoid": (0, 0, 1.4, 1, 0, 0, 0),
}


def standing(name: str, n_frames: int) -> np.ndarray:
    qpos = np.zeros((1, n_frames, BODIES[name].nq))
    qpos[..., : len(STANDING[name])] = STANDING[name]
    return qpos


@pytest.fixture(scope="module")
def drawing() -> str:
    """A backend that works; skips where no graphics library works; whether one does is asked without our code."""
    code = "import mujoco; mujoco.Renderer(mujoco.MjModel.from_xml_string('<mujoco/>'), 8, 8)"
    backends = [os.environ["MUJOCO_GL"]] if os.environ.get("MUJOCO_GL") else film_module.BACKENDS
    for backend in backends:
        env = {**os.environ, "MUJOCO_GL": backend}
        if subprocess.run([sys.executable, "-c", code], env=env, capture_output=True).returncode == 0:
            return backend
    pytest.skip(f"no offscreen rendering here with {', '.join(backends)}")


def different(a: np.ndarray, b: np.ndarray) -> float:
    """Share of pixels that differ visibly."""
    return float((abs(a.astype(int) - b.astype(int)).max(-1) > 24).mean())


@pytest.mark.parametrize("name", BODIES)
def test_the_body_is_seen_where_its_joints_put_it(drawing: str, name: str) -> None:
    qpos = np.concatenate([standing(name, 4), standing(name, 4)])
    qpos[0, 1, -1] += 1.0  # a joint of the last limb
    tile = 80 / 60 if name in ("HalfCheetah", "Ant", "Walker2d") else 40 / 60
    qpos[0, 2, 0] += 75 * tile  # 50 or 100 m on, a whole number of the floor's tiles
    qpos[0, 3, 0] += 75.25 * tile
    qpos[1, 1, -1] += 1.0
    images = film(BODIES[name], qpos, *SIZE)
    assert images.shape == (2, 4, *SIZE, 3) and images.dtype == np.uint8
    start, bent, far, between = images[0]
    assert len(np.unique(start.reshape(-1, 3), axis=0)) > 50
    assert different(start, bent) > 0.003
    assert different(start, far) == 0, "the camera goes along, and the floor is there too"
    assert different(start, between) > 0.05, "only the floor has moved"
    middle = np.s_[8:30, 36:44]  # the body is in the middle, in front of sky or far floor
    assert different(start[middle], between[middle]) < 0.3
    np.testing.assert_array_equal(images[1], images[0][[0, 1, 0, 0]])


def test_what_rises_is_seen_to_rise(drawing: str) -> None:
    qpos = standing("Hopper", 2)
    qpos[0, 1, 1] += 0.2
    paint = np.tile([[1.0, 0.0, 0.0]], (3, 1))
    low, high = film(BODIES["Hopper"], qpos, *SIZE, paint)[0]
    rows = [np.nonzero(red(image))[0].mean() for image in (low, high)]
    assert rows[1] < rows[0] - 3, "the camera stays at its height"


def red(image: np.ndarray) -> np.ndarray:
    r, g, b = np.moveaxis(image.astype(int), -1, 0)
    return r - np.maximum(g, b) > 70


def test_limbs_have_the_colours_of_those_who_drive_them(drawing: str) -> None:
    back = np.zeros((6, 3))
    back[:3, 0] = 1  # actuators 0 to 2: back thigh, shin and foot
    back[3:, 2] = 1
    image = film(BODIES["HalfCheetah"], standing("HalfCheetah", 1), *SIZE, back)[0, 0]
    seen_red = np.nonzero(red(image))[1]
    seen_blue = np.nonzero(red(image[..., ::-1]))[1]
    assert len(seen_red) > 20 and len(seen_blue) > 20
    assert seen_red.max() < SIZE[1] / 2 < seen_blue.min(), "x grows to the right, and the cheetah looks that way"


def test_positions_of_another_body_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(1, 2, 6\) .* HalfCheetah needs \[episodes, frames, 9\]"):
        film(BODIES["HalfCheetah"], standing("Hopper", 2), *SIZE)
    qpos = standing("Hopper", 2)
    qpos[0, 1, 3] = np.nan
    with pytest.raises(InputError, match="1 values that are not finite"):
        film(BODIES["Hopper"], qpos, *SIZE)


def sentence(monkeypatch: pytest.MonkeyPatch, code: str = "") -> str:
    """What NoRendering says, where `code` stands for the process that draws."""
    if code:
        monkeypatch.setattr(film_module, "COMMAND", (sys.executable, "-c", code))
    with pytest.raises(NoRendering) as caught:
        film(BODIES["Hopper"], standing("Hopper", 1), *SIZE)
    said = str(caught.value)
    assert "\n" not in said and said.count(". ") == 0 and said.endswith("."), "one sentence"
    return said


def test_a_backend_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    said = sentence(monkeypatch)
    assert "(nonsense: RuntimeError: invalid value for environment variable MUJOCO_GL: nonsense)" in said
    assert "Debian: libegl1" in said and "MUJOCO_GL" in said


@pytest.mark.skipif(sys.platform == "darwin", reason="one backend there")
def test_every_backend_is_tried_and_a_crash_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    code = (
        "import os, signal, sys\n"
        "if os.environ['MUJOCO_GL'] == 'egl': os.kill(os.getpid(), signal.SIGSEGV)\n"
        "sys.exit('first words\\nlast words')"
    )
    assert "(egl: the process was ended by SIGSEGV; osmesa: last words)" in sentence(monkeypatch, code)
    assert "(egl: the process ended with code 3; osmesa: " in sentence(monkeypatch, "import os; os._exit(3)")
    monkeypatch.setattr(film_module, "LIMIT", 0.2)
    assert "(egl: it was stopped after 0.2 seconds; osm" in sentence(monkeypatch, "import time; time.sleep(60)")


def test_the_second_backend_is_used_where_the_first_crashes(drawing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(film_module, "BACKENDS", ("nonsense", drawing))
    assert film(BODIES["Hopper"], standing("Hopper", 1), *SIZE).std() > 5


@pytest.mark.parametrize("package", ("mujoco", "gymnasium"))
def test_without_the_package(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert f"the package '{package}' is not installed here; python -m pip install -c constraints.txt" in sentence(
        monkeypatch
    )
