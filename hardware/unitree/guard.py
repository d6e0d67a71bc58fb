"""Which versions of CycloneDDS may talk to a live G1."""

from __future__ import annotations

__all__ = ["LOOPBACK", "VENDORS", "unsafe"]

LOOPBACK = "lo"
VENDORS = "0.10.2"
"""What Unitree's SDK and firmware are built with."""
CRASHING = ("11.0.1",)
"""Versions whose type information makes a participant of `VENDORS` crash, tried with LowCmd,
LowState and HandCmd: a segmentation fault in ddsi_xt_type_init_impl each time."""


def unsafe(interface: str, version: str, accepted: str) -> str:
    """Why a robot on `interface` must not be talked to with this version; "" when it may.

    `accepted` is the version that somebody has said to risk, "" for none.
    """
    if interface == LOOPBACK or version in (VENDORS, accepted):
        return ""
    known = (
        f"makes programs with {VENDORS} crash, which is what Unitree ships"
        if version in CRASHING
        else f"has never been tried with {VENDORS}, which is what Unitree ships"
    )
    return (
        f"interface {interface}: CycloneDDS {version} {known}; whether the robot's own do is not "
        "known, and one that is walking would fall. Safe ways: a driver environment with Python "
        f"3.10 and cyclonedds {VENDORS} (install Python 3.10, then make unitree), or the robot's "
        "own ROS 2 topics (docs/unitree.md). To take the risk: "
        f"accept_cyclonedds: \"{version}\" in the robot's file"
    )
