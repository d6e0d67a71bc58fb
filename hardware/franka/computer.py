"""Whether this computer can keep the robots' time: for the check-up."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from hardware.checkup import Found
from hardware.franka.cell import Cell

__all__ = ["check_computer"]

REALTIME = Path("/sys/kernel/realtime")
"""What libfranka looks at."""
PRIORITY = 80
"""That of an arm's process, and less than what libfranka asks for."""


def check_computer(cell: Cell, realtime: Path = REALTIME) -> list[Found]:
    """Kernel and priority, where the cell has pylibfranka insist on them."""
    if cell.by_ros or cell.raw["arms"]["realtime"] != "enforce":
        return []
    kernel = realtime.exists() and realtime.read_text().strip() == "1"
    most = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    allowed = os.geteuid() == 0 or most == resource.RLIM_INFINITY or most >= PRIORITY
    release = os.uname().release
    return [
        ("kernel", kernel, f"{release}, {'' if kernel else 'not '}PREEMPT_RT",
         "start one with PREEMPT_RT, which libfranka insists on (realtime: enforce in the cell)"),
        ("priority", allowed, "real-time scheduling is allowed" if allowed
         else f"real-time priorities up to {most} are allowed, {PRIORITY} are needed",
         "set rtprio 99 for this user in /etc/security/limits.d, and log in anew"),
    ]  # fmt: skip
