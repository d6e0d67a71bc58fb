"""Models in a memory probe: one that reads what is recalled, one that plays the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policies.memory.base import Reader

__all__ = ["with_models"]


def with_models(reader: str | None, user: str | None) -> tuple[str, Reader | None, dict[str, Any]]:
    """Models that take part: what they add to a memory's name, the reader, what a probe is given.

    UsageError when one of them is no model. None is loaded, and no server asked.
    """
    from policies import make_model
    from policies.memory.model_reader import make_reader

    names, reads, plays = "", None, {}
    if reader:
        name, reads = make_reader(reader)
        names = f" read by {name}"
    if user:
        name, complete = make_model(user)
        names, plays = f"{names} talking to {name}", {"complete": complete}
    return names, reads, plays
