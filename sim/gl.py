"""Choice of the off-screen renderer. mujoco reads it on import, so it is made before that."""

from __future__ import annotations

import ctypes.util
import importlib
import os
import sys

from bench_tasks.errors import BenchError, unknown

__all__ = ["choose"]

_LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
_CONTEXT = "mujoco.rendering.classic.gl_context"
_INSTALL = "sudo apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri libosmesa6"


def choose() -> str:
    """Return the renderer's name and set MUJOCO_GL to it; a MUJOCO_GL already set is obeyed.

    EGL first (it uses a GPU where there is one), else OSMesa. BenchError when neither is there.
    """
    wanted = os.environ.get("MUJOCO_GL", "").lower().strip()
    if wanted in ("egl", "osmesa", "glfw"):
        if wanted in _LIBRARIES and ctypes.util.find_library(_LIBRARIES[wanted]) is None:
            raise BenchError(f"MUJOCO_GL={wanted} but its library is missing: {_INSTALL}")
        return wanted
    if wanted:
        raise unknown("MUJOCO_GL", wanted, ("egl", "osmesa", "glfw"))
    for name, library in _LIBRARIES.items():
        if ctypes.util.find_library(library) is not None:
            os.environ["MUJOCO_GL"] = name
            os.environ.setdefault("PYOPENGL_PLATFORM", name)
            context = sys.modules.get(_CONTEXT)
            if context is not None:
                # Somebody imported mujoco first, which then chose a window system.
                importlib.reload(context)
            return name
    raise BenchError(f"no off-screen renderer (EGL or OSMesa) found: {_INSTALL}")
