"""Recordings that are stored twice, found by what they hold, whatever they are called. T frames, N agents, W numbers.

Compared are places, features, actions and presence, agent by agent in any order; times, rewards, labels and names are
not. A part of one recording that begins elsewhere in another is not found.
"""

import hashlib
import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32

from data_gen.ingest.recording import Reader, Recording
from data_gen.ingest.tally import measured

START = 16  # frames; recordings that begin alike for so long are compared as far as the shorter one goes
SAME, BEGINNING = "the same as", "the beginning of"


class Copy(NamedTuple):
    """Recording `number` is `kind` (SAME, BEGINNING) recording `of`."""

    number: int
    of: int
    kind: str


class Found(NamedTuple):
    """Digests of the recordings so far: of the whole and of the start, by number, and their lengths."""

    whole: list[bytes]
    start: list[bytes]
    length: list[int]


def digest_of(recording: Recording, lengths: list[int]) -> list[bytes]:
    """A digest of the first so many frames, for each of the rising lengths; agents' order does not matter."""
    present = recording.present
    found: list[list[bytes]] = [[] for _ in lengths]
    for agent, own in enumerate(_bits(recording)):
        so_far, done = hashlib.sha256(), 0
        for place, length in enumerate(lengths):
            so_far.update(own[done:length].data)
            done = length
            if present[:length, agent].any():
                found[place].append(so_far.digest())
    return [hashlib.sha256(b"".join(sorted(one))).digest() for one in found]


def note(found: Found, recording: Recording) -> None:
    """Add a recording's digests."""
    length = len(recording.time)
    lengths = sorted({min(START, length), length})
    digests = digest_of(recording, lengths)
    found.whole.append(digests[-1] + length.to_bytes(8, "big"))
    found.start.append(digests[0])
    found.length.append(length)


def copies_in(found: Found, reader: Reader) -> list[Copy]:
    """Every copy: of equal recordings all but the first, and of those that begin alike the shorter ones.

    The source is read once more only where recordings of different lengths begin alike.
    """
    first: dict[bytes, int] = {}
    same = [Copy(k, of, SAME) for k, whole in enumerate(found.whole) if (of := first.setdefault(whole, k)) != k]
    doubled = {copy.number for copy in same}
    alike: dict[bytes, list[int]] = defaultdict(list)
    for k, start in enumerate(found.start):
        if found.length[k] >= START and k not in doubled:
            alike[start].append(k)
    suspects = [class_ for class_ in alike.values() if len(class_) > 1]
    return sorted([*same, *_beginnings(found, reader, suspects)]) if suspects else same


def _beginnings(found: Found, reader: Reader, suspects: list[list[int]]) -> list[Copy]:
    """Of those that begin alike, the ones that are all of another's beginning."""
    lengths = {k: sorted({found.length[other] for other in one}) for one in suspects for k in one}
    longest: dict[bytes, tuple[int, int]] = {}
    for k, recording in enumerate(reader.recordings()):
        own = [length for length in lengths.get(k, ()) if length < found.length[k]]
        for length, digest in zip(own, digest_of(recording, own), strict=True):
            key = digest + length.to_bytes(8, "big")
            longest[key] = max(longest.get(key, (0, 0)), (found.length[k], -k))
    hits = ((k, longest.get(found.whole[k])) for k in lengths)
    return [Copy(k, -hit[1], BEGINNING) for k, hit in hits if hit]


def _bits(recording: Recording) -> Int32[np.ndarray, "N T W"]:
    """What is compared, as integers in which equal numbers are equal bits; 0 where an agent is not there."""
    present, width = recording.present, math.prod(recording.actions.shape[2:])
    parts = [measured(recording), recording.actions.reshape(*present.shape, width)]
    bits = np.empty((*present.T.shape, 1 + sum(part.shape[2] for part in parts)), np.int32)
    bits[..., 0], end = present.T, 1
    for part in parts:
        start, end = end, end + part.shape[2]
        bits[..., start:end] = _canonical(part).swapaxes(0, 1)
    bits[~present.T] = 0
    return bits


def _canonical(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "f":
        return values
    positive = values + np.float32(0)  # of the two zeros
    positive[np.isnan(positive)] = np.nan
    return positive.view(np.int32)
