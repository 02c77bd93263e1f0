"""Files of tables that are cut, empty or overwritten are refused by name."""

import gzip

import numpy as np
import pytest

from data_gen.trajectory import InputError
from tests.data_gen.ingest.test_table_dirt import HEADER, ROWS, csv, parquet_of, read, refused


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_damaged_files(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"")
    refused(path, "0 bytes")
    refused(tmp_path / "none.csv", "neither a file nor a folder")
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    refused(tmp_path / "t.xlsx", ".csv")
    whole = parquet_of(tmp_path).read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 3):
        (tmp_path / "cut.parquet").write_bytes(whole[:size])
        refused(tmp_path / "cut.parquet", "damaged")
    packed = gzip.compress((HEADER + "\n".join(ROWS)).encode())
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    refused(tmp_path / "cut.csv.gz")
    path = csv(tmp_path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"left", b"l\xe9ft"))
    refused(path, "'move'", "UTF-8 at line 2")
    path.write_bytes(path.read_bytes().replace(b"speed", b"sp\xe9ed"))
    refused(path, "utf-8")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_any_damage_is_refused_by_name_or_read(tmp_path, suffix):
    rng = np.random.default_rng(0)
    whole = (csv(tmp_path, ROWS) if suffix == "csv" else parquet_of(tmp_path)).read_bytes()
    path, refusals = tmp_path / f"damaged.{suffix}", 0
    for number in range(60):
        at, data = int(rng.integers(1, len(whole))), bytearray(whole)
        data[at : at + int(rng.integers(1, 30))] = [rng.bytes(1), b"", rng.bytes(20)][number % 3]
        path.write_bytes(data[:at] if number % 4 == 0 else data)
        try:
            read(path)
        except InputError as error:
            assert str(path) in str(error)
            refusals += 1
    assert refusals > 30
