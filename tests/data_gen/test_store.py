"""The store gives back what it was given, or says which file is wrong."""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray

from data_gen.storage import store
from data_gen.storage.store import AlreadyThere, read_group, read_manifest, write_group
from data_gen.trajectory import InputError


def some_arrays() -> store.Arrays:
    rng = np.random.default_rng(0)
    return {
        "values": (("row", "column"), rng.normal(size=(5, 3)).astype(np.float32)),
        "zeros": (("row",), np.zeros(5, np.int32)),
        "flags": (("row",), np.array([True, False, True, True, False])),
        "empty": (("nobody", "column"), np.zeros((0, 3), np.float32)),
        "number": ((), np.array(2.5)),
        "big_endian": (("row",), np.arange(5, dtype=">i4")),
        "deep/down/here": (("place", "column"), rng.normal(size=(2, 3))),
    }


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "a" / "store"
    write_group(path, some_arrays(), {"names": ["x", "y"], "nested": {"k": 1.5}})
    return path


def chunk(path: Path, name: str) -> Path:
    return next(file for file in sorted((path / "arrays.zarr" / name / "c").rglob("*")) if file.is_file())


def temporaries(path: Path) -> list[Path]:
    return list(path.parent.glob(".*"))


def test_gives_back_what_was_written(stored: Path):
    arrays, attrs = read_group(stored)
    written = {name: values for name, (_, values) in some_arrays().items()}
    deep = written.pop("deep/down/here")
    assert arrays.keys() == written.keys()
    for name, values in written.items():
        np.testing.assert_array_equal(arrays[name], values)
        assert arrays[name].dtype == values.dtype.newbyteorder("=")
    assert attrs == {"names": ["x", "y"], "nested": {"k": 1.5}}
    below, _ = read_group(stored, "deep/down")
    np.testing.assert_array_equal(below["here"], deep)
    assert temporaries(stored) == []


def test_opens_with_xarray(stored: Path):
    with xarray.open_zarr(stored / "arrays.zarr", consolidated=False) as opened:
        assert dict(opened.sizes) == {"row": 5, "column": 3, "nobody": 0}
        assert opened.attrs["names"] == ["x", "y"]
        np.testing.assert_array_equal(opened["values"].values, some_arrays()["values"][1])


def test_manifest_holds_the_checksum_of_every_file(stored: Path):
    files = {p for p in (stored / "arrays.zarr").rglob("*") if p.is_file()}
    shas = {str(p.relative_to(stored / "arrays.zarr")): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    assert read_manifest(stored)["files"] == shas
    assert read_manifest(stored)["arrays"]["values"] == {"dims": ["row", "column"], "shape": [5, 3], "dtype": "float32"}


def test_large_arrays_are_cut_along_the_first_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(store, "CHUNK_BYTES", 100)
    values = np.arange(70, dtype=np.float64).reshape(10, 7)
    write_group(tmp_path / "s", {"values": (("row", "column"), values)}, {})
    names = [name for name in read_manifest(tmp_path / "s")["files"] if "/c/" in name]
    assert sorted(names) == sorted(f"values/c/{k}/0" for k in range(10))
    np.testing.assert_array_equal(read_group(tmp_path / "s")[0]["values"], values)


@pytest.mark.parametrize("name", ["values", "zeros", "deep/down/here"])
def test_a_deleted_chunk_is_named(stored: Path, name: str):
    gone = chunk(stored, name)
    gone.unlink()
    with pytest.raises(InputError, match=f"{gone} is missing \\(array '{name}'\\); it would read as zeros") as error:
        read_group(stored)
    assert "\n" not in str(error.value) and f"Remove {stored}" in str(error.value)


def test_an_altered_chunk_is_named(stored: Path):
    file = chunk(stored, "values")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match=f"{file} was altered .*array 'values'"):
        read_group(stored)


def test_an_extra_file_is_named(stored: Path):
    (stored / "arrays.zarr" / "zeros" / "c" / "1").write_bytes(b"0")
    with pytest.raises(InputError, match="zeros/c/1 is not in the manifest \\(array 'zeros'\\)"):
        read_group(stored)


def test_a_missing_array_directory_is_named(stored: Path):
    (stored / "arrays.zarr").rename(stored / "elsewhere")
    with pytest.raises(InputError, match="is missing"):
        read_group(stored)


