"""The choice of renderer: automatic, overridable, and clear where there is none."""

from __future__ import annotations

import ctypes.util
import sys

import pytest

from bench_tasks.errors import BenchError, UsageError
from sim import gl


@pytest.fixture
def installed(monkeypatch):
    """Sets which libraries there are; the choice made is forgotten afterwards."""
    monkeypatch.setenv("MUJOCO_GL", "")
    monkeypatch.setenv("PYOPENGL_PLATFORM", "")
    monkeypatch.delitem(sys.modules, gl._CONTEXT, raising=False)

    def only(*names: str) -> None:
        monkeypatch.setattr(
            ctypes.util, "find_library", lambda name: f"lib{name}" if name in names else None
        )

    return only


@pytest.mark.parametrize(
    ("names", "choice"), [(("EGL", "OSMesa"), "egl"), (("EGL",), "egl"), (("OSMesa",), "osmesa")]
)
def test_egl_first_then_osmesa(installed, names, choice):
    import os

    installed(*names)
    assert gl.choose() == choice
    assert os.environ["MUJOCO_GL"] == choice
    assert gl.choose() == choice, "and it stays"


@pytest.mark.parametrize("value", ["osmesa", "OSMesa", " osmesa "])
def test_override_is_obeyed(installed, monkeypatch, value):
    installed("EGL", "OSMesa")
    monkeypatch.setenv("MUJOCO_GL", value)
    assert gl.choose() == "osmesa"


def test_override_with_a_wrong_value_is_one_clear_line(installed, monkeypatch):
    installed("EGL", "OSMesa")
    monkeypatch.setenv("MUJOCO_GL", "vulkan")
    with pytest.raises(UsageError) as caught:
        gl.choose()
    assert str(caught.value) == "unknown MUJOCO_GL 'vulkan': choose from egl, glfw, osmesa"


def test_missing_libraries_say_what_to_install(installed, monkeypatch):
    installed()
    with pytest.raises(BenchError, match="no off-screen renderer .*apt-get install libegl1"):
        gl.choose()
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    with pytest.raises(BenchError, match="MUJOCO_GL=osmesa but its library is missing: sudo apt"):
        gl.choose()
