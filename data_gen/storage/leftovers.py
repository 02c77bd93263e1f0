"""Temporary names for work that appears under its own name when it is whole, and what killed writers left there."""

import os
import re
import shutil
import socket
import uuid
from pathlib import Path


def clear_leftovers(path: Path) -> None:
    """Remove temporary copies of `path` that a killed process of this machine left; those of live ones stay."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(.+)\.(\d+)\.[0-9a-f]{{8}}\.tmp")
    for left in sorted(path.parent.glob(f".{path.name}.*.tmp")):
        match = pattern.fullmatch(left.name)
        if match and match[1] == socket.gethostname() and not _alive(int(match[2])):
            shutil.rmtree(left, ignore_errors=True)


def temporary(path: Path) -> Path:
    """A name beside `path` for work that is to appear there when it is whole; `clear_leftovers` knows it."""
    return path.parent / f".{path.name}.{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
