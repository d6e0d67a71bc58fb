"""Which versions of CycloneDDS may talk to a live G1."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["LOOPBACK", "VENDORS", "ros_version", "unsafe"]

LOOPBACK = "lo"
VENDORS = "0.10.2"
"""What Unitree's SDK and firmware are built with."""
CRASHING = ("11.0.1",)
"""Versions whose type information makes a participant of `VENDORS` crash, tried with LowCmd,
LowState and HandCmd: a segmentation fault in ddsi_xt_type_init_impl each time."""


def ros_version(middleware: str) -> str:
    """The version of CycloneDDS that a ROS 2 uses whose middleware is called so.

    The middleware's own name when that is another one, and "unknown" when it does not say.
    """
    if "cyclonedds" not in middleware:
        return middleware
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        package = Path(prefix) / "share/cyclonedds/package.xml"
        if prefix and package.is_file():
            found = re.search(r"<version>\s*([\d.]+)", package.read_text(encoding="utf-8"))
            if found:
                return found[1]
    return "unknown"


def unsafe(interface: str, version: str, accepted: str) -> str:
    """Why a robot on `interface` must not be talked to with this version; "" when it may.

    `version` may be what `ros_version` says; `accepted` is the one that somebody has said to risk,
    "" for none.
    """
    if interface == LOOPBACK or version in (VENDORS, accepted):
        return ""
    known = (
        f"makes programs with {VENDORS} crash, which is what Unitree ships"
        if version in CRASHING
        else f"has never been tried with {VENDORS}, which is what Unitree ships"
    )
    library = "" if version.startswith("rmw_") else "CycloneDDS "
    return (
        f"interface {interface}: {library}{version} {known}; whether the robot's own do is not "
        "known, and one that is walking would fall. Safe ways: a driver environment with Python "
        f"3.10 and cyclonedds {VENDORS} (install Python 3.10, then make unitree), or the robot's "
        "own ROS 2 topics over the same version (docs/unitree.md). To take the risk: "
        f"accept_cyclonedds: \"{version}\" in the robot's file"
    )
