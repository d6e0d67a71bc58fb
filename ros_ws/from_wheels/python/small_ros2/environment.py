"""Where packages lie: the workspace's install folders, then the environment with the wheels."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["activate", "prefixes"]

WORKSPACE = Path(__file__).resolve().parents[3]


def prefixes() -> list[str]:
    """Prefixes of the ament index, first wins, beyond those the shell has sourced."""
    install = WORKSPACE / "install"
    found = []
    try:
        with os.scandir(install) as entries:
            found = sorted(entry.path for entry in entries if entry.is_dir())
    except FileNotFoundError:
        pass
    return [*found, sys.prefix]


def activate() -> None:
    """Put the prefixes behind what AMENT_PREFIX_PATH already holds.

    Called at every start of the environment's Python, so that nothing needs to be sourced.
    """
    have = [path for path in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if path]
    have += [path for path in prefixes() if path not in have]
    os.environ["AMENT_PREFIX_PATH"] = os.pathsep.join(have)
