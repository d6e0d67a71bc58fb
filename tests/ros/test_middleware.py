"""Nodes are heard on this machine alone, and leave nothing of the middleware behind when killed."""

import time
from pathlib import Path

import pytest

from bench_tasks.ros.middleware import PROFILE, middleware

RANGE, PROFILES = "ROS_AUTOMATIC_DISCOVERY_RANGE", "FASTDDS_DEFAULT_PROFILES_FILE"


@pytest.mark.parametrize("said", [{}, {RANGE: ""}, {RANGE: "LOCALHOST"}])
def test_who_says_nothing_is_heard_on_this_machine_alone(said):
    assert middleware(said) == {
        RANGE: "SYSTEM_DEFAULT", "FASTDDS_BUILTIN_TRANSPORTS": "UDPv4", PROFILES: str(PROFILE),
    }  # fmt: skip
    assert PROFILE.exists()


@pytest.mark.parametrize(
    "said",
    [
        {RANGE: "SUBNET"},
        {RANGE: "LOCALHOST", PROFILES: "/etc/mine.xml"},
        {RANGE: "LOCALHOST", "ROS_STATIC_PEERS": "192.168.1.2"},
        {RANGE: "LOCALHOST", "RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"},
    ],
)
def test_who_says_something_else_gets_that(said):
    told = middleware(said)
    assert told[RANGE] == said[RANGE] and PROFILES not in told


def test_what_is_told_to_a_launch_is_told_on():
    told = middleware({})
    assert told | middleware(told) == told


def test_no_node_uses_shared_memory_which_outlives_it(nodes):
    process = nodes.start("planner", planner="expert")
    threads = Path(f"/proc/{process.pid}/task")
    end, names = time.monotonic() + 30.0, set()
    while time.monotonic() < end and not any(name.startswith("dds.udp") for name in names):
        time.sleep(0.1)
        names = {(task / "comm").read_text().strip() for task in threads.iterdir()}
    assert any(name.startswith("dds.udp") for name in names)
    assert not any("shm" in name for name in names)
    assert "/dev/shm/fastdds" not in Path(f"/proc/{process.pid}/maps").read_text()
