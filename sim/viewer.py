"""MuJoCo's own window on the world while it runs; needs a display."""

from __future__ import annotations

from typing import Any

from bench_tasks.errors import UsageError
from sim.world import SimWorld

__all__ = ["Viewer"]


class Viewer:
    """Shows whatever task the world has loaded; a window that was closed stays closed."""

    def __init__(self, world: SimWorld) -> None:
        """Nothing is opened before the first `show`."""
        self._world = world
        self._model: Any = None
        self._window: Any = None

    def show(self) -> None:
        """Bring the window up to date. UsageError when none can be opened."""
        if self._model is not self._world.model:
            self.close()
            self._open()
        if self._window is not None and self._window.is_running():
            self._window.sync()

    def _open(self) -> None:
        import mujoco.viewer

        self._model = self._world.model
        try:
            self._window = mujoco.viewer.launch_passive(
                self._model, self._world.data, show_left_ui=False, show_right_ui=False
            )
        except RuntimeError as error:
            raise UsageError(f"no MuJoCo window can be opened: {error}") from None

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()
        self._window = self._model = None
