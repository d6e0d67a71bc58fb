"""The Python that environments are made of, also when the set-up is run from one of them."""

from __future__ import annotations

import sys
from pathlib import Path

from progress import Failed

__all__ = ["base_python", "runs_from"]


def inside(program: Path, folder: Path) -> bool:
    """Whether a program lies in `folder`; where a link of its own leads does not count."""
    return program.parent.resolve().is_relative_to(folder.resolve())


def runs_from(venv: Path) -> bool:
    """Whether this very process needs what lies in `venv`."""
    return Path(sys.prefix).resolve() == venv.resolve() or inside(Path(sys.executable), venv)


def base_python(venv: Path) -> str:
    """The interpreter outside any environment, and surely outside `venv`."""
    if sys.prefix == sys.base_prefix and not runs_from(venv):
        return sys.executable
    folder = Path(sys.base_prefix) / "bin"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    candidates = [Path(getattr(sys, "_base_executable", "") or sys.executable)]
    candidates += [folder / name for name in (f"python{version}", "python3", "python")]
    for path in candidates:
        own = sys.prefix != sys.base_prefix and inside(path, Path(sys.prefix))
        if path.is_file() and not own and not inside(path, venv):
            return str(path)
    raise Failed(f"no Python in {folder}: give its path, make PYTHON=...")
