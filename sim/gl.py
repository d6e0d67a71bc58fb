"""Choice of the off-screen renderer; must be made before mujoco is first imported."""

from __future__ import annotations

import ctypes.util
import os

from bench_tasks.errors import BenchError, unknown

__all__ = ["choose"]

_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
_INSTALL = "sudo apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6"


def choose() -> str:
    """Return the renderer's name and set MUJOCO_GL to it; a MUJOCO_GL already set is obeyed.

    EGL first (it uses a GPU where there is one), else OSMesa. BenchError when neither is there.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower()
    if wanted:
        if wanted not in ("egl", "osmesa", "glfw"):
            raise unknown("MUJOCO_GL", wanted, ("egl", "osmesa", "glfw"))
        if wanted in _LIBRARIES and ctypes.util.find_library(_LIBRARIES[wanted]) is None:
            raise BenchError(f"MUJOCO_GL={wanted} but its library is missing: {_INSTALL}")
        return wanted
    for name, library in _LIBRARIES.items():
        if ctypes.util.find_library(library) is not None:
            os.environ["MUJOCO_GL"] = name
            os.environ.setdefault("PYOPENGL_PLATFORM", name)
            return name
    raise BenchError(f"no off-screen renderer (EGL or OSMesa) found: {_INSTALL}")
