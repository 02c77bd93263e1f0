"""What lies in a W&B run's offline file, read without W&B's own reader: a log of protobuf records.

The file is a LevelDB log (doc/log_format.md of LevelDB) with a header of 7 bytes: blocks of 32 KiB, in each records of
checksum (4 bytes), length (2), kind (1: whole, 2: first, 3: middle, 4: last part) and content. The last bytes of a
block that hold no header are padding.
"""

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wandb.proto import wandb_internal_pb2

BLOCK, HEADER = 32768, struct.Struct("<IHB")
WHOLE, LAST = 1, 4
PATIENCE = 10  # seconds


class Offline(NamedTuple):
    """A session: the run's name, group and id, its config, the rows of its history, its summary and artifacts.

    `folder` holds the media that history and summary name by a path; `artifacts` are records by name, `ended` is the
    exit code, None where the file breaks off.
    """

    run_id: str
    name: str
    group: str
    config: dict[str, Any]
    history: list[dict[str, Any]]
    summary: dict[str, Any]
    artifacts: dict[str, Any]
    folder: Path
    ended: int | None


def sessions_of(run: Path) -> list[Offline]:
    """The sessions of a run's folder, the oldest first.

    W&B's service may close a file a moment after `finish` has returned: one without an end is read again.
    """
    paths, until = sorted(run.glob("wandb/offline-run-*/*.wandb")), time.monotonic() + PATIENCE
    found = [read_offline(path) for path in paths]
    while any(one.ended is None for one in found) and time.monotonic() < until:
        time.sleep(0.1)
        found = [read_offline(path) for path in paths]
    return found


def read_offline(path: Path) -> Offline:
    """One session from its file."""
    found = Offline("", "", "", {}, [], {}, {}, path.parent / "files", None)
    for record in _records(path.read_bytes()):
        kind = record.WhichOneof("record_type")
        content = getattr(record, kind)
        if kind == "run":
            config = {item.key: json.loads(item.value_json) for item in content.config.update}
            found = found._replace(
                run_id=content.run_id, name=content.display_name, group=content.run_group, config=found.config | config
            )
        elif kind == "history":
            found.history.append(_nested(content.item))
        elif kind == "summary":
            _merge(found.summary, content)
        elif kind == "artifact":
            found.artifacts[content.name] = content
        elif kind == "exit":
            found = found._replace(ended=content.exit_code)
    return found


def _records(data: bytes) -> Iterator[wandb_internal_pb2.Record]:
    assert data[:4] == b":W&B"
    place, parts = 7, b""
    while place + HEADER.size <= len(data):
        left = BLOCK - place % BLOCK
        if left < HEADER.size:
            place += left
            continue
        _, length, kind = HEADER.unpack_from(data, place)
        parts += data[place + HEADER.size : place + HEADER.size + length]
        place += HEADER.size + length
        if kind in (WHOLE, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


def _nested(items: Any) -> dict[str, Any]:
    """Items whose keys are paths, or single names, as nested dictionaries."""
    found: dict[str, Any] = {}
    for item in items:
        *parents, last = item.nested_key or [item.key]
        inner = found
        for name in parents:
            inner = inner.setdefault(name, {})
        inner[last] = json.loads(item.value_json)
    return found


def _merge(summary: dict[str, Any], content: Any) -> None:
    """An update of one key replaces it whole, its parts after one another."""
    new = _nested(content.update)
    for name, value in new.items():
        both = isinstance(value, dict) and isinstance(summary.get(name), dict)
        summary[name] = summary[name] | value if both else value
    for item in content.remove:
        summary.pop(item.key or item.nested_key[0], None)
