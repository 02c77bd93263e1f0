"""Contact frames of capsules on a plane, which decide where the edges of MuJoCo's friction pyramid lie."""

import jax
import mujoco
import mujoco.mjx as mjx
import numpy as np
import pytest
from mujoco.mjx._src import collision_driver

from data_gen.engines.capsules import PAIR, capsules_as_in_mujoco

MODEL = """<mujoco><worldbody><geom type="plane" size="9 9 1" {plane}/>
<body><freejoint/><geom type="capsule" size=".1 .4" margin="1"/></body>
<body pos="0 3 0"><freejoint/><geom type="capsule" size=".1 .4" margin="1"/></body></worldbody></mujoco>"""


def leaning(degrees: float, around: float) -> np.ndarray:
    """A capsule's quaternion: so many degrees from upright, towards an angle around the vertical."""
    half = np.radians(degrees) / 2
    return np.array([np.cos(half), -np.sin(half) * np.sin(around), np.sin(half) * np.cos(around), 0.0])


@pytest.mark.parametrize("plane", ("", 'euler="20 0 0"'))
def test_frames_are_mujocos_however_a_capsule_leans(plane: str) -> None:
    model = mujoco.MjModel.from_xml_string(MODEL.format(plane=plane))
    device_model = mjx.put_model(model, impl="jax")

    @jax.jit
    @jax.vmap
    def frames_of(qpos):
        with capsules_as_in_mujoco(), jax.numpy_rank_promotion("allow"):
            data = mjx.make_data(device_model, impl="jax").replace(qpos=qpos)
            contact = mjx.collision(device_model, mjx.kinematics(device_model, data))._impl.contact
            return contact.dist, contact.frame, contact.geom

    rng, states = np.random.default_rng(0), []
    for degrees in (5, 25, 29, 31, 60, 90, 120, 149, 151, 175):
        first, second = leaning(degrees, rng.uniform(0, 6)), leaning(degrees + 2, rng.uniform(0, 6))
        states.append(np.concatenate([[0, 0, 0.5], first, [0, 3, 0.5], second]))
    if not plane:  # upright has no shadow
        states.append(np.concatenate([[0, 0, 0.5], leaning(0, 0), [0, 3, 0.5], leaning(180, 0)]))
    found, data = [np.asarray(part) for part in frames_of(np.array(states, np.float32))], mujoco.MjData(model)
    assert model.nq == 14
    for qpos, distances, frames, geoms in zip(states, *found, strict=True):
        data.qpos[:] = qpos
        mujoco.mj_forward(model, data)
        on_plane = [contact for contact in data.contact if contact.geom[0] == 0]
        assert len(on_plane) >= 2
        for contact in on_plane:
            same = [
                k
                for k in range(len(distances))
                if geoms[k].tolist() == contact.geom.tolist() and abs(distances[k] - contact.dist) < 1e-5
            ]
            assert same and any(abs(frames[k].ravel() - contact.frame).max() < 1e-4 for k in same), qpos


def test_mjx_is_left_as_it_was() -> None:
    theirs = collision_driver._COLLISION_FUNC[PAIR]
    with pytest.raises(KeyError), capsules_as_in_mujoco():
        assert collision_driver._COLLISION_FUNC[PAIR] is not theirs
        raise KeyError
    assert collision_driver._COLLISION_FUNC[PAIR] is theirs
