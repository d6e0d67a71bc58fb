"""What this machine says of the way to a G1, and what it hears of one: for the check-up."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench_tasks.errors import BenchError
from bench_tasks.ros.middleware import FAST_DDS
from hardware.unitree.guard import LOOPBACK

__all__ = ["OTHER_DOMAIN", "domain_fault", "hear", "interface_fault", "ros_faults"]

OTHER_DOMAIN = "set ROS_DOMAIN_ID to another number, of all ROS 2 on the robot's network"

LISTEN_S, START_S = 4.0, 30.0
_NETWORK = Path("/sys/class/net")
_SIOCGIFADDR = 0x8915
_ROOT = Path(__file__).resolve().parents[2]


def interface_fault(name: str) -> str:
    """What is wrong with a network card by this machine's own word; "" when nothing is."""
    if not (_NETWORK / name).exists():
        names = ", ".join(sorted(path.name for path in _NETWORK.iterdir()))
        return f"there is no interface {name} (there are {names})"
    state = (_NETWORK / name / "operstate").read_text().strip()
    if name != LOOPBACK and state not in ("up", "unknown"):
        return f"interface {name} is {state}: no cable, or switched off"
    return "" if name in dict(_addressed()) else f"interface {name} has no IPv4 address"


def _addressed() -> list[tuple[str, str]]:
    """Interfaces that have an IPv4 address: (name, address)."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        for _, name in socket.if_nameindex():
            try:
                asked = struct.pack("256s", name.encode()[:15])
                raw = fcntl.ioctl(end.fileno(), _SIOCGIFADDR, asked)
            except OSError:
                continue
            found.append((name, socket.inet_ntoa(raw[20:24])))
    return found


def domain_fault(environ: Mapping[str, str], domain: int) -> str:
    """Why the nodes of a shell's ROS 2 must not start beside a robot in this DDS domain, or "".

    Of the types that Fast DDS 3.2 tells of, CycloneDDS 0.10.2 dies (a segmentation fault in
    ddsi_xt_type_init_impl, each time on `lo`), and that is what robot and driver speak.
    """
    fast = environ.get("RMW_IMPLEMENTATION", "") in FAST_DDS
    if not fast or (environ.get("ROS_DOMAIN_ID") or "0") != str(domain):
        return ""
    return (f"ROS 2 is in domain {domain}, the robot's own: its programs, and the driver, may end "
            "by a fault of CycloneDDS 0.10.2 with Fast DDS")  # fmt: skip


def ros_faults(environ: Mapping[str, str], domain: int) -> list[str]:
    """What of a shell's settings does not go with the robot's own ROS 2 topics."""
    found = []
    rmw, uri = environ.get("RMW_IMPLEMENTATION", ""), environ.get("CYCLONEDDS_URI", "")
    if rmw != "rmw_cyclonedds_cpp":
        found.append(f"RMW_IMPLEMENTATION is {rmw!r}, the robot's is rmw_cyclonedds_cpp")
    text = uri
    if uri.startswith("file://"):
        try:
            text = Path(uri.removeprefix("file://")).read_text(encoding="utf-8")
        except OSError as error:
            found.append(f"CYCLONEDDS_URI: cannot read {uri}: {error.strerror}")
            text = "NetworkInterface"
    if "NetworkInterface" not in text:
        found.append("CYCLONEDDS_URI names no network interface")
    ours = environ.get("ROS_DOMAIN_ID") or "0"
    if ours != str(domain):
        found.append(f"ROS_DOMAIN_ID is {ours}, the cell's domain is {domain}")
    return found


def hear(python: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What `listen` hears with the driver's `python`; BenchError when it cannot run."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    environment |= {"PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1"}
    asked = json.dumps({"seconds": LISTEN_S, **settings})
    try:
        done = subprocess.run(
            [python, "-m", "hardware.unitree.listen", asked], capture_output=True, text=True,
            env=environment, timeout=LISTEN_S + START_S, check=False,
        )  # fmt: skip
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise BenchError(f"the driver's Python gave no answer in {START_S:g} s") from None
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise BenchError(f"the driver's Python cannot listen: {last[0]}") from None
