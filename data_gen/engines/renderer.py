"""Pictures of a body by MuJoCo's own renderer. Runs in a process of its own, which `film` starts.

Importing mujoco chooses the graphics library by MUJOCO_GL, and a broken one may end the process.
"""

# pyright: reportAttributeAccessIssue=false
# mujoco is a compiled module without stubs.

from typing import NamedTuple

import mujoco
import numpy as np
from jaxtyping import Float, UInt8

from data_gen.engines.bodies import Body
from data_gen.engines.mjcf import load_model


class View(NamedTuple):
    """A camera at the body's right side that looks `elevation` degrees down to a point `height` metres up."""

    distance: float
    height: float
    elevation: float


# From Gymnasium's side (its camera "track"), but nearer; Ant is seen from further above, or legs hide legs.
VIEWS = {
    "HalfCheetah": View(distance=2.5, height=0.6, elevation=-12.0),
    "Ant": View(distance=3.3, height=0.45, elevation=-25.0),
    "Hopper": View(distance=2.2, height=0.75, elevation=-12.0),
    "Walker2d": View(distance=2.2, height=0.75, elevation=-12.0),
    "Humanoid": View(distance=2.4, height=0.8, elevation=-12.0),
}
PALE, REFLECTANCE, AMBIENT, DIFFUSE = 0.3, 0.1, 0.5, 0.5
# Metres: shadows reach this far from the start, and the light hangs this high. With the MJCF's they leave black marks.
SHADOW, LIGHT = 2.0, 6.0


def draw(
    body: Body,
    qpos: Float[np.ndarray, "K F Nq"],
    height: int,
    width: int,
    paint: Float[np.ndarray, "Nu 3"] | Float[np.ndarray, "0 3"],
) -> UInt8[np.ndarray, "K F H W 3"]:
    """What `film` returns."""
    model = load_model(body)
    paint_limbs(model, paint)
    soften(model)
    model.vis.global_.offheight, model.vis.global_.offwidth = height, width
    tile = tile_of_floor(model)
    data, view = mujoco.MjData(model), VIEWS[body.name]
    camera = mujoco.MjvCamera()
    camera.distance, camera.azimuth, camera.elevation = view.distance, 90.0, view.elevation
    images = np.empty((*qpos.shape[:2], height, width, 3), np.uint8)
    with mujoco.Renderer(model, height, width) as renderer:
        for place in np.ndindex(*qpos.shape[:2]):
            data.qpos[:] = qpos[place]
            # The floor of the MJCF ends after 20 or 40 metres. Its pattern repeats, so whole tiles can be taken off.
            data.qpos[: body.skipped] -= (tile * np.round(qpos[place][:2] / tile))[: body.skipped]
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_camlight(model, data)
            camera.lookat[:] = (*data.subtree_com[0, :2], view.height)
            renderer.update_scene(data, camera)
            images[place] = renderer.render()
    return images


def paint_limbs(model: mujoco.MjModel, paint: Float[np.ndarray, "A 3"]) -> None:
    """The geoms of the link that each actuator moves, and of what is fixed to it, get its colour and no texture."""
    for actuator, colour in enumerate(paint):
        link = model.jnt_bodyid[model.actuator_trnid[actuator, 0]]
        geoms = model.body_weldid[model.geom_bodyid] == link
        model.geom_matid[geoms] = -1
        model.geom_rgba[geoms] = (*colour, 1.0)


def soften(model: mujoco.MjModel) -> None:
    """Floor and sky pale, light from all sides: in a small picture black, white and hard shadows drown the limbs."""
    model.vis.headlight.ambient, model.vis.headlight.diffuse, model.light_diffuse[:] = AMBIENT, DIFFUSE, DIFFUSE
    model.light_pos[:, 2], model.vis.map.shadowclip = LIGHT, SHADOW / model.stat.extent
    model.vis.quality.shadowsize = 1024  # pixels; the default of 4096 is slower where a CPU draws
    floor = model.geom_matid[floor_of(model)]
    model.mat_reflectance[floor] = REFLECTANCE
    skies = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
    for texture in (*skies, *model.mat_texid[floor][model.mat_texid[floor] >= 0]):
        size = model.tex_width[texture] * model.tex_height[texture] * model.tex_nchannel[texture]
        pixels = model.tex_data[model.tex_adr[texture] :][:size]
        pixels[:] = 255 - PALE * (255.0 - pixels)


def floor_of(model: mujoco.MjModel) -> int:
    """The geom that is a plane."""
    return int(np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)[0])


def tile_of_floor(model: mujoco.MjModel) -> Float[np.ndarray, " 2"]:
    """Metres along x and y after which the floor's pattern repeats."""
    floor = floor_of(model)
    return 2 * model.geom_size[floor, :2] / model.mat_texrepeat[model.geom_matid[floor]]
