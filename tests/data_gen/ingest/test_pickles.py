"""Whatever numpy pickles of plain data comes back, and a type that numpy would trust is refused."""

import io
import pickle

import numpy as np
import pytest

from data_gen.ingest.readers.pickles import load_plain
from data_gen.trajectory import InputError

PLAIN = {
    "fractions": np.arange(12.0).reshape(3, 4) / 7,
    "by columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "big endian": np.arange(6, dtype=">f4").reshape(2, 3),
    "whole numbers": np.array([[1, -2], [3, 4]], np.int16),
    "truth": np.array([True, False]),
    "text": np.array(["chases", "é"]),
    "nested": np.array([{"a": [1, 2.5, None, True, b"\xff", "ü"]}, (1, 2)], dtype=object),
    "a number": np.float32(1.5),
    "no dimension": np.array(3.0),
    "empty": np.zeros((0, 3)),
    "set": {1, 2},
}


def same(a, b) -> bool:
    if isinstance(a, np.ndarray):
        assert a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.shape == b.shape
        return (
            all(same(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True)) if a.dtype == object else (a == b).all()
        )
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_come_back(name: str, protocol: int) -> None:
    if name == "set" and protocol < 4:
        pytest.skip("protocols below 4 write a set as a call")
    found = load_plain(io.BytesIO(pickle.dumps(PLAIN[name], protocol)), "here")
    assert same(PLAIN[name], found)


def test_a_type_with_made_up_flags_is_only_its_kind() -> None:
    """numpy takes the flags of a pickled type as they stand, and a float that is said to be an object is a pointer."""
    content = pickle.dumps(np.arange(3.0), 2)
    flags = pickle.dumps(np.dtype("f8"), 2)
    assert b"K\x00t" in flags and content.count(b"K\x00t") >= 1
    found = load_plain(io.BytesIO(content.replace(b"K\x00t", b"K\x3ft")), "here")
    assert found.dtype == np.dtype("f8") and not found.dtype.hasobject and found.tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", [np.dtype([("a", "f8"), ("b", "i4")]), np.dtype("M8[s]"), np.dtype("V8")])
def test_other_types_are_refused(kind: np.dtype) -> None:
    with pytest.raises(InputError, match="here holds a pickle.*no plain data"):
        load_plain(io.BytesIO(pickle.dumps(np.zeros(2, kind))), "here")


def test_an_array_of_fewer_bytes_than_it_says_is_refused() -> None:
    content = pickle.dumps(np.arange(300.0), 4).replace((300).to_bytes(2, "little"), (301).to_bytes(2, "little"))
    with pytest.raises(InputError, match="here holds a pickle"):
        load_plain(io.BytesIO(content), "here")
