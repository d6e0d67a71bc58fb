"""What pip cannot bring: compiler and Debian packages for rendering."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable

from progress import Failed, Steps, say

__all__ = ["check_tools", "rendering"]

EGL = ("libegl1", "libegl-mesa0", "libgl1-mesa-dri")
OSMESA = ("libosmesa6",)


def check_tools() -> None:
    """Failed unless the tools that build the interfaces exist."""
    tools = {"g++": "g++", "cmake": "cmake", "make": "make"}
    missing = [package for tool, package in tools.items() if shutil.which(tool) is None]
    if missing:
        raise Failed(f"{', '.join(missing)} missing. Run: {apt_line(missing)}")


def apt_line(packages: Iterable[str]) -> str:
    """The command that installs Debian packages for this user."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    return f"{sudo}apt-get install -y {' '.join(packages)}"


def missing_packages(packages: Iterable[str]) -> list[str]:
    """Those of `packages` that dpkg does not know as installed."""
    names = list(packages)
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *names],
        capture_output=True, text=True, check=False,
    )
    have = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in names if name not in have]


def loadable(library: str) -> bool:
    """Whether the dynamic linker finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def rendering(steps: Steps) -> None:
    """Provide EGL with Mesa and, as a fall-back, OSMesa; Failed says what to install.

    One of the two is enough to run, so the lack of the other is no failure: newer Debian releases
    have no OSMesa any more.
    """
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        if not (loadable("libEGL.so.1") or loadable("libOSMesa.so.8")):
            raise Failed("no libEGL.so.1 and no libOSMesa.so.8: install Mesa's EGL for your system")
        return
    missing = missing_packages(EGL + OSMESA)
    if not missing:
        return
    if os.geteuid() != 0:
        if missing_packages(EGL) and missing_packages(OSMESA):
            raise Failed(f"rendering needs Debian packages. Run: {apt_line(missing)}")
        say(f"    note: for every way to render, run: {apt_line(missing)}")
        return
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    advice = f"Check the package sources, then run: {apt_line(missing)}"
    try:
        steps.run("apt-update", ["apt-get", "update"], advice, env)
        steps.run("apt", ["apt-get", "install", "-y", "--no-install-recommends", *missing],
                  advice, env)
    except Failed as failure:
        if missing_packages(EGL) and missing_packages(OSMESA):
            raise
        say(f"    note: going on without {', '.join(missing_packages(missing))}: {failure}")
