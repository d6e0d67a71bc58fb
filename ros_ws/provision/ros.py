"""Which ROS 2 this machine has: a sourced distribution, or none, so that wheels stand in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Ros", "can_import", "choose"]


@dataclass(frozen=True)
class Ros:
    """`distro` is the sourced distribution, "" where ROS comes from wheels."""

    distro: str

    @property
    def real(self) -> bool:
        """Whether a distribution is used; then nothing of the stand-ins may be installed."""
        return bool(self.distro)

    @property
    def requirement_files(self) -> tuple[str, ...]:
        """Requirement files to install; the ROS wheels and colcon only where no ROS is sourced."""
        return ("base", "dev") if self.real else ("base", "dev", "ros", "build")

    @property
    def venv_options(self) -> tuple[str, ...]:
        """A distribution's rclpy lies outside the environment and must stay importable."""
        return ("--system-site-packages",) if self.real else ()


def can_import(python: str, module: str, env: Mapping[str, str]) -> bool:
    """Whether `python` imports `module` in `env`."""
    command = [python, "-c", f"import {module}"]
    return subprocess.run(command, env=dict(env), capture_output=True, check=False).returncode == 0


def choose(
    env: Mapping[str, str], python: str, importable: Callable[..., bool] = can_import
) -> tuple[Ros, str]:
    """Return the ROS to use and, where the shell promises one that does not work, a warning."""
    distro = env.get("ROS_DISTRO", "")
    if not distro:
        return Ros(""), ""
    if importable(python, "rclpy", env):
        return Ros(distro), ""
    return Ros(""), (
        f"ROS_DISTRO is {distro}, but {python} cannot import rclpy: using ROS from wheels."
        f" To use {distro}, source its setup.bash and give its Python: make PYTHON=/usr/bin/python3"
    )
