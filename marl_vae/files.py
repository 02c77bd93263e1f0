"""Small files that are whole or absent."""

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Write a file under another name, then give it its own."""
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    os.replace(partial, path)
