"""Small files that are whole or absent."""

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file under another name, of this process alone, then give it its own."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text)
    os.replace(partial, path)
