"""Packages, their executables and launch files, found through the ament index."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_packages_with_prefixes,
)
from launch.errors import LaunchError

__all__ = ["choices", "executable_of", "launch_file_of", "prefix_of", "share_of"]


def choices(names: Iterable[str]) -> str:
    """Names for an error message."""
    return ", ".join(sorted(names)) or "none"


def prefix_of(package: str) -> Path:
    """The prefix of a package; LaunchError names the packages that can be run."""
    try:
        return Path(get_package_prefix(package))
    except (PackageNotFoundError, ValueError):
        found = {name: Path(prefix) for name, prefix in get_packages_with_prefixes().items()}
        runnable = [name for name, prefix in found.items() if (prefix / "lib" / name).is_dir()]
        raise LaunchError(
            f"package '{package}' not found; packages with executables: {choices(runnable)}"
        ) from None


def share_of(package: str) -> Path:
    """The share directory of a package."""
    return prefix_of(package) / "share" / package


def executable_of(package: str, name: str) -> Path:
    """An executable of a package; LaunchError names those it has."""
    folder = prefix_of(package) / "lib" / package
    path = folder / name
    if path.is_file() and os.access(path, os.X_OK):
        return path
    have = [p.name for p in folder.iterdir() if os.access(p, os.X_OK)] if folder.is_dir() else []
    raise LaunchError(
        f"executable '{name}' not found in package '{package}'; it has: {choices(have)}"
    )


def launch_file_of(package: str, name: str) -> Path:
    """A launch file of a package; LaunchError names those it has."""
    share = share_of(package)
    found = {path.name: path for path in sorted(share.rglob("*launch.py"))}
    if name not in found:
        raise LaunchError(
            f"launch file '{name}' not found in package '{package}'; it has: {choices(found)}"
        )
    return found[name]
