"""What a training keeps to go on from after a stop: complete on the disk, or not there at all."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from bench_tasks.errors import UsageError
from bench_tasks.manifest import replacing

__all__ = ["keep", "kept"]

_BROKEN = (
    OSError, EOFError, RuntimeError, LookupError, TypeError, ValueError, AttributeError,
    UnpicklingError,
)  # fmt: skip
"""What torch raises for files, and modules for states, that are not what `keep` wrote."""


def keep(file: Path, content: dict[str, Any]) -> None:
    """Save so that the file is complete or not there at all."""
    written = io.BytesIO()  # on a full disk the library raises no OSError
    torch.save(content, written)
    with replacing(file) as part:
        part.write_bytes(written.getbuffer())


@contextmanager
def kept(file: Path) -> Iterator[dict[str, Any]]:
    """What `keep` saved; UsageError when it is broken, or does not fit where the block puts it."""
    try:
        yield torch.load(file, map_location="cpu", weights_only=True)
    except _BROKEN as error:
        raise UsageError(
            f"cannot go on from {file}, which is broken ({type(error).__name__}): begin anew in "
            "another folder for --out"
        ) from None
