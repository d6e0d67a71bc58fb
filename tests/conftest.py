"""Fixtures for all tests: a ROS domain of one's own, shared with nobody on this host."""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Iterator

import pytest

DOMAINS = range(1, 101)
"""Beyond about 100 DDS would use ports that the kernel hands out to others."""
FIRST_LOCK_PORT = 21_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need rclpy where there is none."""
    if importlib.util.find_spec("rclpy") is None:
        skip = pytest.mark.skip(reason="rclpy is not importable here")
        for item in items:
            if item.get_closest_marker("ros"):
                item.add_marker(skip)


@pytest.fixture
def ros_domain(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A free ROS domain, set in the environment together with discovery on this host only.

    A bound socket holds it for the length of the test, so that test runs at the same time never
    hear each other.
    """
    start = os.getpid() % len(DOMAINS)
    for shift in range(len(DOMAINS)):
        domain = DOMAINS[(start + shift) % len(DOMAINS)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as lock:
            try:
                lock.bind(("127.0.0.1", FIRST_LOCK_PORT + domain))
            except OSError:
                continue
            monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
            monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            yield domain
            return
    pytest.fail("all ROS domains are taken")
