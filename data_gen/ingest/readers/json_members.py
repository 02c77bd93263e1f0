"""The members of a large JSON object of objects, found in one pass and parsed one at a time."""

import json
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from data_gen.trajectory import InputError

# Texts, whose braces do not count, and the braces; numbers, which such files are mostly made of, are passed over.
MARKS = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}]', re.DOTALL)


class Member(NamedTuple):
    """The value at [outer][inner]: the bytes that hold it, the texts in it, and the bytes of the objects in it."""

    outer: str
    inner: str
    span: slice
    texts: frozenset[str]
    objects: dict[str, slice]


def find_members(file: Path) -> list[Member]:
    """Every object that stands two levels deep. Raises InputError where the braces do not close.

    Values are not looked at, so that a file of any size has one pass without being held in memory.
    """
    found: list[Member] = []
    depth, keys, starts = 0, [""] * 5, [0] * 5
    texts, objects = set[str](), dict[str, slice]()
    with _mapped(file) as content:
        for mark in MARKS.finditer(content):
            token = mark[0]
            if token == b"{":
                depth += 1
                starts[min(depth, 4)] = mark.start() if depth <= 4 else starts[4]
            elif token == b"}":
                span = slice(starts[min(depth, 4)], mark.end())
                if depth == 4:
                    objects[keys[3]] = span
                elif depth == 3:
                    found.append(Member(keys[1], keys[2], span, frozenset(texts), objects))
                    texts, objects = set[str](), dict[str, slice]()
                depth -= 1
            elif 1 <= depth <= 3:
                keys[depth] = _text(token, file)  # the last text before a brace is its key
                if depth == 3:
                    texts.add(keys[3])
    if depth or not found:
        raise InputError(
            f"{file} is no JSON object of objects of objects, or ends early: {len(found)} entries are whole, {depth} "
            f"braces stay open at its end. It is another format, or has to be fetched again."
        )
    return found


def read_span(file: Path, span: slice, where: str) -> Any:
    """The value that some bytes of the file hold; InputError where they are no JSON."""
    with _mapped(file) as content:
        text = content[span]
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: this is no JSON ({error}).") from None


def _text(token: bytes, file: Path) -> str:
    try:
        return json.loads(token)
    except ValueError as error:
        raise InputError(f"{file} is no JSON: {token[:40]!r} is no text ({error}).") from None


@contextmanager
def _mapped(file: Path) -> Iterator[mmap.mmap]:
    try:
        with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            yield content
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file} cannot be read as JSON ({error}).") from None
