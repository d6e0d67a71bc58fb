"""One run per ROS domain and machine: two would take each other's messages for their own."""

from __future__ import annotations

import os
import socket

from bench_tasks.errors import UsageError

__all__ = ["CLAIMED", "claim_domain", "hold_domain", "robot_domain", "ros_domain"]

CLAIMED = "BENCH_TASKS_CLAIMED_DOMAIN"
"""The environment variable by which a process tells its children which domain it holds for them."""

MOST = 232
"""The last domain whose ports there are."""
ROBOTS = 101
"""How far above a ROS domain that of its robot is: ROS domains beyond 101 are not safe anywhere."""

_claimed: list[socket.socket] = []


def ros_domain() -> int:
    """The ROS domain of this environment; UsageError when ROS_DOMAIN_ID is wrong."""
    text = os.environ.get("ROS_DOMAIN_ID", "0") or "0"
    if not text.isdecimal() or int(text) > MOST:
        raise UsageError(f"ROS_DOMAIN_ID must be a number from 0 to {MOST}, got {text!r}")
    return int(text)


def robot_domain() -> int:
    """The DDS domain of a robot that is simulated beside the nodes of this environment.

    Another one than theirs: the types that Fast DDS tells of make CycloneDDS 0.10.2, which a
    Unitree robot speaks, end with a segmentation fault.
    """
    return (ros_domain() + ROBOTS) % (MOST + 1)


def hold_domain(domain: int) -> socket.socket | None:
    """Hold a domain until the socket is closed; None when somebody else holds it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        holder.bind(f"\0bench_tasks/ros_domain_{domain}")
    except OSError:
        holder.close()
        return None
    return holder


def claim_domain() -> int:
    """Claim this environment's ROS domain for the rest of the process and return its number.

    The claim is a name among the machine's abstract sockets, which the kernel gives up when the
    process ends, however it ends. UsageError when another run holds it or ROS_DOMAIN_ID is wrong.
    """
    domain = ros_domain()
    if os.environ.get(CLAIMED) == str(domain):
        return domain
    holder = hold_domain(domain)
    if holder is None:
        raise UsageError(
            f"another run is using ROS domain {domain}: wait for it, or set ROS_DOMAIN_ID to "
            "another number (0 to 101 is safe everywhere)"
        )
    _claimed.append(holder)
    return domain
