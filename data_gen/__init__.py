"""Trajectories: made here, taken from files, or recorded by `Recorder` from a user's own environment."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data_gen.recorder import Recorder

__all__ = ["Recorder"]


def __getattr__(name: str) -> Any:
    """`Recorder` is imported when it is asked for, since it needs much that other users of this package do not."""
    if name == "Recorder":
        from data_gen.recorder import Recorder

        return Recorder
    raise AttributeError(f"module 'data_gen' has no attribute {name!r}")