def test_a_missing_path_or_manifest(stored: Path, tmp_path: Path):
    with pytest.raises(InputError, match="nowhere does not exist"):
        read_group(tmp_path / "nowhere")
    (stored / "manifest.json").unlink()
    with pytest.raises(InputError, match="manifest.json is missing"):
        read_group(stored)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{not json", "not readable as JSON"),
        (b"\xff\xfe", "not readable as JSON"),
        (b"", "not readable as JSON"),
        (b"[1]", "names no schema version"),
        (b'{"schema": 99}', "schema version 99; this version of marl-vae reads 1"),
        (b'{"schema": 1}', "was altered after it was written"),
    ],
)
def test_a_garbled_manifest(stored: Path, content: bytes, message: str):
    (stored / "manifest.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_group(stored)


def test_an_attribute_changed_by_hand_is_seen(stored: Path):
    manifest = json.loads((stored / "manifest.json").read_text())
    manifest["attrs"]["names"] = ["y", "x"]
    (stored / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="was altered after it was written"):
        read_group(stored)


def test_nothing_is_overwritten_unless_asked(stored: Path):
    other: store.Arrays = {"other": (("row",), np.arange(2))}
    with pytest.raises(AlreadyThere, match="already exists"):
        write_group(stored, other, {})
    assert "values" in read_group(stored)[0]
    write_group(stored, other, {}, replace=True)
    assert list(read_group(stored)[0]) == ["other"]
    assert temporaries(stored) == []


def test_who_comes_second_in_a_race_leaves_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, write_manifest = tmp_path / "s", store._write_manifest

    def overtaken(*args):
        write_manifest(*args)
        monkeypatch.setattr(store, "_write_manifest", write_manifest)
        write_group(path, {"first": (("row",), np.arange(3))}, {})

    monkeypatch.setattr(store, "_write_manifest", overtaken)
    with pytest.raises(AlreadyThere):
        write_group(path, some_arrays(), {})
    assert list(read_group(path)[0]) == ["first"]
    assert temporaries(path) == []


@pytest.mark.parametrize(
    ("dims", "values", "message"),
    [
        (("row",), np.array(["a", "b"]), "dtype <U1"),
        (("row",), np.array([None]), "dtype object"),
        (("row", "column"), np.zeros(3), "1 axes but 2 dimension names"),
    ],
)
def test_what_cannot_be_stored(tmp_path: Path, dims: tuple[str, ...], values: np.ndarray, message: str):
    with pytest.raises(InputError, match=message):
        write_group(tmp_path / "s", {"x": (dims, values)}, {})
    with pytest.raises(InputError, match=f"^{tmp_path / 's'}: array 'x'"):
        write_group(tmp_path / "s", {"x": (dims, values)}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_dimension_has_one_size_in_a_group(tmp_path: Path):
    arrays: store.Arrays = {"a": (("row",), np.zeros(2)), "g/b": (("row",), np.zeros(3))}
    write_group(tmp_path / "s", arrays, {})
    with pytest.raises(InputError, match="dimension 'row' has size 3 in array 'b' but 2 in 'a'"):
        write_group(tmp_path / "t", {**arrays, "b": (("row",), np.zeros(3))}, {})


@pytest.mark.parametrize("attrs", [{"x": np.zeros(2)}, {"x": float("nan")}])
def test_attributes_must_be_json(tmp_path: Path, attrs: dict):
    with pytest.raises(InputError, match="attributes are not JSON"):
        write_group(tmp_path / "s", some_arrays(), attrs)


WRITER = """
import sys, time
from pathlib import Path
import numpy as np
from data_gen.storage import store
store._sync_tree = lambda root: (print("ready", flush=True), time.sleep(60))
store.write_group(Path(sys.argv[1]), {"x": (("row",), np.arange(4))}, {})
"""


def test_a_killed_writer_leaves_nothing_a_reader_takes_for_data(tmp_path: Path):
    path = tmp_path / "s"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        (left,) = temporaries(path)
        store.clear_leftovers(path)
        assert left.exists(), "a live writer's copy must stay"
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
    with pytest.raises(InputError, match="does not exist"):
        read_group(path)
    write_group(path, {"x": (("row",), np.arange(7))}, {})
    assert not left.exists() and temporaries(path) == []
    np.testing.assert_array_equal(read_group(path)[0]["x"], np.arange(7))


def test_leftovers_of_other_machines_and_other_names_stay(tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    host, dead = socket.gethostname(), process.pid
    names = [
        f".s.elsewhere.{dead}.0123abcd.tmp",
        f".s2.{host}.{dead}.0123abcd.tmp",
        f".s.{host}.{os.getpid()}.0123abcd.tmp",
    ]
    for name in [*names, f".s.{host}.{dead}.0123abcd.tmp"]:
        (tmp_path / name).mkdir()
    store.clear_leftovers(tmp_path / "s")
    assert {p.name for p in tmp_path.iterdir()} == set(names)
