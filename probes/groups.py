"""What a data set's groups are, in words: the unit that is split by and redrawn."""

from typing import Any


def group_word(meta: dict[str, Any]) -> str:
    """`training seed` where a learner here made the episodes, else `group`: what that is, only the user knows."""
    return "training seed" if "learner" in meta else "group"
