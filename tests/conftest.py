"""Fixtures for all tests: a ROS domain of one's own, shared with nobody on this host."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator

import pytest

from bench_tasks.ros.domain import CLAIMED, hold_domain
from bench_tasks.ros.middleware import THIS_MACHINE, middleware

DOMAINS = range(1, 101)
"""Beyond about 100 DDS would use ports that the kernel hands out to others."""


def pytest_configure() -> None:
    """Take Ctrl-C again where a shell started the tests in the background, which ignores it.

    What the tests start would inherit that. One thread is enough for networks as small as ours:
    more wait for each other on a busy machine, and take three times as much of it.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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

    It is held for the length of the test as a launch holds its own, so that test runs and launches
    at the same time never hear each other; what the test itself launches is told so. Without
    shared memory, as in a launch: its locks outlive who was killed, and keep others waiting.
    """
    start = os.getpid() % len(DOMAINS)
    for shift in range(len(DOMAINS)):
        domain = DOMAINS[(start + shift) % len(DOMAINS)]
        lock = hold_domain(domain)
        if lock is None:
            continue
        with lock:
            monkeypatch.setenv(CLAIMED, str(domain))
            monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
            for name, value in middleware(THIS_MACHINE).items():
                monkeypatch.setenv(name, value)
            yield domain
            return
    pytest.fail("all ROS domains are taken")
