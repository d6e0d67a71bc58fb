"""What is decided about a command or a measurement, and how it is put on record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench_tasks.vocabulary import ActionChunk

__all__ = ["Decision", "Intervention", "Refusal", "plain", "shown"]

MOST_SHOWN = 200
"""Characters of something that is not what it should be."""


@dataclass(frozen=True)
class Intervention:
    """What was done about a command or a measurement, and why; `command` are its actions."""

    action: str
    kind: str
    reason: str
    detail: dict[str, Any] = field(default_factory=dict)
    command: list[Any] | None = None

    def data(self) -> dict[str, Any]:
        """What its event holds: JSON without any number that JSON has not."""
        detail = {name: _number(value) for name, value in self.detail.items()}
        return {"what": self.kind, "reason": self.reason, **detail, "command": self.command}


@dataclass(frozen=True)
class Decision:
    """What to send (None: nothing) and what is to be put on record."""

    send: ActionChunk | None = None
    interventions: tuple[Intervention, ...] = ()


class Refusal(Exception):
    """The command must not be executed."""

    def __init__(self, kind: str, reason: str, action: str = "refused", **detail: Any) -> None:
        """As the intervention that it becomes."""
        super().__init__(reason)
        self.kind, self.reason, self.action, self.detail = kind, reason, action, detail

    def told(self, values: Any) -> Intervention:
        """The intervention, on a command of these values."""
        return Intervention(self.action, self.kind, self.reason, self.detail, plain(values))


def plain(values: Any) -> list[Any] | None:
    """Numbers as JSON can hold them: what is not finite as text."""
    if values is None:
        return None
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            return [shown(values)]
        array = array.astype(np.float64)
    except Exception:  # whatever it is that only looks like an array
        return [shown(values)]
    flat = [_number(v) for v in array.ravel().tolist()]
    if array.ndim != 2 or not array.size:
        return flat
    width = array.shape[1]
    return [flat[k : k + width] for k in range(0, len(flat), width)]


def shown(value: Any) -> str:
    """What it is in one line, short enough to be told."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} that cannot be shown"
    line = "".join(c if c.isprintable() else " " for c in text[:MOST_SHOWN])
    return line if len(text) <= MOST_SHOWN else f"{line}..."


def _number(value: Any) -> Any:
    """The same, or its text if it is a number that JSON has not."""
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value
