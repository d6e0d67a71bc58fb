"""How nodes reach each other: on this machine alone, and by nothing that outlives a killed one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["FAST_DDS", "PROFILE", "THIS_MACHINE", "middleware"]

PROFILE = Path(__file__).with_name("this_machine.xml")
RANGE, LOCALHOST = "ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST"
TRANSPORTS, PROFILES = "FASTDDS_BUILTIN_TRANSPORTS", "FASTDDS_DEFAULT_PROFILES_FILE"
OWN_PROFILES = (PROFILES, "FASTRTPS_DEFAULT_PROFILES_FILE")
FAST_DDS = ("", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")
"""What RMW_IMPLEMENTATION may say where it is Fast DDS."""
THIS_MACHINE = {RANGE: LOCALHOST}
"""What a user, or a test, says who wants that nobody else hears."""


def middleware(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of the middleware for processes that are started from this environment.

    What it says holds. If it says nothing, or LOCALHOST, nodes are heard on this machine alone.
    rmw_fastrtps then adds shared memory, whatever `FASTDDS_BUILTIN_TRANSPORTS` says, and a process
    that is killed leaves its segments there, half a megabyte each, until the machine is started
    anew. So Fast DDS is told the same by a profile of its own, without that.
    """
    found = {
        RANGE: environ.get(RANGE) or LOCALHOST,
        TRANSPORTS: environ.get(TRANSPORTS) or "UDPv4",
    }
    own = any(environ.get(name) for name in (*OWN_PROFILES, "ROS_STATIC_PEERS"))
    fast = environ.get("RMW_IMPLEMENTATION", "") in FAST_DDS
    if found[RANGE] == LOCALHOST and fast and not own:
        found |= {RANGE: "SYSTEM_DEFAULT", PROFILES: str(PROFILE)}
    return found
