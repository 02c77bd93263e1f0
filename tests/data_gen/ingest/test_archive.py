"""An .npz archive written by NumPy comes back as its arrays, cut by the mask; every fault names file and array."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from data_gen.ingest.readers.archive import ArchiveReader
from data_gen.trajectory import InputError

B, T, N, F, A = 4, 6, 3, 2, 5


def arrays(seed: int = 0, shape=(B, T, N), missing: float = 0.3, discrete: bool = False) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) >= missing
    mask[:, shape[1] // 2, 0] = True  # every episode has a step
    obs = rng.normal(size=(*shape, F)).astype(np.float32)
    obs[rng.random(obs.shape) < missing / 2] = np.nan
    actions = rng.integers(0, 4, shape) if discrete else rng.normal(size=(*shape, A))
    actions.reshape(-1)[0] = 3
    mask.reshape(-1)[0] = True
    return dict(
        obs=obs,
        actions=actions,
        mask=mask,
        rewards=rng.normal(size=shape).astype(np.float32),
        terminated=rng.random(shape[0]) < 0.5,
        group=np.array([f"team {b // 2}" for b in range(shape[0])]),
        label_map=rng.integers(-1, 3, shape[0]),
        label_role=np.where(rng.random((shape[0], shape[2])) < 0.5, "", "lead"),
        label_phase=rng.random((shape[0], shape[1])),
        label_busy=rng.random(shape) < 0.5,
    )


def save(folder: Path, packed: bool = False, **found: np.ndarray) -> Path:
    (np.savez_compressed if packed else np.savez)(folder / "a.npz", allow_pickle=True, **found)
    return folder / "a.npz"


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(6, 9), st.integers(1, 5)),
    missing=st.sampled_from([0.0, 0.4, 0.9]),
    discrete=st.booleans(),
    packed=st.booleans(),
    roles=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_round_trip(tmp_path, shape, missing, discrete, packed, roles, seed):
    found = arrays(seed, shape, missing, discrete)
    names = {"agents": np.array([f"role {n}" for n in range(shape[2])])} if roles else {}
    reader = ArchiveReader(save(tmp_path, packed, **found, **names), rate=2.0)
    assert reader.layout.action == (("discrete", 4) if discrete else ("continuous", A))
    assert reader.layout.features == ("obs_0", "obs_1")
    classes = {label.name: label.classes for label in reader.layout.labels}
    assert len(list(reader.recordings())) == shape[0]
    for b, one in enumerate(reader.recordings()):
        steps, agents = np.flatnonzero(found["mask"][b].any(1)), np.flatnonzero(found["mask"][b].any(0))
        agents = np.arange(shape[2]) if roles else agents
        assert one.agents == tuple(f"role {n}" if roles else str(n) for n in agents)
        assert one.time.tolist() == [t / 2 for t in range(steps[0], steps[-1] + 1)]
        assert (one.group, one.terminated) == (found["group"][b], found["terminated"][b])
        want = found["label_map"][b]
        assert one.labels["map"] == -1 if want < 0 else classes["map"][one.labels["map"]] == str(want)
        for i, t in enumerate(range(steps[0], steps[-1] + 1)):
            assert one.labels["phase"][i] == np.float32(found["label_phase"][b, t])
            for j, n in enumerate(agents):
                here = found["mask"][b, t, n]
                assert one.present[i, j] == here
                np.testing.assert_array_equal(one.features[i, j], found["obs"][b, t, n] if here else [np.nan] * F)
                gone = -1 if discrete else np.full(A, np.nan, np.float32)
                wanted = np.asarray(found["actions"][b, t, n], one.actions.dtype)
                np.testing.assert_array_equal(one.actions[i, j], wanted if here else gone)
                assert one.rewards[i, j] == (found["rewards"][b, t, n] if here else 0)
                busy = classes["busy"][one.labels["busy"][i, j]] if here else ""
                assert busy == (str(found["label_busy"][b, t, n]).lower() if here else "")
        for j, n in enumerate(agents):
            lead = found["label_role"][b, n] == "lead" and found["mask"][b, :, n].any()
            assert one.labels["role"][j] == (0 if lead else -1)


def test_what_is_not_there_is_not_made_up(tmp_path):
    found = {name: arrays()[name] for name in ("obs", "actions", "mask")}
    reader = ArchiveReader(save(tmp_path, **found, names=np.array(["x", "y"])))
    one = next(reader.recordings())
    assert (one.group, one.name, one.terminated, one.rewards.any(), dict(one.labels)) == ("0", "0", False, False, {})
    assert reader.layout.features == ("x", "y") and reader.layout.rate == 0 and one.time[1] == one.time[0] + 1


def test_team_rewards_and_small_whole_numbers(tmp_path):
    found = arrays(missing=0.0, discrete=True)
    found |= dict(rewards=np.arange(B * T).reshape(B, T), actions=found["actions"].astype(np.uint8))
    found["mask"][1, 2, 1] = False
    reader = ArchiveReader(save(tmp_path, **found, action_names=np.array(list("abcdef"))))
    one = list(reader.recordings())[1]
    assert one.rewards[2].tolist() == [8, 0, 8] and one.actions[2, 1] == -1 and one.actions.dtype == np.int32
    assert reader.layout.action == ("discrete", 6)


def wrong(name: str):
    """Arrays of which one is wrong, and what has to be said."""
    found, zeros = arrays(missing=0.0, discrete=name.startswith("choice")), np.zeros
    cases = {
        "no mask": (dict(mask=None), ["no array 'mask'"]),
        "unknown": (dict(observations=zeros(3)), ["'observations'", "Rename"]),
        "obs flat": (dict(obs=zeros((B, T, N))), ["'obs'", "[4, 6, 3]", "[B, T, N, F]"]),
        "obs complex": (dict(obs=zeros((B, T, N, F), complex)), ["'obs'", "complex128", "floats"]),
        "actions flat": (dict(actions=zeros((B, T, N))), ["'actions'", "[4, 6, 3, A]"]),
        "choices deep": (dict(actions=zeros((B, T, N, 1), int)), ["'actions'", "[4, 6, 3]"]),
        "mask of floats": (dict(mask=zeros((B, T, N))), ["'mask'", "float64", "truth values"]),
        "mask turned": (dict(mask=zeros((B, N, T), bool)), ["'mask'", "[4, 3, 6]", "[4, 6, 3]"]),
        "mask empty": (dict(mask=zeros((B, T, N), bool)), ["'mask'", "episode 0"]),
        "rewards": (dict(rewards=zeros((B, T + 1))), ["'rewards'", "[4, 7]", "[4, 6, 3] or [4, 6]"]),
        "group": (dict(group=zeros(B)), ["'group'", "float64"]),
        "label": (dict(label_map=zeros((T, B))), ["'label_map'", "[6, 4]"]),
        "objects": (dict(label_map=np.array([None] * B)), ["'label_map'", "pickle"]),
        "fortran": (dict(obs=np.asfortranarray(found["obs"])), ["'obs'", "Fortran"]),
        "names": (dict(names=np.array(["x", "y", "z"])), ["'names'", "[3]", "[2]"]),
        "names twice": (dict(names=np.array(["x", "x"])), ["'names'", "twice"]),
        "infinite": (dict(obs=np.where(found["obs"] > 1, np.inf, found["obs"])), ["'obs'", "inf", "episode"]),
        "too large": (dict(actions=np.full((B, T, N, A), 1e40)), ["'actions'", "1e+40", "episode 0"]),
        "choice below 0": (dict(actions=np.full((B, T, N), -1)), ["'actions'", "-1", "episode 0, step 0, agent 0"]),
        "choices too many": (dict(actions=np.full((B, T, N), 10**6)), ["'actions'", "1000000", "episode 0"]),
        "choice names": (dict(action_names=np.array(["a", "b", "c"])), ["'action_names'", "3 names", "4 choices"]),
        "no episodes": ({key: value[:0] for key, value in found.items()}, ["no episodes"]),
        "no agents": ({key: value[:, :, :0] for key, value in found.items() if value.ndim > 2}, ["[4, 6, 0"]),
    }
    changes, words = cases[name]
    return {key: value for key, value in {**found, **changes}.items() if value is not None}, words, list(cases)


@pytest.mark.parametrize("name", wrong("no mask")[2])
def test_what_is_wrong_is_named(tmp_path, name):
    found, words, _ = wrong(name)
    path = save(tmp_path, **found)
    with pytest.raises(InputError) as error:
        list(ArchiveReader(path).recordings())
    for word in (str(path), *words):
        assert word in str(error.value)


def test_as_many_steps_as_agents(tmp_path):
    found = arrays(shape=(2, 6, 6))
    with pytest.raises(InputError, match="as many steps as agents"):
        ArchiveReader(save(tmp_path, **found))
    found["label_phase"] = np.repeat(found["label_phase"][:, :, None], 6, 2)
    found["label_role"] = np.repeat(found["label_role"][:, None], 6, 1)
    scopes = {label.scope for label in ArchiveReader(save(tmp_path, **found)).layout.labels}
    assert scopes == {"recording", "frame and agent"}


@pytest.mark.parametrize("packed", [False, True])
def test_damaged_archives(tmp_path, packed):
    whole = save(tmp_path, packed, **arrays()).read_bytes()
    middle = whole.index(b"obs.npy") + 400
    flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
    for data in (b"", b"PK", whole[: len(whole) // 2], whole[:-5], flipped):
        (tmp_path / "b.npz").write_bytes(data)
        with pytest.raises(InputError, match="b.npz"):
            list(ArchiveReader(tmp_path / "b.npz").recordings())
    with pytest.raises(InputError, match="not a file"):
        ArchiveReader(tmp_path / "c.npz")
    with pytest.raises(InputError, match="rate"):
        ArchiveReader(tmp_path / "a.npz", rate=-1.0)


def test_an_array_longer_than_its_header(tmp_path):
    found, stream = arrays(), io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, dict(descr="|b1", fortran_order=False, shape=(B, T, N)))
    path = save(tmp_path, **{name: value for name, value in found.items() if name != "mask"})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("mask.npy", stream.getvalue() + found["mask"].tobytes() + b"1")
    with pytest.raises(InputError, match="'mask' is longer"):
        list(ArchiveReader(path).recordings())
