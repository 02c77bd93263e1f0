"""Arrays inside an HTML page: little-endian numbers in base64, real numbers as 16-bit codes with a scale."""

import base64
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Num, UInt16

ABSENT, TOP = 65535, 65534  # the code of no value, and that of the highest value
TYPES = {"u2": "<u2", "i4": "<i4", "f4": "<f4"}


class Quantised(NamedTuple):
    """`value = low + code / 65534 · (high − low)` of each column, the last axis; 65535 stands for NaN."""

    codes: UInt16[np.ndarray, "... C"]
    low: Float[np.ndarray, " C"]
    high: Float[np.ndarray, " C"]


def quantise(values: Float[np.ndarray, "... C"]) -> Quantised:
    """Each column on a scale from its lowest to its highest value; off by at most (high − low)/131068."""
    flat = values.reshape(-1, values.shape[-1])
    known = np.isfinite(flat)
    low = np.where(known, flat, np.inf).min(0, initial=np.inf).astype(np.float64)
    high = np.where(known, flat, -np.inf).max(0, initial=-np.inf).astype(np.float64)
    empty = ~known.any(0)
    low, high = np.where(empty, 0, low), np.where(empty, 0, high)
    share = (np.where(known, flat, low) - low) / np.where(high > low, high - low, 1)
    codes = np.where(known, np.round(share * TOP), ABSENT).astype(np.uint16)
    return Quantised(codes=codes.reshape(values.shape), low=low, high=high)


class Store:
    """Collects what a page carries as script elements that no browser runs."""

    def __init__(self) -> None:
        self._elements: list[str] = []

    def put(self, values: Num[np.ndarray, "..."], kind: str) -> dict[str, Any]:
        """Keep an array; the reference by which the page finds it."""
        name = f"array-{len(self._elements)}"
        self.put_bytes(name, values.astype(TYPES[kind]).tobytes())
        return {"id": name, "type": kind}

    def put_bytes(self, name: str, content: bytes) -> None:
        """Keep bytes under a name."""
        text = base64.b64encode(content).decode()
        self._elements.append(f'<script type="application/octet-stream" id="{name}">{text}</script>')

    def size(self) -> int:
        """Bytes of all that is kept."""
        return sum(map(len, self._elements))

    def html(self) -> str:
        """The elements."""
        return "\n".join(self._elements)
