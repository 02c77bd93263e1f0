"""Kept results: by content, whole or absent, and used again only where nothing changed."""

import numpy as np
import pytest

import probes.jobs
from probes.jobs import call_all, content_name, read, write


def _double(x: np.ndarray) -> np.ndarray:
    return 2 * x


def _count(calls: dict, folder, monkeypatch) -> tuple[dict, int]:
    """Results, and how many were written anew."""
    written = []
    with monkeypatch.context() as patch:
        patch.setattr(probes.jobs, "write", lambda path, result: (written.append(path), write(path, result)))
        return call_all(_double, calls, jobs=1, folder=folder), len(written)


def test_a_repeat_computes_only_what_changed(tmp_path, monkeypatch):
    calls = {i: (np.arange(4.0) + i,) for i in range(5)}
    first, n = _count(calls, tmp_path, monkeypatch)
    assert n == 5
    calls[3] = (np.arange(4.0) - 1,)
    second, n = _count(calls, tmp_path, monkeypatch)
    assert n == 1 and second.keys() == first.keys()
    for i in range(5):
        np.testing.assert_array_equal(second[i], 2 * calls[i][0])
    monkeypatch.setattr(probes.jobs, "_source", lambda: "another source")
    assert _count(calls, tmp_path, monkeypatch)[1] == 5
    assert _count(calls, None, monkeypatch)[1] == 0


def test_a_flipped_bit_is_no_result(tmp_path):
    write(tmp_path / "kept", {"value": 0.25})
    whole = (tmp_path / "kept").read_bytes()
    for place in range(len(whole)):
        (tmp_path / "kept").write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert read(tmp_path / "kept") is None
    (tmp_path / "kept").write_bytes(whole)
    assert read(tmp_path / "kept") == ({"value": 0.25},)


def test_names_tell_content_and_type_apart():
    x = np.arange(6.0)
    names = {content_name(_double, (part,)) for part in (x, x.reshape(2, 3), x.astype(np.float32), x[::-1], x + 1e-15)}
    assert len(names) == 5 and content_name(_double, (x.copy(),)) in names


def test_what_a_killed_run_left_half_is_computed_again(tmp_path, monkeypatch):
    calls = {0: (np.arange(4.0),), 1: (np.arange(5.0),)}
    call_all(_double, calls, jobs=1, folder=tmp_path)
    whole = sorted(tmp_path.iterdir())
    assert len(whole) == 2 and not list(tmp_path.glob("*.tmp"))
    whole[0].write_bytes(whole[0].read_bytes()[:-7])
    whole[1].rename(whole[1].with_suffix(".77.tmp"))
    assert read(whole[0]) is None and read(whole[1]) is None
    found, n = _count(calls, tmp_path, monkeypatch)
    assert n == 2
    np.testing.assert_array_equal(found[1], 2 * np.arange(5.0))


def test_a_write_that_is_cut_off_leaves_no_entry(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write(tmp_path / "a.pkl", 1)
    assert read(tmp_path / "a.pkl") is None


def test_progress_counts_kept_results_too(tmp_path):
    seen = []
    calls = {i: (np.ones(i),) for i in range(3)}
    call_all(_double, calls, jobs=1, folder=tmp_path)
    call_all(_double, calls | {3: (np.ones(9),)}, jobs=1, folder=tmp_path, progress=lambda *now: seen.append(now))
    assert seen == [(i + 1, 4) for i in range(4)]
