"""Who takes connections at an address of this machine, as two simulated robots cannot both do."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from bench_tasks.errors import UsageError

__all__ = ["listener", "refuse_taken"]

PROC = Path("/proc")
LISTENING = "0A"
MOST_SHOWN = 120


def listener(address: str) -> str:
    """The process that takes TCP connections at exactly this IPv4 address; "" when none does."""
    number = struct.unpack("=I", ipaddress.IPv4Address(address).packed)[0]
    here = f"{number:08X}"
    try:
        rows = [line.split() for line in (PROC / "net/tcp").read_text().splitlines()[1:]]
    except OSError:  # no Linux: nobody knows
        return ""
    sockets = {f"socket:[{row[9]}]" for row in rows
               if row[1].partition(":")[0] == here and row[3] == LISTENING}  # fmt: skip
    if not sockets:
        return ""
    for process in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if any(os.readlink(entry) in sockets for entry in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"process {process.name} ({' '.join(words).strip()[:MOST_SHOWN]})"
    return "a process of another user"


def refuse_taken(cell: str, addresses: Iterable[str]) -> None:
    """UsageError where a simulated robot of a cell cannot be, since another one is there."""
    for address in addresses:
        who = listener(address)
        if who:
            raise UsageError(
                f"address {address} of the simulated cell {cell} is held by {who}: wait for it or "
                "end it, or start a stand-in for a cell with other loopback addresses, 127.0.0.21 "
                "for example (docs/franka.md, A rehearsal)"
            )
